//! The settings of a scenario's agent.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use eyot::{Sandbox, SandboxName, SandboxPath, SandboxSpec};
use eyot_agent::standin::StandIn;
use eyot_agent::{
    AgentSandbox, CompactionOptions, HarnessOptions, McpConnection, McpServerOptions, Model, ModelApi,
    ModelProviderSettings, PackagedSkill, ProviderRegistration, Subagent, configure_provider,
    connect_mcp_server, register_provider, resolve_model,
};
use eyot_providers::memory::MemoryProvider;
use eyot_tools::{ToolDef, ToolOutput, Toolset};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::scenario::Scenario;

/// The settings of providers are the process's, and the scenarios run at the same time.
static PROVIDERS: Mutex<()> = Mutex::new(());

/// The models of a scenario.
pub struct ScenarioModels {
    usual: Arc<dyn Model>,
    pub other: Arc<dyn Model>,
}

/// Connects to the MCP server of a scenario, if it has one.
pub async fn connect(scenario: &Scenario) -> Result<Option<McpConnection>, Failed> {
    match (scenario.setup["mcp"].as_str(), scenario.setup["mcpUrl"].as_str()) {
        (Some(name), Some(url)) => Ok(Some(connect_mcp_server(name, McpServerOptions::new(url)).await?)),
        _ => Ok(None),
    }
}

/// Returns the options of the agent's harness.
pub async fn options(
    scenario: &Scenario,
    models: &ScenarioModels,
    server: Option<&McpConnection>,
) -> Result<HarnessOptions, Failed> {
    let setup = &scenario.setup;
    let text = |name: &str| setup[name].as_str().map(str::to_owned);
    let subagents = setup["subagents"].as_array().into_iter().flatten();
    let subagents = subagents.map(|agent| Subagent {
        name: agent["name"].as_str().unwrap_or_default().to_owned(),
        instructions: agent["instructions"].as_str().map(str::to_owned),
        model: Some(Arc::clone(&models.usual)),
        thinking: serde_json::from_value(agent["thinkingLevel"].clone()).ok(),
        tools: agent["tools"].is_array().then(|| tools(&agent["tools"])),
        ..Subagent::default()
    });
    let skills = setup["skills"].as_array().into_iter().flatten().map(skill);
    let mut tools = tools(&setup["tools"]);
    tools.extend_from_slice(server.map_or(&[], McpConnection::tools));
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
        skills: skills.collect::<eyot::Result<_>>()?,
        toolset: setup["sandboxTools"]
            .is_array()
            .then(|| Toolset::new("sandbox", self::tools(&setup["sandboxTools"])))
            .transpose()?,
        tools,
        thinking: serde_json::from_value(setup["thinking"].clone()).unwrap_or_default(),
        compaction,
        model: Some(Arc::clone(&models.usual)),
        ..HarnessOptions::default()
    })
}

fn skill(skill: &Value) -> eyot::Result<PackagedSkill> {
    let files = skill["files"].as_object().into_iter().flatten();
    let files =
        files.map(|(path, text)| (path.clone(), Bytes::from(text.as_str().unwrap_or_default().to_owned())));
    PackagedSkill::new(skill["name"].as_str().unwrap_or_default(), files)
}

/// Returns the models, which the stand-in plays.
pub fn models(scenario: &Scenario, stand_in: &StandIn) -> Result<ScenarioModels, Failed> {
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
pub fn tools(names: &Value) -> Vec<ToolDef> {
    let tools = names.as_array().into_iter().flatten().map(|name| match name.as_str() {
        Some("add") => add(),
        Some("fails") => ToolDef::new("fails", "Fails.", nothing(), |_, _| async {
            Ok(ToolOutput::error("the tool is broken"))
        }),
        Some("silent") => {
            ToolDef::new("silent", "Says nothing.", nothing(), |_, _| async { Ok(ToolOutput::text("")) })
        }
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
pub fn schema(name: &Value) -> Option<Value> {
    let number = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    match name.as_str()? {
        "number" => Some(number),
        "text" => Some(json!({"type": "string"})),
        _ => Some(json!({"type": "array", "items": item})),
    }
}
