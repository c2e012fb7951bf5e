//! The surroundings of a tool's run, beside its arguments.

use std::fmt;
use std::sync::Arc;

use eyot::{Result, Sandbox, SandboxName, SandboxPath};
use eyot_engine::{DEFAULT_SANDBOX, SandboxPool};
use tokio_util::sync::CancellationToken;

/// The surroundings of a tool's run, beside its arguments. Clones mean the same pool and the same
/// cancel.
#[derive(Clone)]
pub struct ToolContext {
    /// The sandboxes of the session.
    pub pool: SandboxPool,
    /// The one that is meant when a call names none; by default [`DEFAULT_SANDBOX`].
    pub sandbox: SandboxName,
    /// The sandbox for calls that name none. The pool is not asked for one then.
    pub handle: Option<Sandbox>,
    /// The working directory for calls that name no sandbox; by default the sandbox's own.
    pub cwd: Option<SandboxPath>,
    /// Ends the call: a command is killed and answers with its output so far, everything else is given up.
    pub cancel: CancellationToken,
    /// The id that the model gave the call, where it is known.
    pub call_id: Option<String>,
    /// Hears what a long call has done so far; must not block.
    pub progress: Option<Arc<dyn Fn(ToolProgress) + Send + Sync>>,
}

/// The progress of a call that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolProgress {
    /// The amount done; it only grows. Bytes of output, for a command.
    pub done: u64,
    /// The last thing that there was to see: a line of output, say. At most 200 bytes and an ellipsis.
    pub message: String,
}

impl ToolProgress {
    /// The longest message, in bytes.
    const MAX_MESSAGE_BYTES: usize = 200;

    /// So much, and what was seen last.
    pub fn new(done: u64, message: &str) -> Self {
        let mut end = message.len().min(Self::MAX_MESSAGE_BYTES);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        let ellipsis = if end < message.len() { "…" } else { "" };
        Self { done, message: format!("{}{ellipsis}", &message[..end]) }
    }
}

impl ToolContext {
    /// Makes a context of this pool, for calls without cancel and progress.
    pub fn new(pool: SandboxPool) -> Self {
        let sandbox = SandboxName::parse(DEFAULT_SANDBOX).expect("`default` is a name");
        let (handle, cwd, call_id, progress) = Default::default();
        Self { pool, sandbox, handle, cwd, cancel: CancellationToken::new(), call_id, progress }
    }

    /// The same context with another sandbox for calls that name none.
    #[must_use]
    pub fn with_sandbox(self, sandbox: SandboxName) -> Self {
        Self { sandbox, ..self }
    }

    /// Returns this context with a sandbox for calls that name none.
    #[must_use]
    pub fn with_handle(self, handle: Sandbox) -> Self {
        Self { handle: Some(handle), ..self }
    }

    /// Returns this context with another working directory for calls that name no sandbox.
    #[must_use]
    pub fn with_cwd(self, cwd: SandboxPath) -> Self {
        Self { cwd: Some(cwd), ..self }
    }

    /// The same context with another cancel.
    #[must_use]
    pub fn with_cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }

    /// The same context with the id of the call.
    #[must_use]
    pub fn with_call_id(self, id: impl Into<String>) -> Self {
        Self { call_id: Some(id.into()), ..self }
    }

    /// The same context with somebody who hears of progress.
    #[must_use]
    pub fn with_progress(self, progress: impl Fn(ToolProgress) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(progress)), ..self }
    }

    /// The sandbox that a call means, made or woken if need be.
    pub async fn sandbox(&self, named: Option<&str>) -> Result<Sandbox> {
        if named.is_some() {
            return self.pool.get(self.name(named)).await;
        }
        let sandbox = match &self.handle {
            Some(handle) => handle.clone(),
            None => self.pool.get(self.name(None)).await?,
        };
        match &self.cwd {
            Some(cwd) => sandbox.with_cwd(cwd.as_str()),
            None => Ok(sandbox),
        }
    }

    /// The name of the sandbox that a call means.
    pub fn name<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(self.sandbox.as_str())
    }

    /// Reports progress, if the call is watched.
    pub fn report(&self, progress: ToolProgress) {
        if let Some(hear) = &self.progress {
            hear(progress);
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}
