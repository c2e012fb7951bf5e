//! Access to the sandbox that an agent works in.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, Error, ErrorKind, Isolation, Result, Sandbox, SandboxInfo, SandboxName,
    SandboxPath, SandboxProvider, SandboxSpec, ValidSpec,
};
use eyot_engine::{DEFAULT_SANDBOX, PoolOptions, SandboxPool};
use eyot_tools::{ToolContext, Toolset, default_tools, toolset};

/// The sandbox that an agent works in.
#[derive(Clone, Default)]
pub enum AgentSandbox {
    /// No sandbox. The agent has only the tool `task` and custom tools.
    #[default]
    None,
    /// A sandbox of this provider. Unless the spec names it, its name is that of the agent's instance, so that the same
    /// instance gets the same sandbox again.
    Provider(Arc<dyn SandboxProvider>, Box<SandboxSpec>),
    /// An existing sandbox.
    Sandbox(Sandbox),
    /// The sandbox `default` of this pool. Tools that take the name of a sandbox can use the others.
    Pool(SandboxPool),
    /// This sandbox of this pool, as [`AgentSandbox::Pool`].
    Named(SandboxPool, SandboxName),
}

impl AgentSandbox {
    /// Returns a sandbox of this provider with the default spec.
    pub fn of_provider(provider: Arc<dyn SandboxProvider>) -> Self {
        Self::Provider(provider, Box::default())
    }
}

/// The sandbox of a harness. It is found once, and shared by the sessions and their tasks.
#[derive(Clone)]
pub(crate) struct SandboxAccess {
    pool: SandboxPool,
    place: AttachedSandbox,
    cwd: Option<SandboxPath>,
}

#[derive(Clone)]
enum AttachedSandbox {
    Nowhere,
    Handle(Sandbox),
    InPool(SandboxName),
}

impl SandboxAccess {
    /// Finds or creates the sandbox. The sandbox is never destroyed here.
    pub(crate) async fn find(sandbox: AgentSandbox, instance: &str, cwd: Option<&str>) -> Result<Self> {
        let (pool, place) = match sandbox {
            AgentSandbox::None => (without_sandboxes()?, AttachedSandbox::Nowhere),
            AgentSandbox::Provider(provider, spec) => {
                let name = spec.name.clone().map_or_else(|| sandbox_name(instance), Ok)?;
                let spec = SandboxSpec { name: Some(name), ..*spec };
                let (handle, _) = Sandbox::get_or_create(provider.as_ref(), spec).await?;
                (SandboxPool::open(provider, PoolOptions::default())?, AttachedSandbox::Handle(handle))
            }
            AgentSandbox::Sandbox(handle) => (without_sandboxes()?, AttachedSandbox::Handle(handle)),
            AgentSandbox::Pool(pool) => (pool, AttachedSandbox::InPool(SandboxName::parse(DEFAULT_SANDBOX)?)),
            AgentSandbox::Named(pool, name) => (pool, AttachedSandbox::InPool(name)),
        };
        let source = Self { pool, place, cwd: None };
        match cwd {
            Some(cwd) => source.at(cwd).await,
            None => Ok(source),
        }
    }

    /// Returns the same sandbox with another working directory, relative to the current one. `invalid`: there is no sandbox.
    pub(crate) async fn at(&self, cwd: &str) -> Result<Self> {
        let Some(sandbox) = self.sandbox().await? else {
            let message = format!("work in `{cwd}`: the agent has no sandbox");
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        Ok(Self { cwd: Some(sandbox.resolve_path(cwd)?), ..self.clone() })
    }

    /// Returns the sandbox, if there is one.
    pub(crate) async fn sandbox(&self) -> Result<Option<Sandbox>> {
        match self.place {
            AttachedSandbox::Nowhere => Ok(None),
            AttachedSandbox::Handle(_) | AttachedSandbox::InPool(_) => {
                self.context().sandbox(None).await.map(Some)
            }
        }
    }

    /// Returns the context for running tools.
    pub(crate) fn context(&self) -> ToolContext {
        let context = ToolContext::new(self.pool.clone());
        let context = match &self.place {
            AttachedSandbox::Handle(handle) => context.with_handle(handle.clone()),
            AttachedSandbox::InPool(name) => context.with_sandbox(name.clone()),
            AttachedSandbox::Nowhere => context,
        };
        match &self.cwd {
            Some(cwd) => context.with_cwd(cwd.clone()),
            None => context,
        }
    }

    /// Returns the default tools of the sandbox: the provider's toolset, or `coding` if the provider has none.
    pub(crate) fn default_toolset(&self) -> Result<Option<Toolset>> {
        match self.place {
            AttachedSandbox::Nowhere => Ok(None),
            AttachedSandbox::Handle(_) | AttachedSandbox::InPool(_) => {
                let provider = self.pool.provider();
                let tools = if provider.tools().is_some() {
                    default_tools(provider.as_ref())
                } else {
                    toolset("coding")
                };
                tools.map(Some)
            }
        }
    }
}

/// Turns the id of an instance into the name of a sandbox. Characters that a name can't have become hyphens.
fn sandbox_name(instance: &str) -> Result<SandboxName> {
    let lower = instance.to_ascii_lowercase();
    let name: String =
        lower.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let name = name.trim_matches('-');
    SandboxName::parse(if name.is_empty() { DEFAULT_SANDBOX } else { name })
}

/// Creates a pool without sandboxes, for agents that have none.
fn without_sandboxes() -> Result<SandboxPool> {
    SandboxPool::open(Arc::new(NoSandboxes), PoolOptions::default())
}

/// A provider that has no sandboxes.
struct NoSandboxes;

static NO_CAPABILITIES: LazyLock<Capabilities> = LazyLock::new(Capabilities::default);

fn refusal<T>() -> Result<T> {
    let error = Error::new(ErrorKind::Unsupported, "this agent has no sandbox of that name");
    Err(error.with_hint("give the agent a sandbox, or a pool of them"))
}

#[async_trait]
impl SandboxProvider for NoSandboxes {
    fn name(&self) -> &str {
        "none"
    }

    fn capabilities(&self) -> &Capabilities {
        &NO_CAPABILITIES
    }

    async fn isolation(&self) -> Result<Isolation> {
        refusal()
    }

    async fn create(&self, _spec: &ValidSpec) -> Result<Created> {
        refusal()
    }

    async fn open(&self, _id_or_name: &str) -> Result<Created> {
        refusal()
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        Ok(Vec::new())
    }

    async fn remove(&self, _id_or_name: &str) -> Result<()> {
        refusal()
    }
}
