use std::sync::Arc;
use std::time::Duration;

use eyot::{
    CancellationToken, ErrorKind, ExecOptions, ExecutionEvent, ExitStatus, Limits, Outcome, Sandbox,
    SandboxSpec,
};

use crate::hooks::Recorder;
use crate::scripted::{OnKill, Provider, Scripted, error};

fn cancelled_by(token: &CancellationToken) -> ExecOptions {
    ExecOptions { cancel: Some(token.clone()), ..ExecOptions::default() }
}

fn within(timeout_ms: u64) -> ExecOptions {
    ExecOptions { timeout_ms: Some(timeout_ms), ..ExecOptions::default() }
}

#[tokio::test]
async fn a_command_that_was_cancelled_beforehand_never_reaches_the_driver_or_the_observer() {
    let driver = Scripted::new(&[]);
    let recorder = Arc::new(Recorder::default());
    let sandbox = Sandbox::create_observed(&Provider::of(&driver), SandboxSpec::default(), recorder.clone())
        .await
        .unwrap();
    let token = CancellationToken::new();
    token.cancel();
    let result = sandbox.exec("x", cancelled_by(&token)).await.unwrap();
    assert_eq!((result.outcome, result.may_still_be_running), (Outcome::Cancelled, false));
    assert_eq!(driver.log.lines(), ["create"]);
    assert_eq!(recorder.lines(), ["created"]);
}

#[tokio::test]
async fn a_cancel_kills_and_keeps_the_output_so_far() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let token = CancellationToken::new();
    let (result, ()) = tokio::join!(sandbox.exec("x", cancelled_by(&token)), async {
        let command = commands.recv().await.unwrap();
        command.stdout(b"so far");
        tokio::task::yield_now().await;
        token.cancel();
    });
    let result = result.unwrap();
    assert_eq!((result.outcome, &result.stdout[..]), (Outcome::Cancelled, &b"so far"[..]));
    assert!(!result.may_still_be_running);
    assert_eq!(driver.log.count("kill"), 1);
}

#[tokio::test]
async fn a_cancel_in_the_moment_of_completion_is_no_stale_success() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let token = CancellationToken::new();
    let (result, ()) = tokio::join!(sandbox.exec("x", cancelled_by(&token)), async {
        commands.recv().await.unwrap().exit(0);
        token.cancel();
    });
    assert_eq!(result.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_kills_and_is_never_early() {
    let driver = Scripted::new(&[]);
    let limits = Limits { timeout_ms: Some(70), ..Limits::default() };
    let sandbox = driver.sandbox_of(SandboxSpec { limits, ..SandboxSpec::default() }).await;
    for (options, timeout_ms) in [(within(1), 1), (within(250), 250), (ExecOptions::default(), 70)] {
        let result = sandbox.exec("x", options).await.unwrap();
        assert_eq!((result.outcome, result.timeout_ms), (Outcome::TimedOut, Some(timeout_ms)));
        assert!(result.duration_ms >= timeout_ms && result.duration_ms <= timeout_ms + 2, "{result:?}");
    }
    assert_eq!(driver.log.count("kill"), 3);
}

#[tokio::test]
async fn a_deadline_of_zero_is_over_before_anything_starts() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    assert_eq!(sandbox.exec("x", within(0)).await.unwrap().outcome, Outcome::TimedOut);
    assert_eq!(driver.log.lines(), ["create"]);
}

#[tokio::test]
async fn a_deadline_beyond_every_clock_is_none() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    for timeout_ms in [1 << 53, u64::MAX] {
        let (result, ()) = tokio::join!(sandbox.exec("x", within(timeout_ms)), async {
            commands.recv().await.unwrap().exit(0);
        });
        assert_eq!(result.unwrap().outcome, Outcome::Exited(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_output_does_not_keep_the_deadline_off() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let flood = async {
        let command = commands.recv().await.unwrap();
        while command.events.send(Ok(ExecutionEvent::Stdout("x".into()))).is_ok() {
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        result = sandbox.exec("x", within(50)) => assert_eq!(result.unwrap().outcome, Outcome::TimedOut),
        () = flood => panic!("the flood ended first"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_there_in_time_is_not_a_deadline() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let (result, ()) = tokio::join!(sandbox.exec("x", within(10)), async {
        let command = commands.recv().await.unwrap();
        command.exit(5);
        tokio::time::advance(Duration::from_millis(20)).await;
    });
    assert_eq!(result.unwrap().outcome, Outcome::Exited(5));
}

#[tokio::test(start_paused = true)]
async fn a_kill_that_nobody_confirms_is_admitted_and_its_end_reported_once() {
    let driver = Scripted::new(&[]);
    *driver.on_kill.lock().unwrap() = OnKill::Silence;
    let recorder = Arc::new(Recorder::default());
    let sandbox = Sandbox::create_observed(&Provider::of(&driver), SandboxSpec::default(), recorder.clone())
        .await
        .unwrap();
    let mut commands = driver.commands();
    let token = CancellationToken::new();
    let (result, command) = tokio::join!(sandbox.exec("x", cancelled_by(&token)), async {
        let command = commands.recv().await.unwrap();
        command.stdout(b"a");
        tokio::task::yield_now().await;
        token.cancel();
        command
    });
    let result = result.unwrap();
    assert_eq!((result.outcome, result.may_still_be_running), (Outcome::Cancelled, true));
    assert!(result.duration_ms >= eyot::KILL_CONFIRM_MS);
    command.stdout(b"b");
    command.send(ExecutionEvent::Exit { status: ExitStatus::Exited(7), output_open: false });
    recorder.until("orphan").await;
    assert_eq!(recorder.lines(), ["created", "started x", "ended Cancelled", "orphan Exited(7) ab"]);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_does_not_take_the_order_of_a_kill_does_not_hold_the_deadline() {
    let driver = Scripted::new(&[]);
    *driver.on_kill.lock().unwrap() = OnKill::Deaf;
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    for streamed in [false, true] {
        let result = if streamed {
            let mut events = sandbox.exec_stream("x", within(1_500)).await.unwrap();
            let Some(Ok(eyot::ExecEvent::End(result))) = events.next().await else {
                panic!("an end was due")
            };
            result
        } else {
            sandbox.exec("x", within(1_500)).await.unwrap()
        };
        assert_eq!((result.outcome, result.may_still_be_running), (Outcome::TimedOut, true));
        assert!(result.duration_ms <= 1_500 + eyot::ANSWER_MS + 10, "{result:?}");
        drop(commands.recv().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_never_confirmed_does_not_hold_the_deadline() {
    let driver = Scripted::new(&[]);
    *driver.starts_in_silence.lock().unwrap() = true;
    let sandbox = driver.sandbox().await;
    let result = sandbox.exec("x", within(1_500)).await.unwrap();
    assert_eq!((result.outcome, result.may_still_be_running), (Outcome::TimedOut, true));
    assert!(result.duration_ms <= 1_500 + eyot::ANSWER_MS + 10, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_takes_from_is_killed_at_its_deadline_all_the_same() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut events = sandbox.exec_stream("x", within(30)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert_eq!(driver.log.count("kill"), 1);
    let Some(Ok(eyot::ExecEvent::End(result))) = events.next().await else { panic!("an end was due") };
    assert_eq!(result.outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_sandbox_that_dies_under_a_command_that_is_being_killed_leaves_nothing_running() {
    let driver = Scripted::new(&[]);
    *driver.on_kill.lock().unwrap() = OnKill::Silence;
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let token = CancellationToken::new();
    let (result, ()) = tokio::join!(sandbox.exec("x", cancelled_by(&token)), async {
        let command = commands.recv().await.unwrap();
        token.cancel();
        tokio::task::yield_now().await;
        command.events.send(Err(error(ErrorKind::Destroyed))).unwrap();
    });
    let result = result.unwrap();
    assert_eq!((result.outcome, result.may_still_be_running), (Outcome::Cancelled, false));
}
