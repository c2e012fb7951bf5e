//! The sandbox that an agent works in.

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
    /// None: the agent has no tools but `task`, and those that it is given.
    #[default]
    None,
    /// One of this provider. It has the name of the agent's instance, unless the spec has another: the same instance gets
    /// the same sandbox again.
    Provider(Arc<dyn SandboxProvider>, Box<SandboxSpec>),
    /// This one.
    Sandbox(Sandbox),
    /// The sandbox `default` of this pool. Tools that name sandboxes reach the others.
    Pool(SandboxPool),
}

impl AgentSandbox {
    /// A sandbox of this provider as it makes them by default.
    pub fn of_provider(provider: Arc<dyn SandboxProvider>) -> Self {
        Self::Provider(provider, Box::default())
    }
}

/// The sandbox of a harness, found once; its sessions and their tasks share it.
#[derive(Clone)]
pub(crate) struct SandboxAccess {
    pool: SandboxPool,
    place: SandboxPlace,
    cwd: Option<SandboxPath>,
}

#[derive(Clone)]
enum SandboxPlace {
    Nowhere,
    Handle(Sandbox),
    InPool,
}

impl SandboxAccess {
    /// Finds the sandbox, or makes it. It is never destroyed here.
    pub(crate) async fn find(sandbox: AgentSandbox, instance: &str, cwd: Option<&str>) -> Result<Self> {
        let (pool, place) = match sandbox {
            AgentSandbox::None => (without_sandboxes()?, SandboxPlace::Nowhere),
            AgentSandbox::Provider(provider, spec) => {
                let name = spec.name.clone().map_or_else(|| sandbox_name(instance), Ok)?;
                let spec = SandboxSpec { name: Some(name), ..*spec };
                let (handle, _) = Sandbox::get_or_create(provider.as_ref(), spec).await?;
                (SandboxPool::open(provider, PoolOptions::default())?, SandboxPlace::Handle(handle))
            }
            AgentSandbox::Sandbox(handle) => (without_sandboxes()?, SandboxPlace::Handle(handle)),
            AgentSandbox::Pool(pool) => (pool, SandboxPlace::InPool),
        };
        let source = Self { pool, place, cwd: None };
        match cwd {
            Some(cwd) => source.at(cwd).await,
            None => Ok(source),
        }
    }

    /// The same sandbox with another working directory, relative to this one's. `invalid`: there is no sandbox.
    pub(crate) async fn at(&self, cwd: &str) -> Result<Self> {
        let Some(sandbox) = self.sandbox().await? else {
            let message = format!("work in `{cwd}`: the agent has no sandbox");
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        Ok(Self { cwd: Some(sandbox.resolve_path(cwd)?), ..self.clone() })
    }

    /// The sandbox, if there is one.
    pub(crate) async fn sandbox(&self) -> Result<Option<Sandbox>> {
        match self.place {
            SandboxPlace::Nowhere => Ok(None),
            SandboxPlace::Handle(_) | SandboxPlace::InPool => self.context().sandbox(None).await.map(Some),
        }
    }

    /// The surroundings of a tool's run.
    pub(crate) fn context(&self) -> ToolContext {
        let context = ToolContext::new(self.pool.clone());
        let context = match &self.place {
            SandboxPlace::Handle(handle) => context.with_handle(handle.clone()),
            SandboxPlace::InPool | SandboxPlace::Nowhere => context,
        };
        match &self.cwd {
            Some(cwd) => context.with_cwd(cwd.clone()),
            None => context,
        }
    }

    /// The tools that a model is shown of it where none are named: those that its provider brings, else `coding`.
    pub(crate) fn default_toolset(&self) -> Result<Option<Toolset>> {
        match self.place {
            SandboxPlace::Nowhere => Ok(None),
            SandboxPlace::InPool if self.pool.provider().tools().is_some() => {
                default_tools(self.pool.provider().as_ref()).map(Some)
            }
            SandboxPlace::Handle(_) if self.pool.provider().tools().is_some() => {
                default_tools(self.pool.provider().as_ref()).map(Some)
            }
            SandboxPlace::Handle(_) | SandboxPlace::InPool => toolset("coding").map(Some),
        }
    }
}

/// An instance's id as the name of a sandbox: what a name can't have becomes a hyphen.
fn sandbox_name(instance: &str) -> Result<SandboxName> {
    let lower = instance.to_ascii_lowercase();
    let name: String =
        lower.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let name = name.trim_matches('-');
    SandboxName::parse(if name.is_empty() { DEFAULT_SANDBOX } else { name })
}

/// A pool without sandboxes, for agents that have none.
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
