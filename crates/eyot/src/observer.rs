//! Hooks around a sandbox's life, in seed 004's order: create, exec start, exec end, file write, destroy.

use std::time::SystemTime;

use async_trait::async_trait;
use eyot_egress::EgressDecision;

use crate::error::Result;
use crate::exec::{Command, ExecResult};

/// The sandbox that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "SandboxSessionEvent")]
pub struct SandboxEvent {
    /// The id.
    pub sandbox_id: String,
    /// The provider's name.
    pub provider: String,
    /// The working directory.
    pub workdir: String,
}

/// The sandbox was destroyed through this handle.
pub type DestroyEvent = SandboxEvent;

/// A command is about to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecStartEvent {
    /// The sandbox.
    pub sandbox: SandboxEvent,
    /// The command.
    pub command: Command,
    /// The working directory, only if the call named one.
    pub cwd: Option<String>,
}

/// A command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecEndEvent {
    /// The command that was started.
    pub start: ExecStartEvent,
    /// The result.
    pub result: ExecResult,
}

/// A file was written through the handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWriteEvent {
    /// The sandbox.
    pub sandbox: SandboxEvent,
    /// The normalised path; relative to the workspace when written through [`crate::Workspace`].
    pub path: String,
    /// The number of bytes that were written.
    pub size: u64,
}

/// A command whose kill could not be confirmed in time has settled after all.
#[derive(Debug)]
#[doc(alias = "OrphanedExecSettlement")]
pub struct OrphanSettlement {
    /// The sandbox.
    pub sandbox: SandboxEvent,
    /// The command that was started.
    pub command: Command,
    /// The time at which it was started.
    pub started_at: SystemTime,
    /// The time at which the caller was told that it may still be running.
    pub abandoned_at: SystemTime,
    /// The time at which it settled.
    pub settled_at: SystemTime,
    /// The result, or the reason why it will never be known.
    pub result: Result<ExecResult>,
}

/// Something inside tried to reach something outside, and it was decided whether it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressDecisionEvent {
    /// The sandbox.
    pub sandbox: SandboxEvent,
    /// The decision, with its reason.
    pub decision: EgressDecision,
}

/// Watches a sandbox. Every method is awaited; an error is the caller's error (and undoes a
/// create), except in [`Observer::orphan_settled`] and [`Observer::egress_decided`], where no
/// caller is left.
#[async_trait]
#[doc(alias = "SandboxHooks")]
pub trait Observer: Send + Sync + 'static {
    /// The sandbox is ready, its manifest applied. An error destroys it again.
    async fn sandbox_created(&self, event: &SandboxEvent) -> Result<()> {
        let SandboxEvent { .. } = event;
        Ok(())
    }

    /// A command is about to start.
    async fn exec_started(&self, event: &ExecStartEvent) -> Result<()> {
        let ExecStartEvent { .. } = event;
        Ok(())
    }

    /// A command ended. Not called when it could not be started.
    async fn exec_ended(&self, event: &ExecEndEvent) -> Result<()> {
        let ExecEndEvent { .. } = event;
        Ok(())
    }

    /// A file was written.
    async fn file_written(&self, event: &FileWriteEvent) -> Result<()> {
        let FileWriteEvent { .. } = event;
        Ok(())
    }

    /// The sandbox was destroyed, once.
    async fn destroyed(&self, event: &DestroyEvent) -> Result<()> {
        let SandboxEvent { .. } = event;
        Ok(())
    }

    /// Something inside tried to reach something outside (network `egress`). Told in the order of the decisions, beside
    /// everything else, as long as this handle or a clone of it lives.
    async fn egress_decided(&self, event: EgressDecisionEvent) {
        drop(event);
    }

    /// A command that may have been left running has settled.
    async fn orphan_settled(&self, settlement: OrphanSettlement) {
        drop(settlement);
    }
}
