//! The observer: what it hears, in which order, and what its errors do.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::Fixture;
use super::check::{Check, Disposable, cases, ensure, ensure_eq, ensure_fails, sh, unique_name, until};
use super::create::{listed, named, nothing_left};
use crate::capabilities::Capability;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Command, ExecOptions, Outcome};
use crate::observer::{DestroyEvent, ExecEndEvent, ExecStartEvent, FileWriteEvent, Observer, SandboxEvent};
use crate::process::ProcessStatus;
use crate::sandbox::{Sandbox, StartOptions};
use crate::spec::{SandboxSpec, WorkspaceSpec};

cases! {
    the_observer_hears_everything_once_and_in_order(fixture) needs [Shell];
    a_refused_command_is_not_heard_of(fixture) needs [Shell];
    a_command_that_cannot_start_has_a_start_and_no_end(fixture) needs [Shell];
    an_observer_that_fails_at_the_creation_undoes_it(fixture) needs [];
    a_create_that_is_undone_leaves_a_workspace_that_was_there(fixture) needs [PersistentWorkspace];
    an_observer_that_fails_before_a_command_keeps_it_from_starting(fixture) needs [Shell];
    an_observer_that_fails_after_a_command_is_the_callers_error(fixture) needs [Shell];
    a_streamed_command_is_heard_of_like_any_other(fixture) needs [Shell];
    a_started_process_is_heard_of_once_it_runs_and_when_it_has_ended(fixture) needs [Shell, Processes];
    a_process_that_an_observer_objects_to_is_ended(fixture) needs [Shell, Processes];
    hearing_of_a_processs_end_keeps_no_sandbox_from_being_idle(fixture) needs [Shell, Processes, Deadlines];
}

/// Writes down what it hears, and fails at what it is told to.
#[derive(Default)]
struct Recorder {
    heard: Mutex<Vec<String>>,
    fails_at: Option<&'static str>,
}

impl Recorder {
    fn failing_at(event: &'static str) -> Arc<Self> {
        Arc::new(Self { fails_at: Some(event), ..Self::default() })
    }

    fn hear(&self, event: &str, details: impl std::fmt::Display) -> Result<()> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(format!("{event}{details}"));
        if self.fails_at == Some(event) {
            Err(Error::new(ErrorKind::Conflict, "the observer objects"))
        } else {
            Ok(())
        }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Observer for Recorder {
    async fn sandbox_created(&self, event: &SandboxEvent) -> Result<()> {
        self.hear("created", format_args!(" in {}", event.workdir))
    }

    async fn exec_started(&self, event: &ExecStartEvent) -> Result<()> {
        let cwd = event.cwd.as_deref().unwrap_or("its own");
        self.hear("started", format_args!(" `{}` in {cwd}", event.command))
    }

    async fn exec_ended(&self, event: &ExecEndEvent) -> Result<()> {
        self.hear("ended", format_args!(" with {:?}", event.result.outcome))
    }

    async fn file_written(&self, event: &FileWriteEvent) -> Result<()> {
        self.hear("written", format_args!(" {} of {}", event.path, event.size))
    }

    async fn destroyed(&self, _event: &DestroyEvent) -> Result<()> {
        self.hear("destroyed", "")
    }
}

/// A sandbox that is watched.
async fn watched(fixture: &dyn Fixture, recorder: &Arc<Recorder>) -> Check<Disposable> {
    let sandbox = Sandbox::create_observed(&*fixture.provider(), fixture.spec(), recorder.clone()).await?;
    Ok(Disposable(sandbox))
}

async fn the_observer_hears_everything_once_and_in_order(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Arc::new(Recorder::default());
    let mut spec = fixture.spec();
    spec.manifest.files.insert("a/b".to_owned(), Bytes::from("123"));
    let sandbox = Disposable(Sandbox::create_observed(&*fixture.provider(), spec, recorder.clone()).await?);
    let Disposable(handle) = &sandbox;
    handle.exec("exit 3", ExecOptions { cwd: Some("a".to_owned()), ..ExecOptions::default() }).await?;
    handle.write("x/../note", "12345").await?;
    handle.read("note").await?;
    handle.list(".").await?;
    let has_workspace = handle.capabilities().has(Capability::Beneath);
    if has_workspace {
        handle.workspace().write_file("./deep/./note", "1").await?;
    }
    handle.destroy().await?;
    handle.clone().destroy().await?;
    let mut expected = vec![
        "written a/b of 3",
        "created in /workspace",
        "started `exit 3` in a",
        "ended with Exited(3)",
        "written /workspace/note of 5",
        "destroyed",
    ];
    if has_workspace {
        expected.insert(5, "written deep/note of 1");
    }
    ensure_eq!(recorder.heard(), expected);
    Ok(())
}

async fn a_refused_command_is_not_heard_of(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Arc::new(Recorder::default());
    let sandbox = watched(&*fixture, &recorder).await?;
    ensure_fails!(sh(&sandbox.0, " ").await, Invalid);
    let cancel = crate::CancellationToken::new();
    cancel.cancel();
    let options = ExecOptions { cancel: Some(cancel), ..ExecOptions::default() };
    ensure_eq!(sandbox.0.exec("true", options).await?.outcome, Outcome::Cancelled);
    ensure_eq!(recorder.heard(), ["created in /workspace"]);
    Ok(sandbox.0.destroy().await?)
}

async fn a_command_that_cannot_start_has_a_start_and_no_end(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Arc::new(Recorder::default());
    let sandbox = watched(&*fixture, &recorder).await?;
    let options = ExecOptions { cwd: Some("missing".to_owned()), ..ExecOptions::default() };
    ensure_fails!(sandbox.0.exec("true", options).await, NotFound);
    ensure_eq!(recorder.heard()[1..], ["started `true` in missing"]);
    Ok(sandbox.0.destroy().await?)
}

async fn an_observer_that_fails_at_the_creation_undoes_it(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    let recorder = Recorder::failing_at("created");
    let refused = Sandbox::create_observed(&*provider, spec, recorder.clone()).await.map(Disposable);
    ensure_fails!(refused, Conflict);
    ensure_eq!(recorder.heard(), ["created in /workspace"]);
    nothing_left(&*provider, &name).await
}

async fn a_create_that_is_undone_leaves_a_workspace_that_was_there(fixture: Arc<dyn Fixture>) -> Check {
    let (provider, id) = (fixture.provider(), unique_name().to_string());
    let spec = |destroy_on_session_destroy| {
        let workspace = WorkspaceSpec::Persistent { id: id.clone(), destroy_on_session_destroy };
        SandboxSpec { workspace, ..fixture.spec() }
    };
    let first = Disposable(Sandbox::create(&*provider, spec(false)).await?);
    first.0.write("kept", "mine").await?;
    first.0.destroy().await?;
    let recorder = Recorder::failing_at("created");
    let refused = Sandbox::create_observed(&*provider, spec(true), recorder).await.map(Disposable);
    ensure_fails!(refused, Conflict);
    let last = Disposable(Sandbox::create(&*provider, spec(true)).await?);
    ensure_eq!(last.0.read_text("kept").await?, "mine");
    Ok(last.0.destroy().await?)
}

async fn an_observer_that_fails_before_a_command_keeps_it_from_starting(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Recorder::failing_at("started");
    let sandbox = watched(&*fixture, &recorder).await?;
    ensure_fails!(sh(&sandbox.0, "touch made").await, Conflict);
    ensure!(!sandbox.0.exists("made").await?, "the command ran");
    ensure_eq!(recorder.heard().len(), 2);
    Ok(sandbox.0.destroy().await?)
}

async fn an_observer_that_fails_after_a_command_is_the_callers_error(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Recorder::failing_at("ended");
    let sandbox = watched(&*fixture, &recorder).await?;
    ensure_fails!(sh(&sandbox.0, "touch made").await, Conflict);
    ensure!(sandbox.0.exists("made").await?, "the command did not run");
    Ok(sandbox.0.destroy().await?)
}

async fn a_streamed_command_is_heard_of_like_any_other(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Arc::new(Recorder::default());
    let sandbox = watched(&*fixture, &recorder).await?;
    let mut stream = sandbox.0.exec_stream(Command::shell("echo x"), ExecOptions::default()).await?;
    while let Some(event) = stream.next().await {
        event?;
    }
    ensure_eq!(recorder.heard()[1..], ["started `echo x` in its own", "ended with Exited(0)"]);
    Ok(sandbox.0.destroy().await?)
}

async fn a_started_process_is_heard_of_once_it_runs_and_when_it_has_ended(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let recorder = Arc::new(Recorder::default());
    let sandbox = watched(&*fixture, &recorder).await?;
    ensure!(
        sandbox.0.start(Command::argv(["/no/such"]), StartOptions::default()).await.is_err(),
        "it started"
    );
    ensure_eq!(recorder.heard().len(), 1);
    let line = "until [ -e go ]; do sleep 0.05; done; exit 3";
    sandbox.0.start(line, StartOptions::default()).await?;
    ensure_eq!(recorder.heard()[1..], [format!("started `{line}` in its own")]);
    sandbox.0.write("go", "").await?;
    until("its end", async || Ok(recorder.heard().len() > 3)).await?;
    ensure_eq!(recorder.heard()[3..], ["ended with Exited(3)"]);
    Ok(sandbox.0.destroy().await?)
}

async fn a_process_that_an_observer_objects_to_is_ended(fixture: Arc<dyn Fixture>) -> Check {
    let recorder = Recorder::failing_at("started");
    let sandbox = watched(&*fixture, &recorder).await?;
    ensure_fails!(sandbox.0.start("exec sleep 86470", StartOptions::default()).await, Conflict);
    until("its end", async || {
        let there = sandbox.0.processes().await?;
        Ok(there.iter().all(|process| process.status != ProcessStatus::Running))
    })
    .await?;
    Ok(sandbox.0.destroy().await?)
}

async fn hearing_of_a_processs_end_keeps_no_sandbox_from_being_idle(fixture: Arc<dyn Fixture>) -> Check {
    let (mut spec, name) = named(&*fixture);
    spec.lifecycle.idle_timeout_ms = Some(500);
    let (provider, recorder) = (fixture.provider(), Arc::new(Recorder::default()));
    let sandbox = Disposable(Sandbox::create_observed(&*provider, spec, recorder.clone()).await?);
    sandbox.0.start("exec sleep 86471", StartOptions::default()).await?;
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    ensure!(!recorder.heard().iter().any(|heard| heard.starts_with("ended")), "{:?}", recorder.heard());
    Ok(())
}
