//! The store of agents in the engine's store. It outlives the process, and another process may resume its runs.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use eyot::{Error, ErrorKind, Result};
use eyot_engine::ChangeWatch;
use eyot_engine::store::{AgentChange, AgentRunFilter, AgentRunLease, AgentRunRow, AgentRunStatus, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    AgentRunOptions, AgentStore, DEFAULT_RUN_LIMIT, RunFilter, RunLease, RunRecord, RunSignals, RunStatus,
    RunWatch, StoreChange,
};
use crate::conversation::ConversationEntry;
use crate::event::AgentEvent;
use crate::event_limit::stored_event;
use crate::step::AgentStep;

/// The store of agents in the engine's store. It outlives the process, and another process may resume its runs.
#[derive(Clone)]
pub struct EngineStore {
    store: Arc<Store>,
    signals: RunSignals,
    /// The changes of the store's files; `None`: it is in memory. They are watched from the first watch of another process's
    /// run on.
    folder: Arc<OnceLock<Option<ChangeWatch>>>,
}

impl EngineStore {
    /// Creates the store of agents in an engine's store.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, signals: RunSignals::default(), folder: Arc::default() }
    }

    fn lease(&self, lease: AgentRunLease) -> RunLease {
        let kept = KeptLease { signals: self.signals.clone(), lease: Some(lease) };
        RunLease { id: kept.lease.as_ref().map_or("", AgentRunLease::id).into(), kept: Some(Arc::new(kept)) }
    }
}

/// A lease in the engine's store. Those who watch the run are woken when it is given up: another process may take it.
#[derive(Debug)]
pub(super) struct KeptLease {
    lease: Option<AgentRunLease>,
    signals: RunSignals,
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let id = lease.id().to_owned();
        drop(lease);
        self.signals.tell(&id);
    }
}

#[async_trait]
impl AgentStore for EngineStore {
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>> {
        let key = key.to_owned();
        let entries = self.store.ask(move |store| store.agent_conversation(&key)).await?;
        entries.map(|entries| entries.iter().map(|entry| read(entry)).collect()).transpose()
    }

    async fn commit(&self, lease: Option<&RunLease>, changes: Vec<StoreChange>) -> Result<()> {
        let lease = lease.and_then(|lease| lease.kept.clone());
        let changes = changes.into_iter().map(change).collect::<Result<Vec<_>>>()?;
        let signals = self.signals.clone();
        self.store
            .ask(move |store| {
                let lease = lease.as_ref().and_then(|kept| kept.lease.as_ref());
                store.write_agents(lease, &changes)?;
                lease.iter().for_each(|lease| signals.tell(lease.id()));
                Ok(())
            })
            .await
    }

    async fn begin_run(&self, run: RunRecord) -> Result<RunLease> {
        let row = AgentRunRow {
            id: run.run_id,
            pool: run.pool,
            instance: run.instance_id,
            agent: run.agent_name,
            sandbox: run.sandbox,
            status: AgentRunStatus::Active,
            payload: json(&run.payload)?,
            options: Some(json(&run.options)?),
            result: None,
            error: None,
            started_ms: i64::try_from(run.started_ms).unwrap_or(i64::MAX),
            ended_ms: None,
        };
        self.store.ask(move |store| store.begin_agent_run(&row)).await.map(|lease| self.lease(lease))
    }

    async fn take_run(&self, id: &str) -> Result<Option<RunLease>> {
        let id = id.to_owned();
        Ok(self.store.ask(move |store| store.take_agent_run(&id)).await?.map(|lease| self.lease(lease)))
    }

    async fn abandoned_runs(&self) -> Result<Vec<String>> {
        self.store.ask(|store| store.abandoned_agent_runs()).await
    }

    async fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        let id = id.to_owned();
        self.store.ask(move |store| store.agent_run(&id)).await?.map(record).transpose()
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>> {
        let filter = AgentRunFilter {
            status: filter.status.map(status_of),
            agent: filter.agent_name,
            instance: filter.instance_id,
            pools: filter.pools,
            is_brief: filter.is_brief,
            before: filter.before.map(|(started, id)| (i64::try_from(started).unwrap_or(i64::MAX), id)),
            limit: filter.limit.unwrap_or(DEFAULT_RUN_LIMIT),
        };
        let rows = self.store.ask(move |store| store.agent_runs(&filter)).await?;
        rows.into_iter().map(record).collect()
    }

    async fn instances(
        &self,
        agent: &str,
        pools: Option<&[String]>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<String>> {
        let (agent, pools, after) = (agent.to_owned(), pools.map(<[_]>::to_vec), after.to_owned());
        self.store.ask(move |store| store.agent_instances(&agent, pools.as_deref(), &after, limit)).await
    }

    async fn watch_run(&self, id: &str) -> Result<RunWatch> {
        let watch = self.signals.watch(id);
        if self.store.holds_agent_run(id) {
            return Ok(watch);
        }
        let folder = Arc::clone(&self.folder);
        let folder = self.store.ask(move |store| match folder.get() {
            Some(folder) => Ok(folder.clone()),
            None => {
                let changes = store.changes()?;
                Ok(folder.get_or_init(|| changes).clone())
            }
        });
        let folder = folder.await?.map(|mut folder| {
            folder.mark_seen();
            folder
        });
        Ok(watch.with_folder(folder))
    }

    async fn events(&self, run: &str, from: u64, limit: u64) -> Result<Vec<AgentEvent>> {
        let run = run.to_owned();
        let events = self.store.ask(move |store| store.agent_events(&run, from, limit)).await?;
        events.iter().map(|event| read(event)).collect()
    }

    async fn steps(&self, run: &str) -> Result<Vec<(String, u64, AgentStep)>> {
        let run = run.to_owned();
        let steps = self.store.ask(move |store| store.agent_steps(&run)).await?;
        steps.into_iter().map(|(session, number, step)| Ok((session, number, read(&step)?))).collect()
    }
}

fn change(change: StoreChange) -> Result<AgentChange> {
    Ok(match change {
        StoreChange::Begin { key } => AgentChange::Begin { key },
        StoreChange::Append { key, entry } => AgentChange::Append { key, entry: json(&entry)? },
        StoreChange::Delete { key } => AgentChange::Delete { key },
        StoreChange::Event(event) => AgentChange::Event {
            number: event.event_index,
            kind: event.kind.name().to_owned(),
            event: json(&stored_event(&event))?,
        },
        StoreChange::Step { session, number, step } => {
            AgentChange::Step { session, number, step: json(&step)? }
        }
        StoreChange::End { result, error } => AgentChange::End {
            status: if error.is_none() { AgentRunStatus::Completed } else { AgentRunStatus::Errored },
            result: Some(json(&result)?),
            error: error.as_ref().map(json).transpose()?,
        },
    })
}

fn record(row: AgentRunRow) -> Result<RunRecord> {
    let ms = |time: i64| u64::try_from(time).unwrap_or_default();
    Ok(RunRecord {
        run_id: row.id,
        pool: row.pool,
        instance_id: row.instance,
        agent_name: row.agent,
        sandbox: row.sandbox,
        status: match row.status {
            AgentRunStatus::Active => RunStatus::Active,
            AgentRunStatus::Completed => RunStatus::Completed,
            AgentRunStatus::Errored => RunStatus::Errored,
        },
        started_ms: ms(row.started_ms),
        ended_ms: row.ended_ms.map(ms),
        payload: read(&row.payload)?,
        options: row.options.as_deref().map(read::<AgentRunOptions>).transpose()?.unwrap_or_default(),
        result: row.result.as_deref().map(read).transpose()?.unwrap_or(Value::Null),
        error: row.error.as_deref().map(read).transpose()?,
    })
}

fn status_of(status: RunStatus) -> AgentRunStatus {
    match status {
        RunStatus::Active => AgentRunStatus::Active,
        RunStatus::Completed => AgentRunStatus::Completed,
        RunStatus::Errored => AgentRunStatus::Errored,
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::Internal, "write a run of an agent: a value can't be written as JSON")
            .with_source(error)
    })
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let message = "read a run of an agent: another version of eyot may have written it";
        Error::new(ErrorKind::Conflict, message).with_source(error)
    })
}
