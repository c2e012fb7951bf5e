//! A state folder of the test's own, and servers over it.

use std::sync::Arc;
use std::time::Duration;

use eyot::tools::{ToolDef, ToolOutput, ToolProgress, toolset};
use eyot::{PoolOptions, SandboxName, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::mcp::{McpServer, Pools};
use tokio::time::{Instant, sleep, timeout};

use crate::state_folder::StateFolder;

/// No test may hang; nothing is timed otherwise.
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

    /// A server of the toolset `pool` and the tests' own tools, with a pool for each session.
    pub fn server(&self) -> McpServer {
        let provider = self.provider();
        let pools = Pools::per_session(move || {
            SandboxPool::open(
                provider.clone(),
                PoolOptions { name: name("session"), ..PoolOptions::default() },
            )
        });
        self.server_with(pools)
    }

    /// The same, all sessions sharing a pool that stays.
    pub fn shared(&self) -> (McpServer, SandboxPool) {
        let options = PoolOptions { name: name("shared"), ..PoolOptions::default() };
        let pool = SandboxPool::open(self.provider(), options).unwrap();
        (self.server_with(Pools::Shared(pool.clone())), pool)
    }

    fn server_with(&self, pools: Pools) -> McpServer {
        let tools = toolset("pool").unwrap().with(panics()).unwrap().with(counts()).unwrap();
        McpServer::new(tools, pools).unwrap()
    }

    /// How many sandboxes there are, whosever.
    pub fn count(&self) -> usize {
        let sandboxes = self.folder.path().join("sandboxes");
        std::fs::read_dir(sandboxes).map_or(0, Iterator::count)
    }

    /// Waits until there are so many.
    pub async fn until_count(&self, count: usize) {
        until(&format!("{count} sandboxes"), || self.count() == count).await;
    }
}

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

/// Waits for what no event tells: a folder's content.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < HANG, "{what}: it never came to that");
        sleep(Duration::from_millis(10)).await;
    }
}

/// What comes of it; it must not hang.
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

/// Tells of a thousand steps at once, then waits to be cancelled.
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
