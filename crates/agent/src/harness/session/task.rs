//! Tasks: work in a session of its own, which ends with the task.

use std::sync::Arc;
use std::time::Instant;

use eyot::{Error, ErrorKind, Result};
use eyot_tools::{ToolContext, ToolDef, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::operation::{Operation, elapsed_ms};
use super::response::PromptResponse;
use super::{MAX_TASK_DEPTH, PromptOptions, Session, SessionInner, TaskOptions};
use crate::conversation::{ConversationEntry, TaskEntry};
use crate::event::AgentEventKind;
use crate::failure::{AgentError, AgentResult};
use crate::journal::EventScope;
use crate::model::{Model, ThinkingLevel};
use crate::subagent::Subagent;

const DESCRIPTION: &str = "Delegate a focused task to a detached child agent with its own context. Use this for independent \
    research, file exploration, or parallel work. The task returns only its final answer to this conversation.";

/// The outcome of a finished task.
pub(super) struct TaskOutcome {
    pub(super) response: PromptResponse,
    task_id: String,
    session: String,
    agent: Option<String>,
    cwd: Option<String>,
}

/// The arguments of the tool.
#[derive(Debug, Deserialize)]
struct TaskArguments {
    prompt: String,
    agent: Option<String>,
    cwd: Option<String>,
}

/// Starts tasks in sessions of their own.
#[derive(Clone)]
struct TaskStarter {
    session: Arc<SessionInner>,
    scope: EventScope,
    /// The id of the task, if an earlier process started it.
    known: Option<String>,
}

impl Operation {
    /// Returns the id of the task that an earlier process started in this operation.
    fn known_task(&self) -> Option<String> {
        let conversation = self.session.lock();
        conversation.entries_from(self.from).iter().find_map(|entry| match entry {
            ConversationEntry::Task(task) => Some(task.task_id.clone()),
            _ => None,
        })
    }

    pub(super) async fn task(&self, text: String, options: TaskOptions) -> AgentResult<TaskOutcome> {
        let (session, scope) = (Arc::clone(&self.session), self.scope.clone());
        let giver = TaskStarter { session, scope, known: self.known_task() };
        let aborted = async {
            self.abort.aborted().await;
            self.abort.reason().to_owned()
        };
        giver.give(text, options, aborted).await
    }
}

/// Creates the tool `task`. Settings that a task does not name are those of the prompt that starts it.
pub(super) fn task_tool(
    operation: &Operation,
    tools: Vec<ToolDef>,
    model: &Arc<dyn Model>,
) -> Result<ToolDef> {
    let (session, scope) = (Arc::clone(&operation.session), operation.scope.clone());
    let giver = TaskStarter { session, scope, known: None };
    let names: Vec<&str> =
        operation.session.config.subagents.iter().map(|agent| agent.name.as_str()).collect();
    let available = if names.is_empty() {
        " No subagents are currently defined.".to_owned()
    } else {
        format!(" Available agents: {}.", names.join(", "))
    };
    let schema = json!({
        "type": "object",
        "required": ["prompt"],
        "properties": {
            "description": {"type": "string", "description": "Short human-readable label for the delegated work"},
            "prompt": {"type": "string", "description": "Focused instructions for the child agent"},
            "agent": {"type": "string", "description": "Declared subagent to use for the child agent"},
            "cwd": {
                "type": "string",
                "description":
                    "Working directory for the child agent. AGENTS.md and skills are discovered from here.",
            },
        },
    });
    let model = Arc::clone(model);
    let run = move |context: ToolContext, arguments: Value| {
        let (giver, tools, model) = (giver.clone(), tools.clone(), Arc::clone(&model));
        async move { giver.answer(context, arguments, tools, model).await }
    };
    Ok(ToolDef::new("task", &format!("{DESCRIPTION}{available}"), schema, run)?.handling_cancel())
}

impl TaskStarter {
    async fn answer(
        self,
        context: ToolContext,
        arguments: Value,
        tools: Vec<ToolDef>,
        model: Arc<dyn Model>,
    ) -> Result<ToolOutput> {
        let asked: TaskArguments =
            serde_json::from_value(arguments).map_err(|error| Error::invalid("arguments", error))?;
        let agent = asked.agent.filter(|name| !name.is_empty());
        if let Some(miss) = agent.as_deref().and_then(|name| self.miss(name)) {
            return Ok(ToolOutput::text(miss));
        }
        let subagent = agent.as_deref().and_then(|name| self.subagent(name));
        let model = subagent.is_none_or(|agent| agent.model.is_none()).then_some(model);
        let prompt = PromptOptions { tools, model, ..PromptOptions::default() };
        let options = TaskOptions { agent, cwd: asked.cwd, prompt };
        let cancelled = async {
            context.cancel.cancelled().await;
            "the call of `task` was cancelled".to_owned()
        };
        Ok(match self.give(asked.prompt, options, cancelled).await {
            Ok(done) => output(done),
            Err(AgentError::Other(error)) => ToolOutput::from(error),
            Err(error) => ToolOutput::error(error.to_string()),
        })
    }

    fn subagent(&self, name: &str) -> Option<&Subagent> {
        self.session.config.subagents.iter().find(|agent| agent.name == name)
    }

    /// Returns the error text for an unknown subagent.
    fn miss(&self, name: &str) -> Option<String> {
        if self.subagent(name).is_some() {
            return None;
        }
        let names: Vec<&str> =
            self.session.config.subagents.iter().map(|agent| agent.name.as_str()).collect();
        let names = if names.is_empty() { "(none)".to_owned() } else { names.join(", ") };
        Some(format!("Subagent \"{name}\" is not declared. Available subagents: {names}."))
    }

    /// Starts a task, and waits for it to end. `aborted` ends it, with a reason.
    async fn give(
        &self,
        text: String,
        options: TaskOptions,
        aborted: impl Future<Output = String>,
    ) -> AgentResult<TaskOutcome> {
        if self.session.depth >= MAX_TASK_DEPTH {
            return Err(AgentError::invalid(format!("Maximum task depth ({MAX_TASK_DEPTH}) exceeded.")));
        }
        if let Some(miss) = options.agent.as_deref().and_then(|name| self.miss(name)) {
            return Err(Error::new(ErrorKind::NotFound, miss).into());
        }
        let task_id = self.known.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let scope = self.scope.about_task(&task_id);
        if self.known.is_none() {
            let start = AgentEventKind::TaskStart {
                prompt: text.clone(),
                role: options.agent.clone(),
                cwd: options.cwd.clone(),
            };
            let key = self.session.harness.task_key(&self.session.name, &task_id);
            let entry = ConversationEntry::Task(TaskEntry { key, task_id: task_id.clone() });
            self.session.lock().push(entry.clone());
            scope.emit_with_entry(start, &self.session.key, entry);
        }
        let unheard = match self.scope.journal().unfinished() {
            Some(mut unfinished) if self.known.is_some() => unfinished.take_task(&task_id),
            _ => true,
        };
        let started = Instant::now();
        let done = self.run(&task_id, text, options, aborted).await;
        let (is_error, result) = match &done {
            Ok(done) => (false, done.response.text.clone()),
            Err(error) => (true, error.to_string()),
        };
        if unheard {
            let (result, duration_ms) = (Some(result), elapsed_ms(started));
            scope.emit(AgentEventKind::Task { is_error, result, duration_ms });
        }
        done
    }

    async fn run(
        &self,
        task_id: &str,
        text: String,
        options: TaskOptions,
        aborted: impl Future<Output = String>,
    ) -> AgentResult<TaskOutcome> {
        let TaskOptions { agent, cwd, prompt } = options;
        let subagent = agent.as_deref().and_then(|name| self.subagent(name));
        let mut aborted = std::pin::pin!(aborted);
        let child = tokio::select! {
            biased;
            reason = &mut aborted => return Err(AgentError::Aborted(reason)),
            child = self.session.harness.open_task(&self.session, task_id, subagent, cwd.as_deref()) => child?,
        };
        let session = child.name.clone();
        let child = Session { inner: child };
        let mut call = child.prompt(&text, prompt);
        let response = tokio::select! {
            biased;
            response = &mut call => response,
            reason = &mut aborted => {
                // Its end is waited for, so that everybody hears of it before that of the task.
                call.abort(&reason);
                call.await
            }
        };
        child.inner.close("the task is over");
        Ok(TaskOutcome { response: response?, task_id: task_id.to_owned(), session, agent, cwd })
    }
}

fn output(done: TaskOutcome) -> ToolOutput {
    let TaskOutcome { response, task_id, session, agent, cwd } = done;
    let text = if response.text.is_empty() { "(task completed with no text)" } else { &response.text };
    let details = json!({"taskId": task_id, "session": session, "agent": agent, "cwd": cwd});
    ToolOutput { structured: Some(details), ..ToolOutput::text(text) }
}

/// Returns the reasoning effort of a subagent's session.
pub(crate) fn thinking_of(subagent: Option<&Subagent>, session: ThinkingLevel) -> ThinkingLevel {
    subagent.and_then(|agent| agent.thinking).unwrap_or(session)
}
