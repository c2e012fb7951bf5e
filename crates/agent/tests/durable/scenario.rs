//! The work of the run that is killed: prompts with tools, a task, a command, a result.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use eyot_agent::{
    AgentContext, AgentResult, AgentSandbox, ChatMessage, ContentBlock, Harness, HarnessOptions, LogLevel,
    Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream, ModelTurn, PromptOptions,
    ScriptedModel, ShellOptions, StopReason, TaskOptions, TokenUsage, ToolCall,
};
use eyot_providers::memory::MemoryProvider;
use eyot_tools::{ToolDef, ToolOutput};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

/// The file with a line for each tool call that was carried out.
pub(crate) const DONE: &str = "done";

/// A model whose answers depend only on the conversation: two tools, then a task, then an end.
struct Worker {
    info: ModelInfo,
}

/// The handler of the run. With `is_other`, it makes different calls.
pub(crate) async fn work(context: AgentContext, folder: PathBuf, is_other: bool) -> AgentResult<Value> {
    context.log(LogLevel::Info, "begins", Map::new());
    let options = HarnessOptions {
        model: Some(Arc::new(Worker { info: ScriptedModel::new([]).info().clone() })),
        sandbox: AgentSandbox::of_provider(Arc::new(MemoryProvider::default())),
        tools: vec![note(folder)?],
        ..HarnessOptions::default()
    };
    let harness = context.init(options).await?;
    let session = harness.session().await?;
    let asked = if is_other { "something else" } else { "work" };
    let worked = session.prompt(asked, PromptOptions::default()).await?;
    context.log(LogLevel::Info, "has worked", Map::new());
    // An interrupted command is an error, and the handler may continue after it.
    let command = session.shell("echo done", ShellOptions::default()).await;
    let code = command.map_or(-1, |command| command.exit_code);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let counted = PromptOptions { result: Some(schema), ..PromptOptions::default() };
    let counted = session.prompt("count", counted).await?;
    let side = work_aside(&harness).await?;
    let task = session.task("a task", TaskOptions::default()).await?;
    Ok(json!({"worked": worked.text, "code": code, "counted": counted.data, "task": task.text, "side": side}))
}

/// A session that must be new, is deleted, and is made again.
async fn work_aside(harness: &Harness) -> AgentResult<Vec<String>> {
    let side = harness.new_session("side").await?;
    let first = side.prompt("aside", PromptOptions::default()).await?.text;
    let taken = harness.new_session("side").await.err().map(|error| error.kind().to_string());
    side.delete().await?;
    let again = harness.new_session("side").await?;
    let second = again.prompt("aside again", PromptOptions::default()).await?.text;
    Ok(vec![first, taken.unwrap_or_default(), second])
}

/// A tool that leaves a line behind.
fn note(folder: PathBuf) -> eyot::Result<ToolDef> {
    let schema = json!({"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]});
    ToolDef::new("note", "Leaves a line behind.", schema, move |_, arguments: Value| {
        let folder = folder.clone();
        async move {
            let line = arguments["line"].as_str().unwrap_or_default().to_owned();
            let mut file =
                OpenOptions::new().append(true).create(true).open(folder.join(DONE)).expect("a file");
            writeln!(file, "{line}").expect("a line");
            Ok(ToolOutput::text("noted"))
        }
    })
}

#[async_trait]
impl Model for Worker {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let content = answer(&request.messages);
        let texts: Vec<ModelEvent> = content
            .iter()
            .filter_map(ContentBlock::as_text)
            .flat_map(|text| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>())
            .map(ModelEvent::TextDelta)
            .collect();
        let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
        let stop_reason = if calls { StopReason::ToolUse } else { StopReason::Stop };
        let done =
            ModelTurn { content, stop_reason, usage: TokenUsage { input: 1, ..TokenUsage::default() } };
        let events = texts.into_iter().chain([ModelEvent::Done(done)]);
        Ok(stream::iter(events.map(Ok).collect::<Vec<_>>()).boxed())
    }
}

/// Returns the next turn. The ids of calls come from their position in the conversation.
fn answer(messages: &[ChatMessage]) -> Vec<ContentBlock> {
    let asked = messages.iter().rev().find_map(|message| match message {
        ChatMessage::User(message) => message.content[0].as_text(),
        _ => None,
    });
    let asked = asked.and_then(|asked| asked.lines().next()).unwrap_or_default();
    let since = messages.iter().rev().take_while(|message| !matches!(message, ChatMessage::User(_)));
    let turns = since.filter(|message| matches!(message, ChatMessage::Assistant(_))).count();
    let place = messages.len();
    let call = |number: usize, name: &str, arguments: Value| {
        let id = format!("{asked}-{place}-{number}").replace(' ', "-");
        ContentBlock::ToolCall(ToolCall { id, name: name.to_owned(), arguments })
    };
    let note = |number: usize| call(number, "note", json!({"line": format!("{asked}-{place}-{number}")}));
    let text = |text: &str| ContentBlock::text(text);
    match (asked, turns) {
        ("work" | "something else", 0) => vec![text("I note two things."), note(0), note(1)],
        ("work", 1) => vec![call(0, "task", json!({"prompt": "help"}))],
        ("work", 2) => vec![text("One more."), note(0)],
        ("help" | "a task" | "aside" | "aside again", 0) => vec![text("A note first."), note(0)],
        ("help" | "a task" | "aside" | "aside again", _) => vec![text("It is done.")],
        ("count", 0) => vec![note(0)],
        ("count", 1) => vec![call(0, "finish", json!({"n": "many"}))],
        ("count", _) => vec![call(0, "finish", json!({"n": 3}))],
        _ => vec![text("That was all.")],
    }
}
