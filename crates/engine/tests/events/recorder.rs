//! The recorder writes down what it is told.

use bytes::Bytes;
use eyot::{
    Command, EgressDecision, EgressDecisionEvent, EgressProtocol, EgressVerdict, ExecEndEvent, ExecResult,
    ExecStartEvent, FileWriteEvent, Observer, Outcome, SandboxEvent,
};
use eyot_engine::events::{EventKind, EventRecorder};

use crate::log::Scene;

fn sandbox() -> SandboxEvent {
    SandboxEvent { sandbox_id: "sb_1".to_owned(), provider: "demo".to_owned(), workdir: "/w".to_owned() }
}

fn start() -> ExecStartEvent {
    ExecStartEvent { sandbox: sandbox(), command: Command::argv(["echo", "hi"]), cwd: None }
}

fn timed_out() -> ExecResult {
    ExecResult {
        outcome: Outcome::TimedOut,
        stdout: Bytes::from_static(b"secret"),
        stderr: Bytes::new(),
        stdout_bytes: 6,
        stderr_bytes: 0,
        duration_ms: 51,
        timeout_ms: Some(50),
        may_still_be_running: false,
        output_open: false,
    }
}

#[tokio::test]
async fn what_a_sandbox_does_is_recorded_with_pool_name_id_and_reason() {
    let scene = Scene::with(0);
    let recorder = EventRecorder::new(scene.log.clone(), Some("p".to_owned()), Some("box".to_owned()));
    recorder.exec_started(&start()).await.unwrap();
    recorder.exec_ended(&ExecEndEvent { start: start(), result: timed_out() }).await.unwrap();
    let written = FileWriteEvent { sandbox: sandbox(), path: "/w/a".to_owned(), size: 3 };
    recorder.file_written(&written).await.unwrap();
    let decision = EgressDecision {
        number: 1,
        at_ms: 0,
        verdict: EgressVerdict::Refused,
        protocol: EgressProtocol::Connect,
        host: "example.com".to_owned(),
        port: Some(443),
        address: None,
        reason: "no rule allows it".to_owned(),
    };
    recorder.egress_decided(EgressDecisionEvent { sandbox: sandbox(), decision }).await;
    recorder.destroyed(&sandbox()).await.unwrap();
    let events = scene.all();
    for event in &events {
        assert_eq!(
            (event.pool.as_deref(), event.sandbox.as_deref(), event.sandbox_id.as_deref()),
            (Some("p"), Some("box"), Some("sb_1"))
        );
    }
    let told: Vec<(&str, &str)> =
        events.iter().map(|event| (event.kind.name(), event.reason.as_str())).collect();
    assert_eq!(
        told,
        [
            ("exec_started", "exec was called"),
            ("exec_ended", "its deadline of 50 milliseconds passed"),
            ("file_written", "a write was called"),
            ("egress_decided", "no rule allows it"),
            ("destroyed", "destroy was called"),
        ]
    );
    let EventKind::ExecEnded { command, outcome, duration_ms, stdout_bytes, .. } = &events[1].kind else {
        panic!("{:?}", events[1])
    };
    assert_eq!((command.as_str(), *outcome), ("echo hi", Outcome::TimedOut));
    assert_eq!((*duration_ms, *stdout_bytes), (51, 6));
    assert!(!scene.lines(1).concat().contains("secret"), "what a command wrote is not the log's");
    scene.holds();
}

#[tokio::test]
async fn a_command_whose_start_cannot_be_recorded_is_refused() {
    let scene = Scene::with(0);
    let recorder = EventRecorder::new(scene.log.clone(), None, None);
    std::fs::create_dir(scene.file("head")).unwrap();
    let error = recorder.exec_started(&start()).await.unwrap_err();
    assert!(error.to_string().starts_with("append to the event log: "), "{error}");
}
