//! A store in the memory of this process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use eyot::{Error, ErrorKind, Result};

use super::{AgentStore, DEFAULT_RUN_LIMIT, RunFilter, RunLease, RunRecord, RunStatus, StoreChange};
use crate::conversation::ConversationEntry;
use crate::event::AgentEvent;
use crate::message::timestamp_ms;
use crate::step::AgentStep;

/// A store in the memory of this process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<StoredAgents>,
}

#[derive(Debug, Default)]
struct StoredAgents {
    conversations: HashMap<String, MemoryConversation>,
    runs: BTreeMap<String, MemoryRun>,
}

#[derive(Debug, Default)]
struct MemoryConversation {
    entries: Vec<ConversationEntry>,
    /// The run that writes it, as long as that is active.
    run: Option<String>,
}

#[derive(Debug)]
struct MemoryRun {
    record: RunRecord,
    events: Vec<AgentEvent>,
    steps: BTreeMap<(String, u64), AgentStep>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, StoredAgents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredAgents {
    fn active(&mut self, lease: Option<&RunLease>) -> Result<&mut MemoryRun> {
        let id = lease.map(RunLease::id).unwrap_or_default();
        let run = self.runs.get_mut(id).filter(|run| run.record.status == RunStatus::Active);
        run.ok_or_else(|| Error::new(ErrorKind::Conflict, format!("write run `{id}`: it has ended")))
    }

    fn begin(&mut self, lease: Option<&RunLease>, key: String) -> Result<()> {
        let run = lease.map(|lease| lease.id().to_owned());
        let conversation = self.conversations.entry(key).or_default();
        let is_active =
            |id: &&String| self.runs.get(*id).is_some_and(|run| run.record.status == RunStatus::Active);
        if let Some(other) =
            conversation.run.as_ref().filter(is_active).filter(|id| run.as_ref() != Some(*id))
        {
            let message = format!("the conversation is in use by run `{other}`");
            let hint = "wait for the end of that run, or use another session";
            return Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
        }
        conversation.run = run;
        Ok(())
    }

    fn apply(&mut self, lease: Option<&RunLease>, change: StoreChange) -> Result<()> {
        match change {
            StoreChange::Begin { key } => self.begin(lease, key)?,
            StoreChange::Append { key, entry } => {
                self.conversations.entry(key).or_default().entries.push(*entry);
            }
            StoreChange::Delete { key } => drop(self.conversations.remove(&key)),
            StoreChange::Event(event) => self.active(lease)?.events.push((*event).clone()),
            StoreChange::Step { session, number, step } => {
                self.active(lease)?.steps.insert((session, number), *step);
            }
            StoreChange::End { result, error } => {
                let record = &mut self.active(lease)?.record;
                record.status = if error.is_none() { RunStatus::Completed } else { RunStatus::Errored };
                record.ended_ms = Some(timestamp_ms());
                (record.result, record.error) = (result, error);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl AgentStore for MemoryStore {
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>> {
        Ok(self.lock().conversations.get(key).map(|conversation| conversation.entries.clone()))
    }

    async fn commit(&self, lease: Option<&RunLease>, changes: Vec<StoreChange>) -> Result<()> {
        let mut kept = self.lock();
        changes.into_iter().try_for_each(|change| kept.apply(lease, change))
    }

    async fn begin_run(&self, run: RunRecord) -> Result<RunLease> {
        let id = run.run_id.clone();
        let mut kept = self.lock();
        if kept.runs.contains_key(&id) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is a run `{id}`")));
        }
        kept.runs.insert(id.clone(), MemoryRun { record: run, events: Vec::new(), steps: BTreeMap::new() });
        Ok(RunLease { id: id.into(), kept: None })
    }

    /// Returns `None`, because a run of this store is lost with its process.
    async fn take_run(&self, id: &str) -> Result<Option<RunLease>> {
        if self.lock().runs.contains_key(id) {
            Ok(None)
        } else {
            Err(Error::new(ErrorKind::NotFound, format!("there is no run `{id}`")))
        }
    }

    async fn abandoned_runs(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        Ok(self.lock().runs.get(id).map(|run| run.record.clone()))
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>> {
        let kept = self.lock();
        let mut records: Vec<&RunRecord> = kept.runs.values().map(|run| &run.record).collect();
        records.retain(|run| {
            filter.status.is_none_or(|status| run.status == status)
                && filter.agent_name.as_ref().is_none_or(|name| run.agent_name == *name)
                && filter.instance_id.as_ref().is_none_or(|id| run.instance_id == *id)
                && filter.before.as_ref().is_none_or(|(started, id)| {
                    (run.started_ms, run.run_id.as_str()) < (*started, id.as_str())
                })
        });
        records.sort_by_key(|run| std::cmp::Reverse((run.started_ms, run.run_id.clone())));
        let limit = usize::try_from(filter.limit.unwrap_or(DEFAULT_RUN_LIMIT)).unwrap_or(usize::MAX);
        Ok(records.into_iter().take(limit).cloned().collect())
    }

    async fn events(&self, run: &str, from: u64, limit: u64) -> Result<Vec<AgentEvent>> {
        let kept = self.lock();
        let events = kept.runs.get(run).map(|run| run.events.as_slice()).unwrap_or_default();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(events.iter().filter(|event| event.event_index >= from).take(limit).cloned().collect())
    }

    async fn steps(&self, run: &str) -> Result<Vec<(String, u64, AgentStep)>> {
        let kept = self.lock();
        let steps = kept.runs.get(run).into_iter().flat_map(|run| &run.steps);
        Ok(steps.map(|((session, number), step)| (session.clone(), *number, step.clone())).collect())
    }
}
