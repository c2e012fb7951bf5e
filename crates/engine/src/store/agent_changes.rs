//! Changes of runs of agents and of their conversations.

use std::sync::atomic::Ordering;

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result};

use super::Store;
use super::agent_runs::{AgentRunLease, AgentRunStatus, MAX_ENDED_RUNS_PER_INSTANCE, WRITE, no_run};
use super::database::Transaction;
use super::statement::{execute, read_one};
use super::value::values;

/// A change of a run or of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChange {
    /// Begins a conversation, unless there is one with this key. It is the run's until that ends. `conflict`: it is another
    /// run's.
    Begin {
        /// The conversation's key.
        key: String,
    },
    /// Adds an entry at the end of a conversation.
    Append {
        /// The conversation's key.
        key: String,
        /// The entry, as JSON.
        entry: String,
    },
    /// Deletes a conversation. A missing one is not an error.
    Delete {
        /// The conversation's key.
        key: String,
    },
    /// Adds an event to the run.
    Event {
        /// The number: one more than the last.
        number: u64,
        /// The kind.
        kind: String,
        /// The event, as JSON.
        event: String,
    },
    /// Records a step of the run, or replaces its record.
    Step {
        /// The session.
        session: String,
        /// The number in the session.
        number: u64,
        /// The step, as JSON.
        step: String,
    },
    /// Ends the run.
    End {
        /// The final state.
        status: AgentRunStatus,
        /// The result, as JSON.
        result: Option<String>,
        /// The failure, as JSON.
        error: Option<String>,
    },
}

impl Store {
    /// Writes all of these changes in order, or none of them. `conflict`: the run was taken over, or has ended.
    pub fn write_agents(&self, lease: Option<&AgentRunLease>, changes: &[AgentChange]) -> Result<()> {
        self.write(WRITE, |transaction| {
            if let Some(lease) = lease {
                check_lease(transaction, lease)?;
            }
            changes.iter().try_for_each(|change| apply(transaction, lease, change))
        })?;
        if let Some(lease) = lease
            && changes.iter().any(|change| matches!(change, AgentChange::End { .. }))
        {
            lease.is_over.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn check_lease(transaction: &Transaction<'_>, lease: &AgentRunLease) -> Result<()> {
    let sql = "SELECT status, lease FROM agent_runs WHERE id = ?1";
    let found = read_one(transaction, WRITE, sql, values![&lease.id], |row| {
        Ok((row.get::<String>("status")?, row.get::<i64>("lease")?))
    })?;
    match found {
        Some((status, number)) if status == AgentRunStatus::Active.as_str() && number == lease.number => {
            Ok(())
        }
        Some(_) => {
            let message = format!("write run `{}`: it has ended, or another process runs it now", lease.id);
            Err(Error::new(ErrorKind::Conflict, message))
        }
        None => Err(no_run(&lease.id)),
    }
}

fn apply(transaction: &Transaction<'_>, lease: Option<&AgentRunLease>, change: &AgentChange) -> Result<()> {
    let run = || {
        lease.map(|lease| lease.id.as_str()).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "write a run of an agent: the change needs a lease")
        })
    };
    match change {
        AgentChange::Begin { key } => {
            begin(transaction, key)?;
            claim_conversation(transaction, key, lease.map(AgentRunLease::id))
        }
        AgentChange::Append { key, entry } => {
            begin(transaction, key)?;
            let sql = "INSERT INTO agent_entries SELECT ?1, coalesce(max(number) + 1, 0), ?2
                       FROM agent_entries WHERE conversation = ?1";
            execute(transaction, sql, values![key, entry])?;
            let sql = "UPDATE agent_conversations SET changed_ms = ?2 WHERE key = ?1";
            execute(transaction, sql, values![key, now_ms()])
        }
        AgentChange::Delete { key } => {
            execute(transaction, "DELETE FROM agent_conversations WHERE key = ?1", values![key])
        }
        AgentChange::Event { number, kind, event } => {
            let sql = "INSERT INTO agent_events VALUES (?1, ?2, ?3, ?4)";
            execute(transaction, sql, values![run()?, *number, kind, event])
        }
        AgentChange::Step { session, number, step } => {
            let sql = "INSERT INTO agent_steps VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (run, session, number) DO UPDATE SET step = excluded.step";
            execute(transaction, sql, values![run()?, session, *number, step])
        }
        AgentChange::End { status, result, error } => {
            let sql =
                "UPDATE agent_runs SET status = ?2, result = ?3, error = ?4, ended_ms = ?5, owner = NULL
                       WHERE id = ?1";
            execute(transaction, sql, values![run()?, status.as_str(), result, error, now_ms()])?;
            delete_old_runs(transaction, run()?)
        }
    }
}

/// Deletes the oldest runs of this one's instance that have ended.
fn delete_old_runs(transaction: &Transaction<'_>, run: &str) -> Result<()> {
    let sql = "DELETE FROM agent_runs WHERE id IN (
                   SELECT id FROM agent_runs
                   WHERE (agent, instance) = (SELECT agent, instance FROM agent_runs WHERE id = ?1)
                       AND pool IS NOT DISTINCT FROM (SELECT pool FROM agent_runs WHERE id = ?1) AND status != 'active'
                   ORDER BY started_ms DESC, id DESC LIMIT 1000000000 OFFSET ?2)";
    let kept = i64::try_from(MAX_ENDED_RUNS_PER_INSTANCE).unwrap_or(i64::MAX);
    execute(transaction, sql, values![run, kept])
}

fn begin(transaction: &Transaction<'_>, key: &str) -> Result<()> {
    let sql = "INSERT INTO agent_conversations (key, created_ms, changed_ms) VALUES (?1, ?2, ?2)
               ON CONFLICT DO NOTHING";
    execute(transaction, sql, values![key, now_ms()])
}

/// Returns the error for a conversation that another active run writes.
pub fn conversation_in_use(run: &str) -> Error {
    let message = format!("the conversation is in use by run `{run}`");
    Error::new(ErrorKind::Conflict, message).with_hint("wait for the end of that run, or use another session")
}

/// Makes a conversation a run's own. Without a run it must be nobody's.
fn claim_conversation(transaction: &Transaction<'_>, key: &str, run: Option<&str>) -> Result<()> {
    let sql = "SELECT run FROM agent_conversations AS conversation JOIN agent_runs ON agent_runs.id = run
               WHERE key = ?1 AND status = 'active' AND run IS DISTINCT FROM ?2";
    let other = read_one(transaction, WRITE, sql, values![key, run], |row| row.get::<String>("run"))?;
    if let Some(other) = other {
        return Err(conversation_in_use(&other));
    }
    execute(transaction, "UPDATE agent_conversations SET run = ?2 WHERE key = ?1", values![key, run])
}
