//! The steps of a scenario.

use std::sync::Arc;
use std::time::Duration;

use eyot_agent::{
    AgentError, CallHandle, Harness, Model, PromptOptions, PromptResponse, Session, ShellOptions,
    SkillOptions, TaskOptions,
};
use serde_json::{Value, json};

use super::setup::{schema, tools};

/// Takes a step, and returns its result.
pub async fn take(harness: &Harness, step: &Value, other: &Arc<dyn Model>) -> Result<Value, AgentError> {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let name = step["session"].as_str().unwrap_or(eyot_agent::DEFAULT_NAME);
    match text("do") {
        "create" => return harness.new_session(name).await.map(|_| Value::Null).map_err(AgentError::from),
        "get" => return harness.existing_session(name).await.map(|_| Value::Null).map_err(AgentError::from),
        "delete" => {
            return harness.delete_session(name).await.map(|()| Value::Null).map_err(AgentError::from);
        }
        _ => {}
    }
    let session = harness.session_named(name).await?;
    let owned = |name: &str| step[name].as_str().map(str::to_owned);
    let call = match text("do") {
        "compact" => return session.compact().await.map(|()| Value::Null),
        "shell" => {
            let call = session.shell(text("text"), shell_options(step));
            let done = match step["abort"].as_str() {
                Some(_) => aborted(call, step).await?,
                None => call.await?,
            };
            return Ok(json!({"stdout": done.stdout, "stderr": done.stderr, "exitCode": done.exit_code}));
        }
        "twice" => return Ok(twice(&session, text("text")).await),
        "task" => {
            let options =
                TaskOptions { agent: owned("agent"), cwd: owned("cwd"), prompt: prompt_options(step, other) };
            session.task(text("text"), options)
        }
        "skill" => {
            let arguments = step["args"].as_object().cloned().unwrap_or_default();
            session.skill(text("text"), SkillOptions { arguments, prompt: prompt_options(step, other) })
        }
        _ => session.prompt(text("text"), prompt_options(step, other)),
    };
    match step["abort"].as_str() {
        Some(_) => aborted(call, step).await.map(response),
        None => call.await.map(response),
    }
}

/// A prompt, and another one while it runs.
async fn twice(session: &Session, text: &str) -> Value {
    let [one, two] =
        [session.prompt(text, PromptOptions::default()), session.prompt(text, PromptOptions::default())];
    let mut events = one.events();
    let (one, two) = tokio::join!(one, async {
        events.next().await;
        two.await
    });
    json!([outcome(one.map(response)), outcome(two.map(response))])
}

/// Returns a result or an error as JSON.
pub fn outcome(done: Result<Value, AgentError>) -> Value {
    match done {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({"error": {"name": error.name(), "message": error.to_string()}}),
    }
}

/// Aborts a call when it tells of the event `abort`, or so many milliseconds `after` it.
async fn aborted<T: Send + 'static>(call: CallHandle<T>, step: &Value) -> Result<T, AgentError> {
    let (mut events, abort) = (call.events(), call.aborter());
    let listen = async {
        while let Some(event) = events.next().await {
            if step["abort"] == event.kind.name() {
                tokio::time::sleep(Duration::from_millis(step["after"].as_u64().unwrap_or_default())).await;
                abort("enough");
            }
        }
    };
    tokio::select! {
        done = call => done,
        () = listen => Err(eyot::Error::new(eyot::ErrorKind::Internal, "the events ended").into()),
    }
}

fn shell_options(step: &Value) -> ShellOptions {
    let env = serde_json::from_value(step["env"].clone()).unwrap_or_default();
    ShellOptions { env, cwd: step["cwd"].as_str().map(str::to_owned), ..ShellOptions::default() }
}

fn prompt_options(step: &Value, other: &Arc<dyn Model>) -> PromptOptions {
    PromptOptions {
        result: schema(&step["result"]),
        tools: tools(&step["tools"]),
        model: step["model"].is_string().then(|| Arc::clone(other)),
        thinking: serde_json::from_value(step["thinking"].clone()).ok(),
        images: serde_json::from_value(step["images"].clone()).unwrap_or_default(),
    }
}

fn response(done: PromptResponse) -> Value {
    let model = json!({"id": done.model});
    match done.data {
        Some(data) => json!({"data": data, "usage": done.usage, "model": model}),
        None => json!({"text": done.text, "usage": done.usage, "model": model}),
    }
}
