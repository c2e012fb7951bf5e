//! Answering a model's call, whatever it is.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use eyot::internal::nearest;
use futures_util::FutureExt;
use serde_json::{Map, Value};

use super::context::ToolContext;
use super::definition::ToolDef;
use super::output::ToolOutput;
use super::set::{Toolset, quoted};

/// Runs a tool. Never fails and never panics: what goes wrong is an answer with `is_error`, with a sentence that says
/// what to do otherwise. `input` is an object, or, as OpenAI's API hands it over, its JSON text.
pub async fn handle_tool_call(
    context: &ToolContext,
    tools: &Toolset,
    name: &str,
    input: Value,
) -> ToolOutput {
    let Some(tool) = tools.get(name) else {
        return ToolOutput::error(unknown(tools, name));
    };
    let checked = parsed(input).and_then(|input| tool.check(input));
    let input = match checked {
        Ok(input) => input,
        Err(problems) => return ToolOutput::error(problems),
    };
    if context.cancel.is_cancelled() {
        return cancelled(name);
    }
    let run = AssertUnwindSafe(async { run(context, tool, input).await }).catch_unwind();
    run.await.unwrap_or_else(|panic| {
        let why = panic_message(panic.as_ref());
        tracing::error!(tool = name, why, "a tool panicked");
        ToolOutput::error(format!("tool `{name}` has a defect and did not finish: {why}"))
    })
}

async fn run(context: &ToolContext, tool: &ToolDef, input: Value) -> ToolOutput {
    let running = tool.run(context.clone(), input);
    let answered = if tool.settles_cancel {
        running.await
    } else {
        tokio::select! {
            biased;
            answered = running => answered,
            () = context.cancel.cancelled() => return cancelled(tool.name()),
        }
    };
    answered.unwrap_or_else(ToolOutput::from)
}

fn cancelled(name: &str) -> ToolOutput {
    ToolOutput::error(format!("the call of `{name}` was cancelled"))
}

fn unknown(tools: &Toolset, name: &str) -> String {
    let names = tools.names();
    let all = quoted(&names);
    match nearest(name, &names).first() {
        Some(meant) => format!("there is no tool `{name}`. Did you mean `{meant}`? There are: {all}"),
        None => format!("there is no tool `{name}`; there are: {all}"),
    }
}

/// Arguments that come as JSON text, or not at all.
fn parsed(input: Value) -> Result<Value, String> {
    match input {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Value::String(text) => serde_json::from_str(&text).map_err(|error| {
            format!(
                "the arguments are not JSON: {error}; they are an object, such as {{\"name\": \"value\"}}"
            )
        }),
        input => Ok(input),
    }
}

/// Returns the message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}
