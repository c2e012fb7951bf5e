//! Our runtime plays a scenario.

use std::sync::{Arc, Mutex};

use eyot::{Sandbox, SandboxName, SandboxPath, SandboxSpec};
use eyot_agent::standin::StandIn;
use eyot_agent::{
    AgentError, AgentSandbox, CallHandle, CompactionOptions, Harness, HarnessOptions, Model, ModelApi,
    ModelProviderSettings, PromptOptions, PromptResponse, ProviderRegistration, Session, ShellOptions,
    SkillOptions, Subagent, TaskOptions, configure_provider, init, register_provider, resolve_model,
};
use eyot_providers::memory::MemoryProvider;
use eyot_tools::{ToolDef, ToolOutput};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::scenario::Scenario;

/// The settings of providers are the process's, and the scenarios run at the same time.
static PROVIDERS: Mutex<()> = Mutex::new(());

/// The models of a scenario.
struct ScenarioModels {
    usual: Arc<dyn Model>,
    other: Arc<dyn Model>,
}

/// Plays a scenario, and returns its events and the outcome of each step.
pub async fn play(scenario: &Scenario, stand_in: &StandIn) -> Result<Value, Failed> {
    let models = models(scenario, stand_in)?;
    let harness = init(options(scenario, &models).await?).await?;
    let mut heard = harness.events();
    let mut outcomes = Vec::new();
    for step in &scenario.steps {
        outcomes.push(outcome(take(&harness, step, &models.other).await));
    }
    let mut events = Vec::new();
    while let Ok(event) = heard.try_recv() {
        events.push(serde_json::to_value(&*event)?);
    }
    Ok(json!({"events": events, "outcomes": outcomes}))
}

async fn options(scenario: &Scenario, models: &ScenarioModels) -> Result<HarnessOptions, Failed> {
    let setup = &scenario.setup;
    let text = |name: &str| setup[name].as_str().map(str::to_owned);
    let subagents = setup["subagents"].as_array().into_iter().flatten();
    let subagents = subagents.map(|agent| Subagent {
        name: agent["name"].as_str().unwrap_or_default().to_owned(),
        instructions: agent["instructions"].as_str().map(str::to_owned),
        model: Some(Arc::clone(&models.usual)),
        tools: agent["tools"].is_array().then(|| tools(&agent["tools"])),
        ..Subagent::default()
    });
    let compaction = CompactionOptions {
        enabled: setup["compaction"] != false,
        reserve_tokens: setup["compaction"]["reserveTokens"].as_u64(),
        keep_recent_tokens: setup["compaction"]["keepRecentTokens"].as_u64(),
        model: (setup["compaction"]["model"] == "other").then(|| Arc::clone(&models.other)),
    };
    Ok(HarnessOptions {
        instance_id: Some("instance".to_owned()),
        instructions: text("instructions"),
        sandbox: sandbox(&setup["files"]).await?,
        cwd: text("cwd"),
        subagents: subagents.collect(),
        tools: tools(&setup["tools"]),
        thinking: serde_json::from_value(setup["thinking"].clone()).unwrap_or_default(),
        compaction,
        model: Some(Arc::clone(&models.usual)),
        ..HarnessOptions::default()
    })
}

fn models(scenario: &Scenario, stand_in: &StandIn) -> Result<ScenarioModels, Failed> {
    let _alone = PROVIDERS.lock().map_err(|_| "another scenario failed to set a provider")?;
    let mut settings = ModelProviderSettings::default();
    settings.base_url = Some(stand_in.url().to_owned());
    settings.api_key = Some("sk-standin".into());
    let name = match scenario.api {
        ModelApi::AnthropicMessages => {
            configure_provider("anthropic", settings);
            "anthropic/claude-haiku-4-5"
        }
        ModelApi::OpenaiResponses => {
            configure_provider("openai", settings);
            "openai-responses/gpt-5"
        }
        api => {
            let mut vendor = ProviderRegistration::new(api, stand_in.url());
            vendor.api_key = Some("sk-standin".into());
            vendor.context_window = scenario.setup["contextWindow"].as_u64();
            vendor.max_tokens = scenario.setup["maxTokens"].as_u64().and_then(|most| most.try_into().ok());
            register_provider("standin", vendor);
            "standin/m"
        }
    };
    let (provider, _) = name.split_once('/').ok_or("a model without a provider")?;
    Ok(ScenarioModels { usual: resolve_model(name)?, other: resolve_model(&format!("{provider}/other"))? })
}

async fn sandbox(files: &Value) -> Result<AgentSandbox, Failed> {
    let provider = Arc::new(MemoryProvider::default());
    let (name, workdir) = (SandboxName::parse("flue")?, SandboxPath::parse("/home/user")?);
    let spec = SandboxSpec { name: Some(name), workdir: Some(workdir), ..SandboxSpec::default() };
    let sandbox = Sandbox::create(provider.as_ref(), spec.clone()).await?;
    for (path, content) in files.as_object().into_iter().flatten() {
        sandbox.write(path, content.as_str().unwrap_or_default().to_owned()).await?;
    }
    Ok(AgentSandbox::Provider(provider, Box::new(spec)))
}

/// The tools of the caller with these names. `flue.mjs` has the same.
fn tools(names: &Value) -> Vec<ToolDef> {
    let tools = names.as_array().into_iter().flatten().map(|name| match name.as_str() {
        Some("add") => add(),
        Some("fails") => ToolDef::new("fails", "Fails.", nothing(), |_, _| async {
            Ok(ToolOutput::error("the tool is broken"))
        }),
        _ => ToolDef::new("waits", "Waits.", nothing(), |context, _| async move {
            context.cancel.cancelled().await;
            Ok(ToolOutput::error("stopped"))
        })
        .map(ToolDef::handling_cancel),
    });
    tools.map(|tool| tool.expect("a tool of the scenarios")).collect()
}

fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

fn add() -> eyot::Result<ToolDef> {
    let parameters = json!({
        "type": "object",
        "properties": {"a": {"type": "number", "description": "One number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    });
    ToolDef::new("add", "Adds two numbers.", parameters, |_, arguments: Value| async move {
        let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
        Ok(ToolOutput::text((number("a") + number("b")).to_string()))
    })
}

/// The schema of a result. `flue.mjs` has the same.
fn schema(name: &Value) -> Option<Value> {
    let number = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    match name.as_str()? {
        "number" => Some(number),
        "text" => Some(json!({"type": "string"})),
        _ => Some(json!({"type": "array", "items": item})),
    }
}

async fn take(harness: &Harness, step: &Value, other: &Arc<dyn Model>) -> Result<Value, AgentError> {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let name = step["session"].as_str().unwrap_or(eyot_agent::DEFAULT_NAME);
    match text("do") {
        "create" => return harness.new_session(name).await.map(|_| Value::Null).map_err(AgentError::from),
        "get" => return harness.existing_session(name).await.map(|_| Value::Null).map_err(AgentError::from),
        "delete" => return harness.delete_session(name).await.map(|()| Value::Null).map_err(AgentError::from),
        _ => {}
    }
    let session = harness.session_named(name).await?;
    let owned = |name: &str| step[name].as_str().map(str::to_owned);
    let call = match text("do") {
        "compact" => return session.compact().await.map(|()| Value::Null),
        "shell" => return shell(&session, step).await,
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
        Some(kind) => aborted_at(call, kind).await.map(response),
        None => call.await.map(response),
    }
}

/// A prompt, and another one while it runs.
async fn twice(session: &Session, text: &str) -> Value {
    let [one, two] = [session.prompt(text, PromptOptions::default()), session.prompt(text, PromptOptions::default())];
    let mut events = one.events();
    let (one, two) = tokio::join!(one, async {
        events.next().await;
        two.await
    });
    json!([outcome(one.map(response)), outcome(two.map(response))])
}

fn outcome(done: Result<Value, AgentError>) -> Value {
    match done {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({"error": {"name": error.name(), "message": error.to_string()}}),
    }
}

/// Aborts a call when it tells of this event.
async fn aborted_at(call: CallHandle<PromptResponse>, kind: &str) -> Result<PromptResponse, AgentError> {
    let (mut events, abort) = (call.events(), call.aborter());
    let listen = async {
        while let Some(event) = events.next().await {
            if event.kind.name() == kind {
                abort("enough");
            }
        }
    };
    tokio::select! {
        done = call => done,
        () = listen => Err(eyot::Error::new(eyot::ErrorKind::Internal, "the events ended").into()),
    }
}

async fn shell(session: &Session, step: &Value) -> Result<Value, AgentError> {
    let env = serde_json::from_value(step["env"].clone()).unwrap_or_default();
    let cwd = step["cwd"].as_str().map(str::to_owned);
    let options = ShellOptions { env, cwd, ..ShellOptions::default() };
    let done = session.shell(step["text"].as_str().unwrap_or_default(), options).await?;
    Ok(json!({"stdout": done.stdout, "stderr": done.stderr, "exitCode": done.exit_code}))
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
