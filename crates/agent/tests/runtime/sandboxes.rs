//! The sandbox of a harness: it is found once, shared by all sessions, and kept when the harness is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, Isolation, Result, Sandbox, SandboxInfo, SandboxProvider, SandboxSpec, ValidSpec,
};
use eyot_agent::{
    AgentError, AgentSandbox, Agents, HarnessOptions, MemoryStore, PromptOptions, ScriptedTurn, TaskOptions,
};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_providers::memory::MemoryProvider;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{agent_with, tool_results};

/// A provider in memory that counts the calls that create or open a sandbox.
#[derive(Default)]
struct Counting {
    inner: MemoryProvider,
    asked: AtomicUsize,
    /// Told of a create, which then never ends.
    stalled: Option<Notify>,
}

#[async_trait]
impl SandboxProvider for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn lives_with_its_process(&self) -> bool {
        self.inner.lives_with_its_process()
    }

    async fn isolation(&self) -> Result<Isolation> {
        self.inner.isolation().await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(stalled) = &self.stalled {
            stalled.notify_one();
            std::future::pending::<()>().await;
        }
        self.inner.create(spec).await
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let opened = self.inner.open(id_or_name).await;
        self.asked.fetch_add(usize::from(opened.is_ok()), Ordering::Relaxed);
        opened
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.inner.list().await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.inner.remove(id_or_name).await
    }
}

fn bash(id: &str, command: &str) -> ScriptedTurn {
    ScriptedTurn::call(id, "bash", json!({"command": command}))
}

#[tokio::test]
async fn the_sandbox_is_resolved_once_per_harness_and_shared_by_its_sessions_and_tasks() {
    let provider = Arc::new(Counting::default());
    let shared: Arc<dyn SandboxProvider> = provider.clone();
    let options = HarnessOptions { sandbox: AgentSandbox::of_provider(shared), ..HarnessOptions::default() };
    let turns = [
        bash("1", "echo one > file"),
        ScriptedTurn::text("written"),
        bash("2", "cat file"),
        ScriptedTurn::text("read"),
        bash("3", "cat file"),
        ScriptedTurn::text("read"),
    ];
    let agent = agent_with(turns, options).await;
    agent.session.prompt("write", PromptOptions::default()).await.unwrap();
    let other = agent.harness.session_named("other").await.unwrap();
    other.prompt("read", PromptOptions::default()).await.unwrap();
    other.task("read", TaskOptions::default()).await.unwrap();
    let requests = agent.model.requests();
    assert_eq!(tool_results(&requests[3])[0].0, "one");
    assert_eq!(tool_results(&requests[5])[0].0, "one");
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn closing_a_harness_does_not_destroy_the_sandbox_and_its_instance_finds_it_again() {
    let provider: Arc<dyn SandboxProvider> = Arc::new(MemoryProvider::default());
    let options = || HarnessOptions {
        sandbox: AgentSandbox::of_provider(Arc::clone(&provider)),
        instance_id: Some("Customer 42".into()),
        ..HarnessOptions::default()
    };
    let first = agent_with([], options()).await;
    first.session.sandbox().await.unwrap().write("kept", "yes").await.unwrap();
    drop(first);
    assert_eq!(provider.list().await.unwrap().len(), 1);
    let second = agent_with([], options()).await;
    let sandbox = second.session.sandbox().await.unwrap();
    assert_eq!(
        (sandbox.name().as_str(), sandbox.read_text("kept").await.unwrap().as_str()),
        ("customer-42", "yes")
    );
}

#[tokio::test]
async fn a_ready_sandbox_and_a_pool_will_do_as_well() {
    let provider: Arc<dyn SandboxProvider> = Arc::new(MemoryProvider::default());
    let ready = Sandbox::create(provider.as_ref(), SandboxSpec::default()).await.unwrap();
    let pool = SandboxPool::open(provider, PoolOptions::default()).unwrap();
    for sandbox in [AgentSandbox::Sandbox(ready), AgentSandbox::Pool(pool)] {
        let options = HarnessOptions { sandbox, ..HarnessOptions::default() };
        let agent = agent_with([bash("1", "echo hi"), ScriptedTurn::text("ok")], options).await;
        agent.session.prompt("go", PromptOptions::default()).await.unwrap();
        assert_eq!(tool_results(&agent.model.requests()[1])[0].0, "hi");
    }
}

#[tokio::test]
async fn a_working_directory_is_that_of_tools_files_and_the_prompt() {
    let provider: Arc<dyn SandboxProvider> = Arc::new(MemoryProvider::default());
    let ready = Sandbox::create(provider.as_ref(), SandboxSpec::default()).await.unwrap();
    ready.write("project/AGENTS.md", "Use tabs.").await.unwrap();
    ready.write("project/CLAUDE.md", "Be brief.").await.unwrap();
    let options = HarnessOptions {
        sandbox: AgentSandbox::Sandbox(ready.clone()),
        cwd: Some("project".into()),
        ..HarnessOptions::default()
    };
    let agent = agent_with([bash("1", "pwd"), ScriptedTurn::text("ok")], options).await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let cwd = format!("{}/project", ready.cwd());
    let requests = agent.model.requests();
    assert_eq!(tool_results(&requests[1])[0].0, cwd);
    let system = requests[0].system_prompt.clone().unwrap();
    assert!(
        system.contains("Use tabs.")
            && system.contains("Be brief.")
            && system.contains(&format!("Working directory: {cwd}")),
        "{system}"
    );
    assert!(system.ends_with("Directory structure:\nAGENTS.md\nCLAUDE.md"), "{system}");
    assert_eq!(agent.harness.sandbox().await.unwrap().cwd().as_str(), cwd);
}

#[tokio::test]
async fn a_run_that_is_aborted_while_its_sandbox_is_made_ends() {
    let provider = Arc::new(Counting { stalled: Some(Notify::new()), ..Counting::default() });
    let shared: Arc<dyn SandboxProvider> = provider.clone();
    let agents = Agents::new(Arc::new(MemoryStore::default()));
    agents
        .register("waits", move |run| {
            let sandbox = AgentSandbox::of_provider(Arc::clone(&shared));
            async move {
                run.init(HarnessOptions { sandbox, ..HarnessOptions::default() }).await?;
                Ok(json!(null))
            }
        })
        .unwrap();
    let run = agents.run("waits", "i", json!({})).await.unwrap();
    provider.stalled.as_ref().unwrap().notified().await;
    run.abort("enough");
    let ended = run.result().await.unwrap_err();
    assert!(matches!(ended, AgentError::Aborted(reason) if reason == "enough"));
}
