//! Agents that are files of a folder, as a server has them: each instance works in a sandbox of its own in its caller's pool.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, SandboxName};
use eyot_engine::{PoolCreate, SandboxPool};
use eyot_tools::{ToolDef, Toolset, toolset_over};
use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::agent_file::AgentFile;
use crate::agent_source::{AgentInfo, AgentSource, FoundAgent};
use crate::budget::Budget;
use crate::event::LogLevel;
use crate::failure::AgentResult;
use crate::harness::{DEFAULT_NAME, HarnessOptions, PromptOptions, PromptResponse};
use crate::mcp::connect_mcp_servers;
use crate::model::Model;
use crate::models::{ModelProviderSettings, resolve_model_for};
use crate::run::AgentContext;
use crate::sandbox_access::AgentSandbox;

/// The name that no file may have: runs of the command line have it.
pub const COMMAND_LINE_AGENT: &str = "eyot";
const DEFAULT_TOOLSET: &str = "coding";

/// Opens a pool by its name.
type OpenPool = Arc<dyn Fn(&str) -> Result<SandboxPool> + Send + Sync>;

/// Agents that are files of a folder. The files are read again at each run.
///
/// The input of a run is a text, or an object with `prompt` (or `message`), and perhaps `session`, the name of the conversation,
/// and `result`, a JSON Schema of the answer. Any other object is given to the model as it is, so that webhooks of other
/// programs work. The result has `text` and `usage`, and `data` if a schema was given.
#[derive(Clone)]
pub struct FileAgents {
    folder: PathBuf,
    open_pool: OpenPool,
    settings: Arc<FileAgentSettings>,
}

/// Settings of agents that are files.
#[derive(Debug, Clone, Default)]
pub struct FileAgentSettings {
    /// The provider of the pools' sandboxes. If it is given, lists say which agents want another one.
    pub provider: Option<String>,
    /// The model of an agent whose file names none.
    pub default_model: Option<String>,
    /// The limits of each run.
    pub budget: Budget,
    /// Settings of models' providers for the runs of a pool, by the pool's name and the provider's. What they leave out is as
    /// [`crate::configure_provider`] and the environment say.
    pub providers_of_pools: BTreeMap<String, BTreeMap<String, ModelProviderSettings>>,
}

/// The input of a run.
#[derive(Debug, Default, PartialEq)]
struct FileAgentInput {
    prompt: String,
    session: Option<String>,
    result: Option<Value>,
}

impl FileAgents {
    /// Serves the agents of a folder. `open_pool` opens the pool that a run is of.
    pub fn new(
        folder: PathBuf,
        settings: FileAgentSettings,
        open_pool: impl Fn(&str) -> Result<SandboxPool> + Send + Sync + 'static,
    ) -> Self {
        Self { folder, open_pool: Arc::new(open_pool), settings: Arc::new(settings) }
    }

    /// Returns the agents that can't work on a provider, and why: to be told when a server starts, because callers only hear that
    /// a run failed.
    pub fn unfit(&self) -> Result<Vec<(String, Error)>> {
        let fault = |name: String| {
            let read = AgentFile::read(&self.folder, &name);
            read.and_then(|file| self.check(&file)).err().map(|error| (name, error))
        };
        Ok(AgentFile::names(&self.folder)?.into_iter().filter_map(fault).collect())
    }

    /// Reads the file of an agent, if there is one.
    fn read(&self, name: &str) -> Result<Option<AgentFile>> {
        if SandboxName::parse(name).is_err() || name == COMMAND_LINE_AGENT {
            return Ok(None);
        }
        match AgentFile::read(&self.folder, name) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => {
                // The error has the path of the file, which only the operator may see.
                tracing::error!(%error, agent = name, "an agent can't be read");
                let message = format!("the agent `{name}` can't be read; the server's log says why");
                Err(Error::new(ErrorKind::Invalid, message))
            }
        }
    }

    /// Refuses an agent whose runs can't work.
    fn check(&self, file: &AgentFile) -> Result<()> {
        if let Some(provider) = &self.settings.provider {
            check_provider(file, provider)?;
        }
        self.model(file, None).map(drop)
    }

    fn info(file: &AgentFile) -> AgentInfo {
        let (name, description) = (file.name.clone(), file.description.clone());
        AgentInfo { name, description, webhook: file.webhook, problem: None }
    }
}

impl AgentSource for FileAgents {
    fn agents(&self) -> Result<Vec<AgentInfo>> {
        let mut agents = Vec::new();
        for name in AgentFile::names(&self.folder)? {
            match self.read(&name) {
                Ok(Some(file)) => {
                    let problem = self.check(&file).err().map(|error| error.to_string());
                    agents.push(AgentInfo { problem, ..Self::info(&file) });
                }
                Ok(None) => {}
                Err(error) => {
                    let problem = Some(error.to_string());
                    agents.push(AgentInfo { name, problem, ..AgentInfo::default() });
                }
            }
        }
        Ok(agents)
    }

    fn find(&self, name: &str) -> Result<Option<FoundAgent>> {
        let Some(file) = self.read(name)? else { return Ok(None) };
        let (info, agents, file) = (Self::info(&file), self.clone(), Arc::new(file));
        let handler = move |context| agents.clone().work(Arc::clone(&file), context).boxed();
        Ok(Some(FoundAgent { info, handler: Arc::new(handler), sandbox_of: Some(sandbox_of) }))
    }
}

impl FileAgents {
    async fn work(self, file: Arc<AgentFile>, context: AgentContext) -> AgentResult<Value> {
        let input = FileAgentInput::parse(context.payload())?;
        let (pool, sandbox) = self.place(&file, &context).await?;
        let toolset =
            toolset_over(pool.provider().as_ref(), file.tools.as_deref().unwrap_or(DEFAULT_TOOLSET))?;
        let (connections, tools) = connect_mcp_servers(file.mcp.clone()).await?;
        let work = self.prompt(&file, &context, (pool, sandbox, toolset, tools), input);
        let answer = work.await;
        for connection in connections {
            connection.close().await;
        }
        answer.map(|answer| match answer.data {
            Some(data) => json!({"text": answer.text, "data": data, "usage": answer.usage}),
            None => json!({"text": answer.text, "usage": answer.usage}),
        })
    }

    async fn prompt(
        &self,
        file: &AgentFile,
        context: &AgentContext,
        (pool, sandbox, toolset, tools): (SandboxPool, SandboxName, Toolset, Vec<ToolDef>),
        input: FileAgentInput,
    ) -> AgentResult<PromptResponse> {
        let options = HarnessOptions {
            model: Some(self.model(file, context.pool())?),
            sandbox: AgentSandbox::Named(pool, sandbox),
            toolset: Some(toolset),
            tools,
            instructions: Some(file.instructions.clone()),
            budget: self.settings.budget,
            ..HarnessOptions::default()
        };
        let harness = context.init(options).await?;
        let session = harness.session_named(input.session.as_deref().unwrap_or(DEFAULT_NAME)).await?;
        let options = PromptOptions { result: input.result, ..PromptOptions::default() };
        session.prompt(&input.prompt, options).await
    }

    /// Returns the run's pool and sandbox, which is created if need be.
    async fn place(&self, file: &AgentFile, context: &AgentContext) -> Result<(SandboxPool, SandboxName)> {
        let Some(pool) = context.pool() else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "an agent that is a file needs a pool for its sandbox",
            ));
        };
        let pool = (self.open_pool)(pool)?;
        check_provider(file, pool.provider().name())?;
        let sandbox = SandboxName::parse(&sandbox_of(&file.name, context.instance_id()))?;
        let create = PoolCreate { image: file.image.clone(), ..PoolCreate::default() };
        let created = pool.create(sandbox.as_str(), create).await?;
        if !created.differs.is_empty() {
            let message = format!("the sandbox is from before; it differs in {}", created.differs.join(", "));
            context.log(LogLevel::Warn, &message, Map::new());
        }
        Ok((pool, sandbox))
    }

    fn model(&self, file: &AgentFile, pool: Option<&str>) -> Result<Arc<dyn Model>> {
        let Some(model) = file.model.as_ref().or(self.settings.default_model.as_ref()) else {
            let message = format!("the agent `{}` names no model", file.name);
            return Err(Error::new(ErrorKind::Invalid, message)
                .with_hint("whoever runs the server adds `model: PROVIDER/MODEL` to the agent's file, or configures one for all"));
        };
        let none = BTreeMap::new();
        let own = pool.and_then(|pool| self.settings.providers_of_pools.get(pool));
        resolve_model_for(model, own.unwrap_or(&none))
    }
}

impl FileAgentInput {
    fn parse(payload: &Value) -> Result<Self> {
        let Value::Object(fields) = payload else {
            return match payload.as_str().map(str::trim) {
                Some(text) if !text.is_empty() => Ok(Self { prompt: text.to_owned(), ..Self::default() }),
                _ => Err(no_prompt()),
            };
        };
        let text =
            |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        match text("prompt").or_else(|| text("message")) {
            Some(prompt) => Ok(Self {
                prompt: prompt.to_owned(),
                session: text("session").map(str::to_owned),
                result: fields.get("result").filter(|schema| schema.is_object()).cloned(),
            }),
            None if fields.is_empty() => Err(no_prompt()),
            None => Ok(Self { prompt: format!("The input is:\n\n{payload:#}"), ..Self::default() }),
        }
    }
}

/// Refuses an agent that is for another provider.
fn check_provider(file: &AgentFile, has: &str) -> Result<()> {
    match &file.provider {
        Some(provider) if provider != has => {
            let name = &file.name;
            let message =
                format!("the agent `{name}` wants the provider `{provider}`, and this server has `{has}`");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        _ => Ok(()),
    }
}

fn no_prompt() -> Error {
    Error::invalid("payload", "has no prompt: send {\"prompt\": \"what to do\"}")
}

/// Returns the name of the sandbox of an agent's instance. Names that would be ambiguous, too long or none get a part of their
/// hash.
fn sandbox_of(agent: &str, instance: &str) -> String {
    let plain = format!("{agent}-{instance}");
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_plain(agent) && is_plain(instance) && SandboxName::parse(&plain).is_ok() {
        return plain;
    }
    let hash = hex::encode(Sha256::digest(json!([agent, instance]).to_string()));
    let letters = plain.chars().map(|letter| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_lowercase() || letter.is_ascii_digit() => letter,
        _ => '-',
    });
    let head: String = letters.take(SandboxName::MAX_CHARS - HASH_CHARS - 1).collect();
    format!("{}-{}", head.trim_matches('-'), &hash[..HASH_CHARS])
}

/// The characters of a hash in the name of a sandbox.
const HASH_CHARS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_of_an_instance_is_its_own() {
        assert_eq!(sandbox_of("reviewer", "pr7"), "reviewer-pr7");
        let names = [("a", "b-c"), ("a-b", "c"), ("a", "B-c"), ("a", "b.c"), ("a", ""), ("a", "é")];
        let names = names.map(|(agent, instance)| sandbox_of(agent, instance));
        let long = sandbox_of(&"a".repeat(41), &"b".repeat(300));
        for (number, name) in names.iter().chain([&long]).enumerate() {
            assert!(SandboxName::parse(name).is_ok(), "{name}");
            assert!(!names[..number.min(names.len())].contains(name), "{name}");
        }
    }

    #[test]
    fn the_input_is_a_text_a_prompt_or_whatever_a_webhook_sends() {
        let parsed = |payload: Value| FileAgentInput::parse(&payload);
        assert_eq!(parsed(json!("go")).unwrap().prompt, "go");
        assert_eq!(parsed(json!({"message": "go"})).unwrap().prompt, "go");
        let full = parsed(json!({"prompt": "go", "session": "s", "result": {"type": "object"}})).unwrap();
        assert_eq!((full.session.as_deref(), full.result.is_some()), (Some("s"), true));
        assert!(parsed(json!({"action": "opened"})).unwrap().prompt.contains("\"action\": \"opened\""));
        for empty in [json!({}), json!(null), json!(""), json!(7)] {
            assert_eq!(parsed(empty).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
