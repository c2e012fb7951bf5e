//! Many runs at once: their events, and what they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use eyot_agent::{
    AgentStore, Agents, ChatMessage, ContentBlock, EngineStore, HarnessOptions, MemoryStore, Model,
    ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream, ModelTurn, PromptOptions, ScriptedModel,
    StopReason, TokenUsage, ToolCall,
};
use eyot_engine::store::Store;
use eyot_tools::{ToolDef, ToolOutput};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

static INSTANCES: AtomicUsize = AtomicUsize::new(0);

/// The turns of a run, each with one tool call but the last.
const TURNS: usize = 10;

fn nothing() -> eyot::Result<ToolDef> {
    let schema = json!({"type": "object"});
    ToolDef::new("nothing", "Does nothing.", schema, async |_, _: Value| Ok(ToolOutput::text("done")))
}

/// A model that calls a tool in each of its turns but the last. It keeps nothing, so that the loop alone is measured.
struct CountingModel {
    info: ModelInfo,
    turns: usize,
}

#[async_trait]
impl Model for CountingModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        // By the last answer, because a summary takes the place of the first ones.
        let mut since_prompt =
            request.messages.iter().rev().take_while(|message| !matches!(message, ChatMessage::User(_)));
        let said = since_prompt.find_map(|message| match message {
            ChatMessage::ToolResult(result) => result.tool_call_id.parse::<usize>().ok(),
            _ => None,
        });
        let said = said.map_or(0, |last| last + 1);
        let is_last = said + 1 >= self.turns;
        let call = || ToolCall { id: said.to_string(), name: "nothing".to_owned(), arguments: json!({}) };
        let content = vec![if is_last { ContentBlock::text("ok") } else { ContentBlock::ToolCall(call()) }];
        let stop_reason = if is_last { StopReason::Stop } else { StopReason::ToolUse };
        let done = ModelTurn { content, stop_reason, usage: TokenUsage::default() };
        Ok(stream::iter([Ok(ModelEvent::Done(done))]).boxed())
    }
}

/// Agents whose runs have so many turns.
fn agents(store: Arc<dyn AgentStore>, turns: usize) -> Agents {
    let agents = Agents::new(store);
    agents
        .register("works", move |run| async move {
            let model = CountingModel { info: ScriptedModel::new([]).info().clone(), turns };
            let options = HarnessOptions {
                model: Some(Arc::new(model)),
                tools: vec![nothing()?],
                ..HarnessOptions::default()
            };
            let session = run.init(options).await?.session().await?;
            session.prompt("go", PromptOptions::default()).await.map(|answer| json!(answer.text))
        })
        .expect("a new agent");
    agents
}

/// Runs so many at once, and checks that each has all of its events, in order, as its listener hears them and as the store
/// has them.
async fn run_at_once(agents: &Agents, count: usize, turns: usize) {
    let runs = (0..count).map(|_| async move {
        // Each has a conversation of its own.
        let instance = format!("i{}", INSTANCES.fetch_add(1, Ordering::Relaxed));
        let mut run = agents.run("works", &instance, json!({})).await.expect("a run");
        let (mut numbers, mut ended_turns) = (Vec::new(), 0);
        while let Some(event) = run.next_event().await {
            numbers.push(event.event_index);
            ended_turns += usize::from(event.kind.name() == "turn");
        }
        assert_eq!(ended_turns, turns);
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
        let kept = agents.store().events(run.id(), 0, 10_000).await.expect("the events");
        assert!(kept.iter().map(|event| event.event_index).eq(numbers));
        assert_eq!(run.result().await.expect("a result"), json!("ok"));
    });
    join_all(runs).await;
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the state of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kib: Option<u64> = line.split_whitespace().next().and_then(|kib| kib.parse().ok());
    kib.expect("a number") / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_runs_at_once_have_their_events_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("eyot.db")).unwrap();
    run_at_once(&agents(Arc::new(EngineStore::new(store)), TURNS), 200, TURNS).await;
}

mod soak {
    use super::*;

    /// `cargo test --release -p eyot-agent --test runtime many::soak -- --ignored --nocapture` prints the figures.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "cargo xtask soak load"]
    async fn a_turn_costs_little_and_runs_leave_no_memory_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("eyot.db")).unwrap();
        let kept = super::agents(Arc::new(EngineStore::new(store)), 100);
        let in_memory = super::agents(Arc::new(MemoryStore::default()), 100);
        for (name, agents) in [("in memory", &in_memory), ("on disk", &kept)] {
            run_at_once(agents, 1, 100).await;
            let mut times_us: Vec<u128> = Vec::new();
            for _ in 0..20 {
                let started = Instant::now();
                run_at_once(agents, 1, 100).await;
                times_us.push(started.elapsed().as_micros() / 100);
            }
            times_us.sort_unstable();
            println!("a turn, {name}: p50 {} us, p95 {} us", times_us[10], times_us[19]);
        }
        let short = super::agents(kept.store().clone(), TURNS);
        run_at_once(&short, 200, TURNS).await;
        let before = resident_mib();
        for round in 0..5 {
            let started = Instant::now();
            run_at_once(&short, 200, TURNS).await;
            let (took, resident) = (started.elapsed().as_millis(), resident_mib());
            println!("200 runs of {TURNS} turns, round {round}: {took} ms, {resident} MiB resident");
        }
        let grown = resident_mib().saturating_sub(before);
        assert!(grown < 16, "a thousand runs left {grown} MiB behind");
    }
}
