//! A store that kills its process at a commit.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use eyot::Result;
use eyot_agent::{
    AgentEvent, AgentStep, AgentStore, ConversationEntry, EngineStore, RunFilter, RunLease, RunRecord,
    RunWatch, StoreChange,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::child::Moment;

pub(crate) struct KillingStore {
    inner: EngineStore,
    kill: Option<(Moment, u64)>,
    commits: AtomicU64,
}

impl KillingStore {
    pub(crate) fn new(inner: EngineStore, kill: Option<(Moment, u64)>) -> Self {
        Self { inner, kill, commits: AtomicU64::new(0) }
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn reached(&self, moment: Moment, number: u64) {
        if self.kill == Some((moment, number)) {
            kill_process(getpid(), Signal::KILL).expect("this process can be killed");
        }
    }
}

#[async_trait]
impl AgentStore for KillingStore {
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>> {
        self.inner.conversation(key).await
    }

    async fn commit(&self, lease: Option<&RunLease>, changes: Vec<StoreChange>) -> Result<()> {
        let number = self.commits.fetch_add(1, Ordering::Relaxed);
        self.reached(Moment::Before, number);
        let committed = self.inner.commit(lease, changes).await;
        self.reached(Moment::After, number);
        committed
    }

    async fn begin_run(&self, run: RunRecord) -> Result<RunLease> {
        self.inner.begin_run(run).await
    }

    async fn take_run(&self, id: &str) -> Result<Option<RunLease>> {
        self.inner.take_run(id).await
    }

    async fn abandoned_runs(&self) -> Result<Vec<String>> {
        self.inner.abandoned_runs().await
    }

    async fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        self.inner.run(id).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>> {
        self.inner.runs(filter).await
    }

    async fn instances(
        &self,
        agent: &str,
        pools: Option<&[String]>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<String>> {
        self.inner.instances(agent, pools, after, limit).await
    }

    async fn watch_run(&self, id: &str) -> Result<RunWatch> {
        self.inner.watch_run(id).await
    }

    async fn events(&self, run: &str, from: u64, limit: u64) -> Result<Vec<AgentEvent>> {
        self.inner.events(run, from, limit).await
    }

    async fn steps(&self, run: &str) -> Result<Vec<(String, u64, AgentStep)>> {
        self.inner.steps(run).await
    }
}
