//! The handle: one live isolated world, and every rule that does not depend on the backend, written once.
//!
//! A driver maps its backend and stops; deadlines, cancellation, output caps, parent creation, path rules, hooks and
//! what holds after a destroy are in the modules below. Anvia's narrower view is [`crate::Workspace`].

mod capture;
mod collect;
mod destroy;
mod egress;
mod exec;
mod files;
mod internal;
mod kept;
mod lifecycle;
mod processes;
mod replay;
mod run;
mod search;
mod started;
mod stdin;
mod waits;
mod watch;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::capabilities::{Capabilities, Capability};
use crate::command::PtySize;
use crate::created::{Created, SandboxInfo, SandboxKeeper};
use crate::driver::SandboxDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::isolation::Isolation;
use crate::observer::{Observer, SandboxEvent};
use crate::path::{ConfinedPath, SandboxPath};
use crate::spec::{SandboxId, SandboxName};
use destroy::Lifetime;
use egress::DecisionFollower;

pub use files::MAX_BUFFERED_READ_BYTES;
pub use internal::SandboxInternals;
pub use run::{ANSWER_MS, KILL_CONFIRM_MS};
pub(crate) use write::Content;

/// Options for starting a process that outlives the call.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// Working directory, resolved against the sandbox's own.
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// The user who runs it.
    pub user: Option<String>,
    /// The input, or its beginning: at most [`crate::MAX_STDIN_BYTES`]. By default the process reads end of file.
    pub stdin: Bytes,
    /// More input comes by [`Sandbox::write_stdin`].
    pub stdin_follows: bool,
    /// It is killed with its whole tree when it has not ended after so many milliseconds; by default never.
    pub timeout_ms: Option<u64>,
    /// Runs it on a terminal of this size; its output is then one stream.
    pub pty: Option<PtySize>,
}

/// One live isolated world. Clones are the same world; destroying one destroys it for all.
///
/// A path may be relative (to [`Sandbox::cwd`]) or absolute; both are normalised and neither is confined. Every method
/// fails with `destroyed` once [`Sandbox::destroy`] was called on any clone, before it looks at its arguments, and
/// with `unavailable` when the backend does not answer.
#[derive(Clone)]
#[doc(alias = "SessionEnv")]
#[doc(alias = "SandboxSession")]
pub struct Sandbox {
    inner: Arc<SandboxInner>,
    /// The name by which this handle's source knows it, if that is not its own.
    alias: Option<SandboxName>,
    /// The directory that no path of this handle leads out of.
    beneath: Option<SandboxPath>,
    /// The working directory of this handle, if it differs from the sandbox's.
    cwd: Option<SandboxPath>,
}

struct SandboxInner {
    info: SandboxInfo,
    driver: Arc<dyn SandboxDriver>,
    keeper: Option<Arc<dyn SandboxKeeper>>,
    observer: Option<Arc<dyn Observer>>,
    /// The description of this sandbox that every hook gets.
    event: SandboxEvent,
    /// The variables of every command: the spec's, with the manifest's layered over them.
    env: BTreeMap<String, String>,
    lifetime: Lifetime,
    /// Tells the observer of the decisions of the network `egress`.
    _follower: Option<DecisionFollower>,
}

impl Sandbox {
    /// A handle; its observer is told of the `decisions` that were made before as well.
    pub(crate) fn new(created: Created, observer: Option<Arc<dyn Observer>>, decisions: usize) -> Self {
        let Created { info, driver, keeper } = created;
        let mut env = info.spec.env.clone();
        env.extend(info.spec.manifest.env.clone());
        let event = SandboxEvent {
            sandbox_id: info.id.to_string(),
            provider: info.provider.clone(),
            workdir: driver.workdir().to_string(),
        };
        let follower = DecisionFollower::start(&info, &driver, observer.as_ref(), &event, decisions);
        let lifetime = Lifetime::default();
        let inner =
            SandboxInner { info, driver, keeper, observer, event, env, lifetime, _follower: follower };
        Self { inner: Arc::new(inner), alias: None, beneath: None, cwd: None }
    }

    /// Returns whether its backend is connected: a handle that is not is best made anew, since what
    /// it stands for sleeps, is gone, or is reached in another way. Nothing is asked.
    pub fn is_connected(&self) -> bool {
        self.check_alive().is_ok() && self.inner.driver.is_connected()
    }

    /// The id, never used twice.
    pub fn id(&self) -> &SandboxId {
        &self.inner.info.id
    }

    /// The name: of a handle from a pool, the name in that pool, and [`Sandbox::info`] has the one
    /// that the provider knows.
    pub fn name(&self) -> &SandboxName {
        self.alias.as_ref().unwrap_or(&self.inner.info.name)
    }

    /// The facts about it that are known without asking it, as of the time at which this handle was
    /// made.
    pub fn info(&self) -> &SandboxInfo {
        &self.inner.info
    }

    /// The protections that are really in force around it.
    pub fn isolation(&self) -> &Isolation {
        self.inner.driver.isolation()
    }

    /// Returns what it can do.
    pub fn capabilities(&self) -> &Capabilities {
        self.inner.driver.capabilities()
    }

    /// The working directory: where commands start and what relative paths are resolved against.
    pub fn cwd(&self) -> &SandboxPath {
        self.cwd.as_ref().unwrap_or_else(|| self.inner.driver.workdir())
    }

    /// Returns a handle on the same sandbox with another working directory. Its commands start there, and its relative paths
    /// are resolved against it. The directory is not checked: if it is missing, commands fail.
    ///
    /// ```
    /// # async fn example(sandbox: eyot::Sandbox) -> eyot::Result<()> {
    /// let project = sandbox.with_cwd("project")?;
    /// project.write("notes.txt", "in the project").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_cwd(&self, directory: &str) -> Result<Self> {
        Ok(Self { cwd: Some(self.place(directory)?.path), ..self.clone() })
    }

    /// Resolves a path against the working directory, without asking the sandbox. Two spellings of one path give one
    /// string; `..` stops at `/`. An empty path, a NUL and an overlong path are `invalid`.
    pub fn resolve_path(&self, path: &str) -> Result<SandboxPath> {
        self.cwd().resolve(path)
    }

    /// The same as a place for the options of a call: held where this handle is.
    pub fn resolve_confined(&self, path: &str) -> Result<ConfinedPath> {
        self.place(path)
    }

    /// The largest file that may be read or written.
    pub(crate) fn max_file_bytes(&self) -> Option<u64> {
        self.info().spec.limits.max_file_bytes
    }

    /// A handle on the same sandbox whose paths, the working directories of commands included, are held beneath a directory:
    /// one that leads out, by its text or by a symbolic link on the way, is refused with `permission`. (A program that runs
    /// inside goes where it likes.) `unsupported` where the provider can't hold paths.
    pub fn beneath(&self, directory: &str) -> Result<Self> {
        self.require(Capability::Beneath, "beneath", &[])?;
        Ok(Self { beneath: Some(self.place(directory)?.path), ..self.clone() })
    }

    pub(crate) fn driver(&self) -> &Arc<dyn SandboxDriver> {
        &self.inner.driver
    }

    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.inner.observer.as_ref()
    }

    pub(crate) fn event(&self) -> &SandboxEvent {
        &self.inner.event
    }

    /// Refuses once the sandbox was destroyed through this handle or a clone of it.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.inner.lifetime.is_over() { Err(Error::destroyed(self.name())) } else { Ok(()) }
    }

    /// Refuses `operation` unless the driver has `capability`.
    pub(crate) fn require(&self, capability: Capability, operation: &str, options: &[&str]) -> Result<()> {
        self.capabilities().require(capability, self.driver().provider(), operation, options)
    }

    /// A path as a caller of this handle gives it: alive first, then resolved, then held where the handle is.
    fn place(&self, path: &str) -> Result<ConfinedPath> {
        self.check_alive()?;
        self.confine(self.resolve_path(path)?)
    }

    /// A path, held where the handle is.
    fn confine(&self, path: SandboxPath) -> Result<ConfinedPath> {
        match &self.beneath {
            Some(directory) if path.strip_prefix(directory).is_none() => {
                let message =
                    format!("use `{path}` in sandbox `{}`: it is not beneath `{directory}`", self.name());
                Err(Error::new(ErrorKind::Permission, message))
            }
            beneath => Ok(ConfinedPath { path, beneath: beneath.clone() }),
        }
    }

    /// Says what was being done, where, in the error's sentence; errors that already name it all stay as they are.
    pub(crate) fn failed(&self, operation: &str, place: impl fmt::Display) -> impl FnOnce(Error) -> Error {
        let context = format!("{operation} `{place}` in sandbox `{}`", self.name());
        // Below, a sandbox of a pool has another name.
        let known_as = self.inner.keeper.is_some().then(|| self.name().clone());
        move |error| match (error.kind(), known_as) {
            (_, Some(name)) if error.is_sleeping() => error.renamed_sleeping(name),
            (ErrorKind::Destroyed, Some(name)) => error.renamed_destroyed(name),
            (ErrorKind::Destroyed, None) => error,
            _ if error.is_sleeping() || error.is_unsupported_operation() => error,
            _ => error.context(context),
        }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Sandbox");
        debug.field("id", self.id()).field("name", self.name()).field("provider", &self.inner.info.provider);
        debug.finish_non_exhaustive()
    }
}
