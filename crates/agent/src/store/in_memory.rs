//! A store in the memory of this process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use eyot::{Error, ErrorKind, Result};
use eyot_engine::store::{MAX_ENDED_RUNS_PER_INSTANCE, conversation_in_use};

use super::{
    AgentStore, DEFAULT_RUN_LIMIT, RunFilter, RunLease, RunRecord, RunSignals, RunStatus, RunWatch,
    StoreChange,
};
use crate::conversation::ConversationEntry;
use crate::event::AgentEvent;
use crate::event_limit::stored_event;
use crate::message::timestamp_ms;
use crate::step::AgentStep;

/// A store in the memory of this process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<StoredAgents>,
    signals: RunSignals,
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

    /// Checks that a change can be made, so that of several all are made or none.
    fn check(&mut self, lease: Option<&RunLease>, change: &StoreChange) -> Result<()> {
        match change {
            StoreChange::Begin { key } => self.check_claim(lease, key),
            StoreChange::Append { .. } | StoreChange::Delete { .. } => Ok(()),
            StoreChange::Event(_) | StoreChange::Step { .. } | StoreChange::End { .. } => {
                self.active(lease).map(drop)
            }
        }
    }

    /// Checks that no other active run has the conversation.
    fn check_claim(&self, lease: Option<&RunLease>, key: &str) -> Result<()> {
        let is_active =
            |id: &str| self.runs.get(id).is_some_and(|run| run.record.status == RunStatus::Active);
        let owner = self.conversations.get(key).and_then(|conversation| conversation.run.as_deref());
        match owner.filter(|id| is_active(id) && lease.map(RunLease::id) != Some(*id)) {
            None => Ok(()),
            Some(other) => Err(conversation_in_use(other)),
        }
    }

    fn begin(&mut self, lease: Option<&RunLease>, key: String) {
        self.conversations.entry(key).or_default().run = lease.map(|lease| lease.id().to_owned());
    }

    /// Forgets the oldest runs that have ended of this one's instance.
    fn forget_old_runs(&mut self, id: &str) {
        let owner = |run: &RunRecord| (run.pool.clone(), run.agent_name.clone(), run.instance_id.clone());
        let of = self.runs.get(id).map(|run| owner(&run.record));
        let ended =
            |run: &&MemoryRun| run.record.status != RunStatus::Active && Some(owner(&run.record)) == of;
        let mut runs: Vec<(u64, String)> = self
            .runs
            .values()
            .filter(ended)
            .map(|run| (run.record.started_ms, run.record.run_id.clone()))
            .collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in runs.into_iter().skip(MAX_ENDED_RUNS_PER_INSTANCE) {
            self.runs.remove(&id);
        }
    }

    fn apply(&mut self, lease: Option<&RunLease>, change: StoreChange) -> Result<()> {
        match change {
            StoreChange::Begin { key } => self.begin(lease, key),
            StoreChange::Append { key, entry } => {
                self.conversations.entry(key).or_default().entries.push(*entry);
            }
            StoreChange::Delete { key } => drop(self.conversations.remove(&key)),
            StoreChange::Event(event) => self.active(lease)?.events.push(stored_event(&event)),
            StoreChange::Step { session, number, step } => {
                self.active(lease)?.steps.insert((session, number), *step);
            }
            StoreChange::End { result, error } => {
                let record = &mut self.active(lease)?.record;
                record.status = if error.is_none() { RunStatus::Completed } else { RunStatus::Errored };
                record.ended_ms = Some(timestamp_ms());
                (record.result, record.error) = (result, error);
                let id = record.run_id.clone();
                self.forget_old_runs(&id);
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
        changes.iter().try_for_each(|change| kept.check(lease, change))?;
        changes.into_iter().try_for_each(|change| kept.apply(lease, change))?;
        lease.iter().for_each(|lease| self.signals.tell(lease.id()));
        Ok(())
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
                && is_of(filter.pools.as_deref(), run)
                && filter.before.as_ref().is_none_or(|(started, id)| {
                    (run.started_ms, run.run_id.as_str()) < (*started, id.as_str())
                })
        });
        records.sort_by_key(|run| std::cmp::Reverse((run.started_ms, run.run_id.clone())));
        let limit = usize::try_from(filter.limit.unwrap_or(DEFAULT_RUN_LIMIT)).unwrap_or(usize::MAX);
        let shown = |run: &RunRecord| if filter.is_brief { run.brief() } else { run.clone() };
        Ok(records.into_iter().take(limit).map(shown).collect())
    }

    async fn instances(
        &self,
        agent: &str,
        pools: Option<&[String]>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<String>> {
        let kept = self.lock();
        let runs = kept.runs.values().map(|run| &run.record);
        let runs = runs
            .filter(|run| run.agent_name == agent && run.instance_id.as_str() > after && is_of(pools, run));
        let instances: BTreeSet<&str> = runs.map(|run| run.instance_id.as_str()).collect();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(instances.into_iter().take(limit).map(str::to_owned).collect())
    }

    async fn watch_run(&self, id: &str) -> Result<RunWatch> {
        Ok(self.signals.watch(id))
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

fn is_of(pools: Option<&[String]>, run: &RunRecord) -> bool {
    pools.is_none_or(|pools| run.pool.as_ref().is_some_and(|pool| pools.contains(pool)))
}
