//! Writes down what one sandbox does, as its handle tells it.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    DestroyEvent, EgressDecisionEvent, ExecEndEvent, ExecResult, ExecStartEvent, FileWriteEvent, Observer,
    OrphanSettlement, Outcome, Result,
};

use super::EventLog;
use super::event::{EventKind, NewEvent};

/// An [`Observer`] that appends what one sandbox does to an [`EventLog`]: commands, files written,
/// egress decisions, the end. The creation is recorded by the caller that creates, which knows the
/// reason.
///
/// An event that can't be recorded is the caller's error, as [`Observer`] has it: a command whose
/// start can't be recorded does not start. If no caller is left, the failure is logged as an error.
pub struct EventRecorder {
    log: Arc<EventLog>,
    pool: Option<String>,
    name: Option<String>,
}

impl EventRecorder {
    /// Records what the sandbox called `name` of the pool `pool` does.
    pub fn new(log: Arc<EventLog>, pool: Option<String>, name: Option<String>) -> Self {
        Self { log, pool, name }
    }

    async fn record(&self, sandbox_id: &str, kind: EventKind, reason: String) -> Result<()> {
        let event = NewEvent {
            pool: self.pool.clone(),
            sandbox: self.name.clone(),
            sandbox_id: Some(sandbox_id.to_owned()),
            reason,
            kind,
        };
        self.log.record(event).await.map(drop)
    }

    /// Records an event for which no caller waits; a failure is logged.
    async fn record_or_log(&self, sandbox_id: &str, kind: EventKind, reason: String) {
        let name = kind.name();
        if let Err(error) = self.record(sandbox_id, kind, reason).await {
            tracing::error!(sandbox_id, event = name, %error, "an event was not recorded");
        }
    }
}

#[async_trait]
impl Observer for EventRecorder {
    async fn exec_started(&self, event: &ExecStartEvent) -> Result<()> {
        let command = event.command.to_string();
        let kind = EventKind::ExecStarted { command };
        self.record(&event.sandbox.sandbox_id, kind, "exec was called".to_owned()).await
    }

    async fn exec_ended(&self, event: &ExecEndEvent) -> Result<()> {
        let (start, result) = (&event.start, &event.result);
        let kind = exec_ended_kind(start.command.to_string(), result);
        self.record(&start.sandbox.sandbox_id, kind, end_reason(result)).await
    }

    async fn file_written(&self, event: &FileWriteEvent) -> Result<()> {
        let kind = EventKind::FileWritten { path: event.path.clone(), size: event.size };
        self.record(&event.sandbox.sandbox_id, kind, "a write was called".to_owned()).await
    }

    async fn destroyed(&self, event: &DestroyEvent) -> Result<()> {
        self.record(&event.sandbox_id, EventKind::Destroyed, "destroy was called".to_owned()).await
    }

    async fn egress_decided(&self, event: EgressDecisionEvent) {
        let decision = event.decision;
        let kind = EventKind::EgressDecided {
            verdict: decision.verdict,
            protocol: decision.protocol,
            host: decision.host,
            port: decision.port,
            address: decision.address,
        };
        let reason = match decision.reason.trim() {
            "" => "the rules of the sandbox's network".to_owned(),
            _ => decision.reason,
        };
        self.record_or_log(&event.sandbox.sandbox_id, kind, reason).await;
    }

    async fn orphan_settled(&self, settlement: OrphanSettlement) {
        let (id, command) = (&settlement.sandbox.sandbox_id, settlement.command.to_string());
        let (kind, reason) = match &settlement.result {
            Ok(result) => (
                exec_ended_kind(command, result),
                format!("after its kill could not be confirmed: {}", end_reason(result)),
            ),
            Err(error) => {
                let what = format!("nobody will know how this command ended: {command}");
                (EventKind::Reconciled { what }, format!("its kill could not be confirmed: {error}"))
            }
        };
        self.record_or_log(id, kind, reason).await;
    }
}

fn exec_ended_kind(command: String, result: &ExecResult) -> EventKind {
    EventKind::ExecEnded {
        command,
        outcome: result.outcome,
        duration_ms: result.duration_ms,
        stdout_bytes: result.stdout_bytes,
        stderr_bytes: result.stderr_bytes,
    }
}

fn end_reason(result: &ExecResult) -> String {
    let why = match result.outcome {
        Outcome::Exited(code) => format!("it exited with code {code}"),
        Outcome::Signaled(signal) => format!("signal {signal} ended it"),
        Outcome::TimedOut => match result.timeout_ms.filter(|timeout_ms| *timeout_ms <= result.duration_ms) {
            Some(timeout_ms) => format!("its deadline of {timeout_ms} milliseconds passed"),
            None => "its client's deadline passed".to_owned(),
        },
        Outcome::Cancelled => "the caller cancelled it".to_owned(),
        Outcome::OutOfMemory => "the memory limit ended it".to_owned(),
    };
    if result.may_still_be_running { format!("{why}, and it may still be running") } else { why }
}
