//! The resources that every sandbox uses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyot::{Enforcement, Sandbox, SandboxInfo, SandboxProvider, SandboxStatus, Usage};
use futures_util::future::join_all;
use serde::Serialize;

use super::{descending, json_row, mebibytes, percent, percent_cell, unknown};
use crate::args::TopSort;
use crate::commands::ls::status;
use crate::durations::{age, since};
use crate::errors::Failure;
use crate::provider::memory_limit_mib;
use crate::sandbox_names::SandboxNames;
use crate::table::Table;

/// The time in which a sandbox must report what it uses: one that hangs must not hold up the
/// others.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of sandboxes that are asked although the provider can measure them from outside. Only
/// they know the time since their last activity, and count their processes. In a larger crowd those
/// in which nothing runs are left in peace, and so are most others: asking takes longer than all
/// else, and wakes the guest.
const ASKED: usize = 32;

/// The time from one sample to the next within which use is measured in a crowd. Control groups
/// count finely.
const SHORT_WINDOW: Duration = Duration::from_millis(40);
/// The same where sandboxes are asked, some of which count in hundredths of a second.
const WINDOW: Duration = Duration::from_millis(500);

/// All sandboxes, and the last sample of each.
pub struct AllSandboxes {
    provider: Arc<dyn SandboxProvider>,
    known: HashMap<String, SampledSandbox>,
    window: Duration,
}

/// A sandbox with its last sample.
#[derive(Default)]
struct SampledSandbox {
    /// The open sandbox, if it was asked.
    sandbox: Option<Sandbox>,
    last: Option<(Instant, u64)>,
}

/// A sandbox in one sample.
#[derive(Debug, Serialize)]
struct SandboxSample {
    name: String,
    id: String,
    status: SandboxStatus,
    cpu_percent: Option<f64>,
    memory_limit_bytes: Option<u64>,
    age_ms: u64,
    #[serde(flatten)]
    usage: Usage,
}

impl AllSandboxes {
    /// Starts without a sample.
    pub fn new(provider: Arc<dyn SandboxProvider>) -> Self {
        Self { provider, known: HashMap::new(), window: WINDOW }
    }

    /// Returns the least time between two samples that tells the use of processors apart.
    pub fn window(&self) -> Duration {
        self.window
    }

    /// Samples all sandboxes at once.
    pub async fn look(&mut self, sort: TopSort, names: &SandboxNames, json: bool) -> Result<String, Failure> {
        let all = self.provider.list_with_usage().await?;
        let asked = chosen(&all);
        self.window = if asked.iter().all(|asked| *asked) { WINDOW } else { SHORT_WINDOW };
        // Who is gone is forgotten, and its connection closed.
        let mut known = std::mem::take(&mut self.known);
        let now = Instant::now();
        let looks = all.into_iter().zip(asked).map(|((info, usage), asked)| {
            let known = known.remove(info.id.as_str()).unwrap_or_default();
            look_at(self.provider.as_ref(), (info, usage), asked, (names, now), known)
        });
        let mut rows = Vec::new();
        for (row, known) in join_all(looks).await {
            self.known.insert(row.id.clone(), known);
            rows.push(row);
        }
        rows.sort_by(|one, other| order(sort, one, other).then_with(|| one.name.cmp(&other.name)));
        if json { rows.iter().map(json_row).collect() } else { Ok(table(&rows)) }
    }
}

/// Chooses the sandboxes that are asked what they use: all of a few, and all that can't be measured
/// from outside. In a crowd, a few of those in which something runs.
fn chosen(all: &[(SandboxInfo, Option<Usage>)]) -> Vec<bool> {
    let runs = |info: &SandboxInfo| info.status == SandboxStatus::Running;
    let is_crowd = all.iter().filter(|(info, _)| runs(info)).count() > ASKED;
    let mut left = ASKED;
    let choose = |(info, usage): &(SandboxInfo, Option<Usage>)| match usage {
        _ if !runs(info) => false,
        Some(usage) if is_crowd => {
            let is_asked = usage.processes != Some(0) && left > 0;
            left -= usize::from(is_asked);
            is_asked
        }
        _ => true,
    };
    all.iter().map(choose).collect()
}

async fn look_at(
    provider: &dyn SandboxProvider,
    (info, from_outside): (SandboxInfo, Option<Usage>),
    is_asked: bool,
    (names, listed_at): (&SandboxNames, Instant),
    mut known: SampledSandbox,
) -> (SandboxSample, SampledSandbox) {
    let mut row = SandboxSample {
        name: names.shown(&info),
        id: info.id.to_string(),
        status: info.status,
        cpu_percent: None,
        memory_limit_bytes: None,
        age_ms: since(info.created_ms),
        usage: from_outside.unwrap_or_default(),
    };
    if info.status != SandboxStatus::Running {
        return (row, SampledSandbox::default());
    }
    let mut at = listed_at;
    if is_asked {
        // One that ends meanwhile, or does not answer, has a row with the figures from outside, if any.
        let asked = tokio::time::timeout(PATIENCE, ask(provider, &row.id, known.sandbox)).await;
        let Ok(Ok((sandbox, usage))) = asked else { return (row, SampledSandbox::default()) };
        (known.sandbox, row.usage, at) = (Some(sandbox), usage, Instant::now());
    }
    if let (Some((before_at, before)), Some(cpu_ms)) = (known.last, row.usage.cpu_ms) {
        row.cpu_percent = percent(before, cpu_ms, at - before_at);
    }
    known.last = row.usage.cpu_ms.map(|cpu_ms| (at, cpu_ms));
    row.memory_limit_bytes = memory_limit(&info);
    (row, known)
}

async fn ask(
    provider: &dyn SandboxProvider,
    id: &str,
    known: Option<Sandbox>,
) -> eyot::Result<(Sandbox, Usage)> {
    let sandbox = match known {
        Some(sandbox) => sandbox,
        None => Sandbox::open(provider, id).await?,
    };
    let usage = sandbox.usage().await?;
    Ok((sandbox, usage))
}

/// Returns the memory limit, if it is enforced.
fn memory_limit(info: &SandboxInfo) -> Option<u64> {
    let held = &info.isolation.limits;
    let limit = memory_limit_mib(&info.spec.limits, held);
    limit.filter(|_| held.memory != Enforcement::None).map(|mib| mib << 20)
}

fn order(sort: TopSort, one: &SandboxSample, other: &SandboxSample) -> std::cmp::Ordering {
    match sort {
        TopSort::Cpu => descending(one.cpu_percent, other.cpu_percent),
        TopSort::Memory => descending(one.usage.memory_bytes, other.usage.memory_bytes),
        TopSort::Name => one.name.cmp(&other.name),
        TopSort::Age => other.age_ms.cmp(&one.age_ms),
    }
}

fn table(rows: &[SandboxSample]) -> String {
    let mut table =
        Table::new(["NAME", "STATUS", "CPU%", "MEMORY", "PEAK", "LIMIT", "PIDS", "DISK", "AGE", "IDLE"]);
    for row in rows {
        let usage = &row.usage;
        table.row([
            row.name.clone(),
            status(row.status).to_owned(),
            percent_cell(row.cpu_percent),
            mebibytes(usage.memory_bytes),
            mebibytes(usage.memory_peak_bytes),
            mebibytes(row.memory_limit_bytes),
            usage.processes.map_or_else(unknown, |count| count.to_string()),
            mebibytes(usage.disk_bytes),
            age(row.age_ms),
            usage.idle_ms.map_or_else(unknown, age),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(count: usize, usage: Option<Usage>) -> Vec<(SandboxInfo, Option<Usage>)> {
        let text = r#"{
            "id": "sb_00000000000000000000000000000000", "name": "a", "provider": "native", "status": "running",
            "workdir": "/workspace", "created_ms": 0, "spec": {},
            "isolation": {
                "provider": "native", "shares_host_kernel": true, "namespaces": [], "identity": "single",
                "no_new_privileges": true, "capabilities": [], "seccomp_instructions": 300, "landlock_abi": null,
                "network": "none", "readonly_rootfs": false, "cgroup_controllers": [],
                "limits": {"memory": "none", "cpus": "none", "pids": "rlimit", "disk": "none"}
            }
        }"#;
        let info: SandboxInfo = serde_json::from_str(text).unwrap();
        vec![(info, usage); count]
    }

    fn count(all: &[(SandboxInfo, Option<Usage>)]) -> usize {
        chosen(all).into_iter().filter(|asked| *asked).count()
    }

    #[test]
    fn a_crowd_is_left_in_peace_but_for_a_few_in_which_something_runs() {
        let idle = Some(Usage { processes: Some(0), ..Usage::default() });
        let busy = Some(Usage::default());
        assert_eq!(count(&listed(ASKED, idle)), ASKED);
        assert_eq!(count(&listed(ASKED + 1, idle)), 0);
        let few_busy = [listed(1000, idle), listed(3, busy)].concat();
        assert!(count(&few_busy) == 3 && chosen(&few_busy)[1000..].iter().all(|asked| *asked));
        assert_eq!(count(&listed(1000, busy)), ASKED);
        assert_eq!(count(&listed(1000, None)), 1000);
        let mut asleep = listed(1, None);
        asleep[0].0.status = SandboxStatus::Sleeping;
        assert_eq!(count(&asleep), 0);
    }
}
