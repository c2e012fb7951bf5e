//! A state folder for each test, and servers over it.

use std::sync::Arc;
use std::time::Duration;

use eyot::SandboxName;
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::mcp::{McpServer, SessionPools};
use eyot_tools::{ToolDef, ToolOutput, ToolProgress, toolset};
use tokio::time::{Instant, sleep, timeout};

use crate::state_folder::StateFolder;

/// A bound for waits that must not hang.
pub const HANG: Duration = Duration::from_secs(120);

/// A state folder.
pub struct Ground {
    folder: StateFolder,
}

impl Ground {
    pub fn new() -> Self {
        Self { folder: StateFolder::new() }
    }

    fn provider(&self) -> Arc<NativeProvider> {
        let state = self.folder.path();
        NativeProvider::new(NativeOptions { state, ..NativeOptions::default() }).unwrap()
    }

    /// Makes a server of the toolset `pool` and the tests' own tools, with a pool for each session.
    pub fn server(&self) -> McpServer {
        let provider = self.provider();
        let pools = SessionPools::per_session(move || {
            SandboxPool::open(
                provider.clone(),
                PoolOptions { name: name("session"), ..PoolOptions::default() },
            )
        });
        self.server_with(pools)
    }

    /// Makes the same server with one pool for all sessions, which stays.
    pub fn shared(&self) -> (McpServer, SandboxPool) {
        let options = PoolOptions { name: name("shared"), ..PoolOptions::default() };
        let pool = SandboxPool::open(self.provider(), options).unwrap();
        (self.server_with(SessionPools::Shared(pool.clone())), pool)
    }

    fn server_with(&self, pools: SessionPools) -> McpServer {
        let tools = toolset("pool").unwrap().with(panics()).unwrap().with(counts()).unwrap();
        McpServer::new(tools, pools).unwrap()
    }

    /// Counts the sandboxes of all pools.
    pub fn count(&self) -> usize {
        let sandboxes = self.folder.path().join("sandboxes");
        std::fs::read_dir(sandboxes).map_or(0, Iterator::count)
    }

    /// Waits until there are this many.
    pub async fn until_count(&self, count: usize) {
        until(&format!("{count} sandboxes"), || self.count() == count).await;
    }
}

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

/// Waits for a state that no event announces, such as a folder's content.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < HANG, "{what}: it never came to that");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the result of `work`, which must not hang.
pub async fn settled<T>(work: impl Future<Output = T>) -> T {
    timeout(HANG, work).await.expect("it hangs")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn panics() -> ToolDef {
    ToolDef::typed("panics", "Fails in the worst way", async |_, _: Nothing| -> eyot::Result<ToolOutput> {
        panic!("on purpose")
    })
    .unwrap()
}

/// Reports a thousand steps at once, then waits to be cancelled.
fn counts() -> ToolDef {
    ToolDef::typed("counts", "Tells of much and never ends", async |context, _: Nothing| {
        for step in 1..=1000 {
            context.report(ToolProgress::new(step, &format!("step {step}")));
        }
        context.cancel.cancelled().await;
        Ok(ToolOutput::text("cancelled"))
    })
    .unwrap()
}
