use std::collections::BTreeMap;

use bytes::Bytes;
use eyot::{
    Capability, Command, ErrorKind, ExecEvent, ExecOptions, ExecutionEvent, Limits, Manifest, Outcome,
    PtySize, SandboxSpec, Signal, StartOptions, Stdin,
};
use futures_util::{StreamExt, stream};

use crate::scripted::{Scripted, error};

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn variables_are_layered_over_the_spec_and_the_manifest_for_one_call_alone() {
    let driver = Scripted::new(&[]);
    let manifest = Manifest { env: env(&[("B", "manifest"), ("C", "manifest")]), ..Manifest::default() };
    let spec = SandboxSpec { env: env(&[("A", "spec"), ("B", "spec")]), manifest, ..SandboxSpec::default() };
    let sandbox = driver.sandbox_of(spec).await;
    let mut commands = driver.commands();
    let base = env(&[("A", "spec"), ("B", "manifest"), ("C", "manifest")]);
    let call = env(&[("A", "spec"), ("B", "manifest"), ("C", "a\n\"$b"), ("D", "")]);
    for (own, expected) in [(env(&[("C", "a\n\"$b"), ("D", "")]), &call), (BTreeMap::new(), &base)] {
        let options = ExecOptions { env: own, ..ExecOptions::default() };
        let (result, ()) = tokio::join!(sandbox.exec("true", options), async {
            let command = commands.recv().await.unwrap();
            assert_eq!(&command.request.env, expected);
            command.exit(0);
        });
        result.unwrap();
    }
}

#[tokio::test]
async fn what_no_process_could_have_is_refused_before_anything_starts() {
    let driver = Scripted::new(&[Capability::Users, Capability::Pty]);
    let sandbox = driver.sandbox().await;
    let plain = ExecOptions::default;
    let cases = [
        (Command::shell(" "), plain(), ErrorKind::Invalid),
        (Command::argv(["a", "b\0"]), plain(), ErrorKind::Invalid),
        (Command::shell("true"), ExecOptions { env: env(&[("A=B", "")]), ..plain() }, ErrorKind::Invalid),
        (Command::shell("true"), ExecOptions { cwd: Some("a\0".into()), ..plain() }, ErrorKind::Invalid),
        (
            Command::shell("true"),
            ExecOptions { user: Some("root".into()), ..plain() },
            ErrorKind::Unsupported,
        ),
        (
            Command::shell("true"),
            ExecOptions { pty: Some(PtySize::default()), ..plain() },
            ErrorKind::Unsupported,
        ),
    ];
    for (command, options, kind) in cases {
        assert_eq!(sandbox.exec(command, options).await.unwrap_err().kind(), kind);
    }
    assert_eq!(driver.log.lines(), ["create"]);
}

#[tokio::test]
async fn a_user_where_there_is_only_one_is_refused_with_the_reason_and_what_to_do() {
    let driver = Scripted::new(&[Capability::Users]);
    let sandbox = driver.sandbox().await;
    let options = || ExecOptions { user: Some("root".into()), ..ExecOptions::default() };
    let exec = sandbox.exec("true", options()).await.unwrap_err();
    let started = StartOptions { user: Some("root".into()), ..StartOptions::default() };
    let start = sandbox.start("true", started).await.unwrap_err();
    for error in [exec, start] {
        let hint = error.hint().unwrap();
        assert!(hint.contains("a range of ids") && hint.contains("leave the user out"), "{error}: {hint}");
    }
    assert_eq!(driver.log.lines(), ["create"]);
}

#[tokio::test]
async fn output_is_cut_at_the_cap_counted_in_full_and_drained() {
    let driver = Scripted::new(&[]);
    let limits = Limits { max_output_bytes: Some(4), ..Limits::default() };
    let sandbox = driver.sandbox_of(SandboxSpec { limits, ..SandboxSpec::default() }).await;
    let mut commands = driver.commands();
    let (result, ()) = tokio::join!(sandbox.exec("x", ExecOptions::default()), async {
        let command = commands.recv().await.unwrap();
        command.stdout(b"abc");
        command.stdout(b"defg");
        command.send(ExecutionEvent::Stderr(Bytes::from("1234")));
        command.exit(3);
    });
    let result = result.unwrap();
    assert_eq!(
        (result.outcome, &result.stdout[..], &result.stderr[..]),
        (Outcome::Exited(3), &b"abcd"[..], &b"1234"[..])
    );
    assert_eq!((result.stdout_bytes, result.stderr_bytes), (7, 4));
    assert_eq!((result.stdout_truncated(), result.stderr_truncated()), (true, false));
}

#[tokio::test]
async fn a_stream_hands_out_every_byte_and_then_exactly_one_end() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let options = ExecOptions { max_output_bytes: Some(2), ..ExecOptions::default() };
    let mut events = sandbox.exec_stream("x", options).await.unwrap();
    let command = commands.recv().await.unwrap();
    command.stdout(b"abc");
    command.exit(0);
    assert!(matches!(events.next().await, Some(Ok(ExecEvent::Stdout(bytes))) if bytes == "abc"));
    let Some(Ok(ExecEvent::End(result))) = events.next().await else { panic!("an end was due") };
    assert_eq!((&result.stdout[..], result.stdout_bytes), (&b"ab"[..], 3));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn signals_and_sizes_reach_the_running_command() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let events = sandbox.exec_stream("x", ExecOptions::default()).await.unwrap();
    events.signal(Signal::INT).await.unwrap();
    events.resize(PtySize { rows: 5, cols: 7 }).await.unwrap();
    assert_eq!(driver.log.lines()[2..], ["signal 2", "resize 7x5"]);
}

#[tokio::test]
async fn dropping_a_stream_before_the_end_drops_the_drivers_events() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let events = sandbox.exec_stream("x", ExecOptions::default()).await.unwrap();
    drop(events);
    assert_eq!(driver.log.count("events dropped"), 1);
}

#[tokio::test]
async fn input_is_fed_while_output_is_read_and_ends() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let pieces = stream::iter(["one", "two"].map(|piece| Ok(Bytes::from(piece)))).boxed();
    for (stdin, expected) in [
        (Stdin::Bytes(Bytes::from("all")), vec!["all", "<end>"]),
        (Stdin::Stream(pieces), vec!["one", "two", "<end>"]),
        (Stdin::Bytes(Bytes::new()), vec!["<end>"]),
    ] {
        let options = ExecOptions { stdin, ..ExecOptions::default() };
        let (result, ()) = tokio::join!(sandbox.exec("x", options), async {
            let command = commands.recv().await.unwrap();
            while command.input.count("<end>") == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(command.input.lines(), expected);
            command.exit(0);
        });
        assert!(result.unwrap().success());
    }
}

#[tokio::test]
async fn without_input_the_driver_is_asked_for_none() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let (result, ()) = tokio::join!(sandbox.exec("x", ExecOptions::default()), async {
        let command = commands.recv().await.unwrap();
        assert!(!command.request.stdin);
        command.exit(0);
    });
    result.unwrap();
}

#[tokio::test]
async fn an_input_stream_that_fails_cancels_the_command() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let stdin = Stdin::Stream(stream::iter([Err(error(ErrorKind::Internal))]).boxed());
    let result = sandbox.exec("x", ExecOptions { stdin, ..ExecOptions::default() }).await.unwrap();
    assert_eq!((result.outcome, driver.log.count("kill")), (Outcome::Cancelled, 1));
}

#[tokio::test]
async fn a_command_that_the_driver_loses_is_an_error() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let (result, ()) = tokio::join!(sandbox.exec("x", ExecOptions::default()), async {
        let command = commands.recv().await.unwrap();
        command.events.send(Err(error(ErrorKind::Unavailable))).unwrap();
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn concurrent_commands_are_independent() {
    let driver = Scripted::new(&[]);
    let sandbox = driver.sandbox().await;
    let mut commands = driver.commands();
    let all = (0..20).map(|number| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.exec(number.to_string(), ExecOptions::default()).await })
    });
    let all: Vec<_> = all.collect();
    let mut running = Vec::new();
    for _ in 0..20 {
        running.push(commands.recv().await.unwrap());
    }
    for command in running.into_iter().rev() {
        let number: i32 = command.request.command.to_string().parse().unwrap();
        command.exit(number);
    }
    for (number, run) in (0..).zip(all) {
        assert_eq!(run.await.unwrap().unwrap().outcome, Outcome::Exited(number));
    }
}
