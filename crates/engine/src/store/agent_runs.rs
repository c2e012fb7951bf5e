//! Runs of agents, with their events, their steps and their conversations. Their content is JSON, which only the agent
//! runtime reads.
//!
//! A run has one owner at a time. A process that takes a run over gets a new lease, and writes with an older lease are
//! refused: a process that was wrongly taken for dead can do no harm.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result};

use super::Store;
use super::claim::{KnownOwners, StoreIdentity};
use super::database::Transaction;
use super::database_error::DatabaseError;
use super::owner::Owner;
use super::row;
use super::statement::{execute, read_all, read_one};
use super::value::{DatabaseRow, Value, json, values};

const READ: &str = "read the runs of agents";
pub(super) const WRITE: &str = "write a run of an agent";
/// The columns of a run that may be large.
const LARGE: &str = "payload, options, result";
/// The same columns, left out.
const NOTHING_LARGE: &str = "'null' AS payload, NULL AS options, NULL AS result";

/// The number of runs of an instance that are kept after their end. Older ones are deleted with their events.
pub const MAX_ENDED_RUNS_PER_INSTANCE: usize = 50;

/// The runs that this process holds.
static HELD: LazyLock<Mutex<HashSet<(StoreIdentity, String)>>> = LazyLock::new(Mutex::default);

/// A run of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunRow {
    /// The id.
    pub id: String,
    /// The pool whose callers may see the run.
    pub pool: Option<String>,
    /// The agent's instance.
    pub instance: String,
    /// The agent.
    pub agent: String,
    /// The sandbox that the agent works in.
    pub sandbox: Option<String>,
    /// The state.
    pub status: AgentRunStatus,
    /// The input, as JSON.
    pub payload: String,
    /// The wishes of the caller beside the input, as JSON.
    pub options: Option<String>,
    /// The result, as JSON.
    pub result: Option<String>,
    /// The failure, as JSON.
    pub error: Option<String>,
    /// The start, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// The end, in milliseconds since 1970 (UTC).
    pub ended_ms: Option<i64>,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRunStatus {
    /// The run has not ended.
    Active,
    /// The run succeeded.
    Completed,
    /// The run failed.
    Errored,
}

impl AgentRunStatus {
    /// The name in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Errored => "errored",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Completed, Self::Errored].into_iter().find(|status| status.as_str() == name)
    }
}

/// The right to write a run. Dropping it releases the run: another task or process may take it over.
#[derive(Debug)]
#[must_use = "a lease is released when it is dropped"]
pub struct AgentRunLease {
    store: Arc<Store>,
    pub(super) id: String,
    pub(super) number: i64,
    /// The run has ended, or it was never begun or taken over: there is nothing to be given up.
    pub(super) is_over: AtomicBool,
}

impl AgentRunLease {
    fn new(store: &Arc<Store>, id: &str, number: i64) -> Self {
        Self { store: Arc::clone(store), id: id.to_owned(), number, is_over: AtomicBool::new(false) }
    }

    /// Returns the run's id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for AgentRunLease {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Relaxed) {
            let (store, id, number) = (Arc::clone(&self.store), self.id.clone(), self.number);
            self.store.without_waiting(move || {
                if let Err(error) = store.give_up_agent_run(&id, number) {
                    // This process still knows that nobody holds it; others learn it when this one ends.
                    tracing::warn!(%error, run = %id, "give up a run of an agent");
                }
            });
        }
        held().remove(&(self.store.identity.clone(), self.id.clone()));
    }
}

/// A filter for a list of runs.
#[derive(Debug, Clone, Default)]
pub struct AgentRunFilter {
    /// Runs in this state.
    pub status: Option<AgentRunStatus>,
    /// Runs of this agent.
    pub agent: Option<String>,
    /// Runs of this instance.
    pub instance: Option<String>,
    /// Runs of these pools; `None`: all runs.
    pub pools: Option<Vec<String>>,
    /// Leaves out the input, the options and the result, which may be large.
    pub is_brief: bool,
    /// Runs that come after this one in the list, given as its start and its id.
    pub before: Option<(i64, String)>,
    /// The most runs to return.
    pub limit: u64,
}

impl Store {
    /// Begins a run that the caller owns. `already_exists`: there is one with this id.
    pub fn begin_agent_run(self: &Arc<Self>, run: &AgentRunRow) -> Result<AgentRunLease> {
        let owner = self.owner()?;
        self.hold(&run.id)?;
        let lease = AgentRunLease::new(self, &run.id, 1);
        let begun = self.write(WRITE, |transaction| {
            if select_one(transaction, &run.id)?.is_some() {
                return Err(Error::new(ErrorKind::AlreadyExists, format!("there is a run `{}`", run.id)));
            }
            let sql = "INSERT INTO agent_runs
                           (id, pool, instance, agent, sandbox, status, payload, options, started_ms, owner, lease)
                       VALUES (?1, ?2, ?3, ?4, ?5, 'active', ?6, ?7, ?8, ?9, 1)";
            let AgentRunRow { id, pool, instance, agent, sandbox, payload, options, started_ms, .. } = run;
            let owner = json(&owner)?;
            let values = values![id, pool, instance, agent, sandbox, payload, options, *started_ms, owner];
            execute(transaction, sql, values)
        });
        lease.is_over.store(begun.is_err(), Ordering::Relaxed);
        begun.map(|()| lease)
    }

    /// Takes over an active run whose owner is gone. `None`: the run has ended, or its owner lives. `not_found`: there is
    /// no such run.
    pub fn take_agent_run(self: &Arc<Self>, id: &str) -> Result<Option<AgentRunLease>> {
        let this = self.owner()?;
        if self.hold(id).is_err() {
            return Ok(None);
        }
        let taken = self.write(WRITE, |transaction| {
            let sql = "SELECT status, owner, lease FROM agent_runs WHERE id = ?1";
            let found = read_one(transaction, WRITE, sql, values![id], |row| {
                Ok((row.get::<String>("status")?, row.get("owner")?, row.get::<i64>("lease")?))
            })?;
            let Some((status, owner, lease)) = found else { return Err(no_run(id)) };
            // If the owner is this process, its task has released the run: `hold` above would have failed otherwise.
            if status != AgentRunStatus::Active.as_str()
                || !is_free(&mut KnownOwners::new(transaction, &this), owner, &this)?
            {
                return Ok(None);
            }
            let sql = "UPDATE agent_runs SET owner = ?2, lease = ?3 WHERE id = ?1";
            execute(transaction, sql, values![id, json(&this)?, lease + 1])?;
            Ok(Some(lease + 1))
        });
        match taken {
            Ok(Some(number)) => Ok(Some(AgentRunLease::new(self, id, number))),
            other => {
                held().remove(&(self.identity.clone(), id.to_owned()));
                other.map(|_| None)
            }
        }
    }

    fn give_up_agent_run(&self, id: &str, number: i64) -> Result<()> {
        self.write(WRITE, |transaction| {
            let sql = "UPDATE agent_runs SET owner = NULL WHERE id = ?1 AND lease = ?2 AND status = 'active'";
            execute(transaction, sql, values![id, number])
        })
    }

    fn hold(&self, id: &str) -> Result<()> {
        if held().insert((self.identity.clone(), id.to_owned())) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Conflict, format!("run `{id}` is already active in this process")))
        }
    }

    /// Returns the ids of the active runs whose owner is gone, the oldest first.
    pub fn abandoned_agent_runs(&self) -> Result<Vec<String>> {
        let this = self.owner()?;
        let sql = "SELECT id, owner FROM agent_runs WHERE status = 'active' ORDER BY started_ms, id";
        self.read(READ, |transaction| {
            let rows = read_all(transaction, READ, sql, &[], |row| {
                Ok((row.get::<String>("id")?, row.get("owner")?))
            })?;
            let (mut abandoned, mut owners) = (Vec::new(), KnownOwners::new(transaction, &this));
            for (id, owner) in rows {
                if !self.holds_agent_run(&id) && is_free(&mut owners, owner, &this)? {
                    abandoned.push(id);
                }
            }
            Ok(abandoned)
        })
    }

    /// Returns the run with this id.
    pub fn agent_run(&self, id: &str) -> Result<Option<AgentRunRow>> {
        self.read(READ, |transaction| select_one(transaction, id))
    }

    /// Returns the runs that match a filter, the newest first.
    pub fn agent_runs(&self, filter: &AgentRunFilter) -> Result<Vec<AgentRunRow>> {
        let AgentRunFilter { status, agent, instance, pools, is_brief, before, limit } = filter;
        let (mut wanted, mut values): (Vec<String>, Vec<Value>) = (Vec::new(), Vec::new());
        let mut add = |column: &str, value: String| {
            values.push(value.into());
            wanted.push(format!("{column} = ?{}", values.len()));
        };
        if let Some(status) = status {
            add("status", status.as_str().to_owned());
        }
        if let Some(agent) = agent {
            add("agent", agent.clone());
        }
        if let Some(instance) = instance {
            add("instance", instance.clone());
        }
        if let Some(pools) = pools {
            wanted.push(is_one_of("pool", pools, &mut values));
        }
        if let Some((started_ms, id)) = before {
            values.extend([Value::from(*started_ms), id.into()]);
            wanted.push(format!("(started_ms, id) < (?{}, ?{})", values.len() - 1, values.len()));
        }
        let filtered =
            if wanted.is_empty() { String::new() } else { format!("WHERE {}", wanted.join(" AND ")) };
        values.push((*limit).into());
        let select = select(if *is_brief { NOTHING_LARGE } else { LARGE });
        let sql = format!("{select} {filtered} ORDER BY started_ms DESC, id DESC LIMIT ?{}", values.len());
        self.read(READ, |transaction| read_all(transaction, READ, &sql, &values, from_row))
    }

    /// Returns the instances of an agent that have runs, sorted, from the one behind `after` on.
    pub fn agent_instances(
        &self,
        agent: &str,
        pools: Option<&[String]>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<String>> {
        let mut values = values![agent, after, limit].to_vec();
        let of_pools = pools.map(|pools| format!("AND {}", is_one_of("pool", pools, &mut values)));
        let sql = format!(
            "SELECT DISTINCT instance AS text FROM agent_runs
             WHERE agent = ?1 AND instance > ?2 {} ORDER BY instance LIMIT ?3",
            of_pools.unwrap_or_default()
        );
        self.texts(&sql, &values)
    }

    /// Tells whether a task of this process holds the run.
    pub fn holds_agent_run(&self, id: &str) -> bool {
        held().contains(&(self.identity.clone(), id.to_owned()))
    }

    /// Returns at most `limit` events of a run, from the number `from` on, as JSON.
    pub fn agent_events(&self, run: &str, from: u64, limit: u64) -> Result<Vec<String>> {
        let sql =
            "SELECT event AS text FROM agent_events WHERE run = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
        self.texts(sql, values![run, from, limit])
    }

    /// Returns the steps of a run, as JSON, with their sessions and numbers.
    pub fn agent_steps(&self, run: &str) -> Result<Vec<(String, u64, String)>> {
        self.read(READ, |transaction| {
            let sql = "SELECT session, number, step FROM agent_steps WHERE run = ?1 ORDER BY session, number";
            read_all(transaction, READ, sql, values![run], |row| {
                Ok((row.get("session")?, row.get("number")?, row.get("step")?))
            })
        })
    }

    /// Returns the entries of a conversation, as JSON, or `None` if there is no such conversation.
    pub fn agent_conversation(&self, key: &str) -> Result<Option<Vec<String>>> {
        let sql = "SELECT entry AS text FROM agent_entries WHERE conversation = ?1 ORDER BY number";
        let entries = self.texts(sql, values![key])?;
        if !entries.is_empty() {
            return Ok(Some(entries));
        }
        let there = self.texts("SELECT key AS text FROM agent_conversations WHERE key = ?1", values![key])?;
        Ok((!there.is_empty()).then_some(entries))
    }

    /// Returns the column `text` of a statement's rows.
    fn texts(&self, sql: &str, values: &[Value]) -> Result<Vec<String>> {
        self.read(READ, |transaction| read_all(transaction, READ, sql, values, |row| row.get("text")))
    }
}

/// Tells whether a run may be taken by this process, as far as the owner in its row tells.
fn is_free(owners: &mut KnownOwners<'_, '_>, owner: Option<String>, this: &Owner) -> Result<bool> {
    let owner: Option<Owner> = owner.and_then(|owner| serde_json::from_str(&owner).ok());
    match owner {
        Some(owner) if owner != *this => owners.is_alive(&owner).map(|is_alive| !is_alive),
        _ => Ok(true),
    }
}

/// Returns the condition that a column has one of these values, which it adds to those of the statement.
fn is_one_of(column: &str, wanted: &[String], values: &mut Vec<Value>) -> String {
    let first = values.len() + 1;
    values.extend(wanted.iter().map(Value::from));
    let numbers: Vec<String> = (first..=values.len()).map(|number| format!("?{number}")).collect();
    // No list of a statement may be empty.
    if numbers.is_empty() { "1 = 0".to_owned() } else { format!("{column} IN ({})", numbers.join(", ")) }
}

fn held() -> MutexGuard<'static, HashSet<(StoreIdentity, String)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn select(large: &str) -> String {
    format!(
        "SELECT id, pool, instance, agent, sandbox, status, error, started_ms, ended_ms, {large} FROM agent_runs"
    )
}

fn select_one(transaction: &Transaction<'_>, id: &str) -> Result<Option<AgentRunRow>> {
    let sql = format!("{} WHERE id = ?1", select(LARGE));
    read_one(transaction, READ, &sql, values![id], from_row)
}

fn from_row(row: &DatabaseRow) -> std::result::Result<AgentRunRow, DatabaseError> {
    Ok(AgentRunRow {
        id: row.get("id")?,
        pool: row.get("pool")?,
        instance: row.get("instance")?,
        agent: row.get("agent")?,
        sandbox: row.get("sandbox")?,
        status: row::parsed(row, "status", AgentRunStatus::from_name)?,
        payload: row.get("payload")?,
        options: row.get("options")?,
        result: row.get("result")?,
        error: row.get("error")?,
        started_ms: row.get("started_ms")?,
        ended_ms: row.get("ended_ms")?,
    })
}

pub(super) fn no_run(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no run `{id}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AgentChange;

    fn run(id: &str) -> AgentRunRow {
        AgentRunRow {
            id: id.to_owned(),
            pool: None,
            instance: "i".into(),
            agent: "a".into(),
            sandbox: None,
            status: AgentRunStatus::Active,
            payload: "{}".into(),
            options: None,
            result: None,
            error: None,
            started_ms: 1,
            ended_ms: None,
        }
    }

    fn event(number: u64) -> AgentChange {
        AgentChange::Event { number, kind: "log".into(), event: format!("{{\"n\":{number}}}") }
    }

    #[test]
    fn a_run_has_one_owner_and_what_an_older_lease_writes_is_refused() {
        let store = Store::in_memory().unwrap();
        let first = store.begin_agent_run(&run("r")).unwrap();
        assert!(store.take_agent_run("r").unwrap().is_none());
        assert!(store.abandoned_agent_runs().unwrap().is_empty());
        // A lease that was released, as only a defect could still use it.
        let stale = AgentRunLease::new(&store, "r", 1);
        drop(first);
        assert_eq!(store.abandoned_agent_runs().unwrap(), ["r"]);
        let second = store.take_agent_run("r").unwrap().unwrap();
        store.write_agents(Some(&second), &[event(0)]).unwrap();
        let error = store.write_agents(Some(&stale), &[event(1)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(store.agent_events("r", 0, 10).unwrap().len(), 1);
    }

    #[test]
    fn a_run_whose_lease_is_dropped_names_no_owner_for_other_processes() {
        let store = Store::in_memory().unwrap();
        let owners = || store.texts("SELECT coalesce(owner, 'nobody') AS text FROM agent_runs", &[]).unwrap();
        let lease = store.begin_agent_run(&run("r")).unwrap();
        assert_ne!(owners(), ["nobody"]);
        drop(lease);
        assert_eq!(owners(), ["nobody"]);
    }

    #[test]
    fn a_conversation_is_written_by_one_active_run() {
        let store = Store::in_memory().unwrap();
        let (first, second) =
            (store.begin_agent_run(&run("r")).unwrap(), store.begin_agent_run(&run("s")).unwrap());
        let begin = AgentChange::Begin { key: "k".into() };
        let begins = |lease: Option<&AgentRunLease>| store.write_agents(lease, std::slice::from_ref(&begin));
        begins(Some(&first)).unwrap();
        begins(Some(&first)).unwrap();
        for other in [Some(&second), None] {
            let error = begins(other).unwrap_err();
            assert_eq!((error.kind(), error.to_string().contains("`r`")), (ErrorKind::Conflict, true));
        }
        let end = AgentChange::End { status: AgentRunStatus::Completed, result: None, error: None };
        store.write_agents(Some(&first), &[end]).unwrap();
        begins(Some(&second)).unwrap();
    }

    #[test]
    fn an_instance_keeps_its_last_fifty_runs() {
        let store = Store::in_memory().unwrap();
        for number in 0..=MAX_ENDED_RUNS_PER_INSTANCE {
            let started_ms = i64::try_from(number).unwrap();
            let row = AgentRunRow { started_ms, ..run(&format!("r{number}")) };
            let lease = store.begin_agent_run(&row).unwrap();
            let end = AgentChange::End { status: AgentRunStatus::Completed, result: None, error: None };
            store.write_agents(Some(&lease), &[event(0), end]).unwrap();
            let is_over = number == MAX_ENDED_RUNS_PER_INSTANCE;
            assert_eq!(store.agent_run("r0").unwrap().is_none(), is_over, "{number}");
        }
        assert!(store.agent_events("r0", 0, 1).unwrap().is_empty());
        assert_eq!(store.agent_events("r1", 0, 1).unwrap().len(), 1);
    }

    #[test]
    fn a_pool_sees_its_own_runs_and_instances() {
        let store = Store::in_memory().unwrap();
        let begin = |id: &str, pool: Option<&str>, instance: &str| {
            let row = AgentRunRow { pool: pool.map(str::to_owned), instance: instance.into(), ..run(id) };
            store.begin_agent_run(&row).unwrap()
        };
        let _leases = [begin("r1", Some("p"), "x"), begin("r2", Some("q"), "y"), begin("r3", None, "z")];
        let pools = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let brief = AgentRunFilter { is_brief: true, limit: 1, ..AgentRunFilter::default() };
        assert_eq!(store.agent_runs(&brief).unwrap()[0].payload, "null");
        let of = |pools: Option<Vec<String>>| -> Vec<String> {
            let filter = AgentRunFilter { pools, limit: 10, ..AgentRunFilter::default() };
            store.agent_runs(&filter).unwrap().into_iter().map(|row| row.id).collect()
        };
        assert_eq!(of(Some(pools(&["p"]))), ["r1"]);
        assert!(of(Some(Vec::new())).is_empty());
        assert_eq!(of(None).len(), 3);
        let instances = |pools: Option<&[String]>, after: &str, limit| {
            store.agent_instances("a", pools, after, limit).unwrap()
        };
        assert_eq!(instances(Some(&pools(&["p", "q"])), "", 10), ["x", "y"]);
        assert_eq!(instances(None, "x", 1), ["y"]);
        assert!(store.holds_agent_run("r1") && !store.holds_agent_run("r9"));
    }

    #[test]
    fn changes_are_written_together_or_not_at_all() {
        let store = Store::in_memory().unwrap();
        let lease = store.begin_agent_run(&run("r")).unwrap();
        let entry = AgentChange::Append { key: "k".into(), entry: "1".into() };
        store.write_agents(Some(&lease), &[entry.clone(), event(0)]).unwrap();
        // An event with this number exists.
        store.write_agents(Some(&lease), &[entry, event(0)]).unwrap_err();
        assert_eq!(store.agent_conversation("k").unwrap().unwrap(), ["1"]);
        assert_eq!(store.agent_conversation("none").unwrap(), None);
        store.write_agents(None, &[AgentChange::Delete { key: "k".into() }]).unwrap();
        assert_eq!(store.agent_conversation("k").unwrap(), None);
    }

    #[test]
    fn a_run_that_has_ended_is_not_written_any_more() {
        let store = Store::in_memory().unwrap();
        let lease = store.begin_agent_run(&run("r")).unwrap();
        let end =
            AgentChange::End { status: AgentRunStatus::Completed, result: Some("7".into()), error: None };
        store.write_agents(Some(&lease), &[event(0), end]).unwrap();
        assert!(store.write_agents(Some(&lease), &[event(1)]).is_err());
        let row = store.agent_run("r").unwrap().unwrap();
        assert_eq!((row.status, row.result.as_deref()), (AgentRunStatus::Completed, Some("7")));
        drop(lease);
        assert!(store.take_agent_run("r").unwrap().is_none());
        assert_eq!(store.take_agent_run("none").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn runs_are_listed_newest_first_by_what_is_wanted_a_page_at_a_time() {
        let store = Store::in_memory().unwrap();
        let leases: Vec<_> = (1..=3)
            .map(|number| {
                let row = AgentRunRow { started_ms: number, ..run(&format!("r{number}")) };
                store.begin_agent_run(&row).unwrap()
            })
            .collect();
        let ids = |filter: AgentRunFilter| -> Vec<String> {
            store.agent_runs(&filter).unwrap().into_iter().map(|row| row.id).collect()
        };
        let two = AgentRunFilter { limit: 2, agent: Some("a".into()), ..AgentRunFilter::default() };
        assert_eq!(ids(two.clone()), ["r3", "r2"]);
        assert_eq!(ids(AgentRunFilter { before: Some((2, "r2".into())), ..two.clone() }), ["r1"]);
        assert!(ids(AgentRunFilter { status: Some(AgentRunStatus::Errored), ..two }).is_empty());
        drop(leases);
    }
}
