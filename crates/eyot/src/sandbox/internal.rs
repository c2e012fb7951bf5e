//! The parts of a handle that the engine and the tools work with; see [`crate::internal`].

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;

use super::collect::ended_without_result;
use super::{Sandbox, SandboxInner};
use crate::created::Created;
use crate::driver::{ExecRequest, ExecutionEvent, SandboxDriver};
use crate::error::{Error, Result};
use crate::exec::{Command, ExitStatus};
use crate::observer::Observer;
use crate::spec::SandboxName;

/// The parts of a handle.
pub trait SandboxInternals: Sized {
    /// Makes a handle on a sandbox that a provider made or found, with an optional observer.
    fn from_created(created: Created, observer: Option<Arc<dyn Observer>>) -> Self;

    /// Returns its parts, for another handle.
    fn into_created(self) -> Created;

    /// Returns a handle that reports this name as the sandbox's own.
    #[must_use]
    fn with_alias(self, name: SandboxName) -> Self;

    /// Returns the driver, which knows neither the handle's rules nor its observer.
    fn driver(&self) -> &Arc<dyn SandboxDriver>;

    /// Says what was being done, where, in the error's sentence; errors that already name it all stay as they are.
    fn failed(&self, operation: &str, place: impl fmt::Display) -> impl FnOnce(Error) -> Error;

    /// Runs a small command of Eyot's own from `/` to its end, and says whether it exited with 0. What it prints is dropped.
    /// No observer hears of it: no caller asked for it.
    fn run_unobserved(&self, argv: Vec<&str>) -> impl Future<Output = Result<bool>> + Send;
}

impl SandboxInternals for Sandbox {
    fn from_created(created: Created, observer: Option<Arc<dyn Observer>>) -> Self {
        Self::new(created, observer, 0)
    }

    fn into_created(self) -> Created {
        let SandboxInner { info, driver, keeper, .. } = &*self.inner;
        Created { info: info.clone(), driver: Arc::clone(driver), keeper: keeper.clone() }
    }

    fn with_alias(self, name: SandboxName) -> Self {
        Self { alias: Some(name), ..self }
    }

    fn driver(&self) -> &Arc<dyn SandboxDriver> {
        Self::driver(self)
    }

    fn failed(&self, operation: &str, place: impl fmt::Display) -> impl FnOnce(Error) -> Error {
        Self::failed(self, operation, place)
    }

    async fn run_unobserved(&self, argv: Vec<&str>) -> Result<bool> {
        self.check_alive()?;
        let command = Command::argv(argv);
        self.check_command("exec", &command, None)?;
        let cwd = self.resolve_path("/")?.into();
        let env = self.inner.env.clone();
        let request = ExecRequest { command, cwd, env, user: None, stdin: false, pty: None };
        let mut events = Self::driver(self).exec(request).await?.events;
        while let Some(event) = events.next().await {
            if let ExecutionEvent::Exit { status, .. } = event? {
                return Ok(status == ExitStatus::Exited(0));
            }
        }
        Err(ended_without_result())
    }
}
