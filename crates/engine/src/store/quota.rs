//! Quotas: what the sandboxes of a pool use together, held against what they may, in the transaction that takes a name.

use eyot::{Error, ErrorKind, Limits, Result, SandboxName};

use super::Store;
use super::database::Transaction;
use super::owner::Owner;
use super::row::{NewSandbox, process};
use super::statement::read_all;
use super::value::values;
use crate::pool_options::PoolQuotas;

/// The amount that the sandboxes of a pool may use together by their limits, those that are being
/// made or removed included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// The number of sandboxes.
    pub sandboxes: u64,
    /// The sum of their `limits.memory_mib`; those without count as nothing.
    pub memory_mib: u64,
    /// The sum of their `limits.disk_mib`; those without count as nothing.
    pub disk_mib: u64,
    /// The sum of their `limits.pids`; those without count as [`Limits::DEFAULT_PIDS`], which they have.
    pub processes: u64,
}

const WHAT: &str = "count what a pool uses";

impl Store {
    /// Adds up what the sandboxes of a pool use of its quotas.
    pub fn quota_use(&self, pool: &SandboxName) -> Result<QuotaUse> {
        self.read(WHAT, |transaction| used(transaction, pool))
    }
}

fn used(transaction: &Transaction<'_>, pool: &SandboxName) -> Result<QuotaUse> {
    let sql = "SELECT memory_mib, disk_mib, pids, process FROM sandboxes WHERE pool = ?1";
    let limits = read_all(transaction, WHAT, sql, values![pool.as_str()], |row| {
        Ok((row.get("memory_mib")?, row.get("disk_mib")?, row.get("pids")?, process(row)?))
    })?;
    let (mut sum, mut processes) = (QuotaUse::default(), Vec::new());
    for limits in limits {
        let (memory_mib, disk_mib, pids, process): (Option<u64>, Option<u64>, Option<u64>, Option<Owner>) =
            limits;
        // It has ended with its process, and its row goes when somebody looks for it.
        if process.is_some_and(|process| has_ended(process, &mut processes)) {
            continue;
        }
        sum.sandboxes += 1;
        sum.memory_mib = sum.memory_mib.saturating_add(memory_mib.unwrap_or_default());
        sum.disk_mib = sum.disk_mib.saturating_add(disk_mib.unwrap_or_default());
        sum.processes = sum.processes.saturating_add(pids.unwrap_or(Limits::DEFAULT_PIDS));
    }
    Ok(sum)
}

/// Tells whether a process has ended. Each is looked at once: thousands of sandboxes may live with one.
fn has_ended(process: Owner, known: &mut Vec<(Owner, bool)>) -> bool {
    if let Some((_, has_ended)) = known.iter().find(|(other, _)| *other == process) {
        return *has_ended;
    }
    let has_ended = !process.is_alive();
    known.push((process, has_ended));
    has_ended
}

/// Refuses a sandbox that is too much for its pool.
pub(super) fn enforce(transaction: &Transaction<'_>, new: &NewSandbox, quotas: &PoolQuotas) -> Result<()> {
    if *quotas == PoolQuotas::default() {
        return Ok(());
    }
    let used = used(transaction, &new.pool)?;
    let limits = &new.spec.limits;
    if quotas.max_sandboxes.is_some_and(|most| used.sandboxes >= most) {
        let most = quotas.max_sandboxes.unwrap_or_default();
        return Err(too_many_sandboxes(&new.pool, most, used.sandboxes));
    }
    enforce_sum(&new.pool, "memory_mib", used.memory_mib, limits.memory_mib, quotas.memory_mib)?;
    let disk_mib = used.disk_mib.saturating_add(new.snapshots_mib);
    enforce_sum(&new.pool, "disk_mib", disk_mib, limits.disk_mib, quotas.disk_mib).map_err(
        |error| match new.snapshots_mib {
            0 => error,
            taken => error.with_hint(format!(
                "ask for less by {}, or remove sandboxes and snapshots: these take {taken} MiB",
                named("disk_mib")
            )),
        },
    )?;
    let pids = Some(limits.pids.unwrap_or(Limits::DEFAULT_PIDS));
    enforce_sum(&new.pool, "pids", used.processes, pids, quotas.processes)
}

/// Refuses more sandboxes than a pool may have.
pub(crate) fn too_many_sandboxes(pool: &SandboxName, most: u64, there: u64) -> Error {
    let message = format!("pool `{pool}` may have {most} sandboxes and has {there}");
    Error::new(ErrorKind::Quota, message).with_hint("remove one that is not needed any more")
}

/// Refuses what would bring the sum of a limit beyond its quota.
pub(crate) fn enforce_sum(
    pool: &SandboxName,
    limit: &str,
    used: u64,
    asked: Option<u64>,
    quota: Option<u64>,
) -> Result<()> {
    let Some(quota) = quota else { return Ok(()) };
    let Some(asked) = asked else {
        let message =
            format!("pool `{pool}` has a quota of {quota} for `{limit}`, and the sandbox has no such limit");
        return Err(Error::new(ErrorKind::Quota, message).with_hint(format!("give it {}", named(limit))));
    };
    if used.saturating_add(asked) <= quota {
        return Ok(());
    }
    let unit = if limit.ends_with("_mib") { "MiB" } else { "processes" };
    let message = format!(
        "pool `{pool}` may use {quota} {unit} by `{limit}`: {used} are taken and {asked} more were asked for"
    );
    Err(Error::new(ErrorKind::Quota, message).with_hint(format!(
        "ask for less by {}, or remove a sandbox that is not needed any more",
        named(limit)
    )))
}

/// Names a limit in a spec and on the command line.
fn named(limit: &str) -> String {
    let option = match limit {
        "memory_mib" => "--memory",
        "disk_mib" => "--disk",
        _ => "--pids",
    };
    format!("`limits.{limit}` ({option})")
}
