//! Things that happen at once: creates of one name, a sleep under an old handle, a caller who leaves.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use eyot::{
    Command, ErrorKind, ExecOptions, ExecRequest, Execution, ExecutionEvent, ExitStatus, PtySize, Sandbox,
    SandboxName, SandboxPath, SandboxProvider, SandboxSpec, Stdin,
};
use eyot_providers::e2b::E2bProvider;
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};

use crate::ground::block_on;
use crate::injected::{Fault, NamedCase, Tried, ends, ensure, failed, ground, named, within};

const START: &str = "/process.Process/Start";

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 6] = [
        ("of_two_creates_of_one_name_the_one_that_lands_later_fails", late_create),
        ("an_old_handle_touches_no_process_of_the_next_life", old_handle),
        ("a_process_that_envd_does_not_find_by_its_tag_is_given_its_input", no_tag),
        ("a_command_whose_caller_leaves_at_its_start_ends_with_all_its_processes", left),
        ("a_command_whose_stream_is_cut_has_ended_when_that_is_told", cut),
        ("a_process_whose_name_has_a_line_end_is_killed_with_its_parent", line_end),
    ];
    named("races", &cases)
}

fn late_create() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let spec = SandboxSpec { name: Some(SandboxName::parse("one")?), ..SandboxSpec::default() };
        faults.plan(Method::POST, "/v2/sandboxes", Fault::Held);
        let (first, wanted) = (ground.provider(), spec.clone());
        // It begins before the other, and E2B makes its sandbox after the other's.
        let begun = tokio::spawn(async move { Sandbox::create(&*first, wanted).await });
        faults.arrived().await;
        let second = Sandbox::create(&*E2bProvider::new(ground.options())?, spec).await?;
        faults.release();
        let error = failed(begun.await?)?;
        ensure(error.kind() == ErrorKind::AlreadyExists, format!("{error:?}"))?;
        ensure(ground.native.list().await?.len() == 1, "two sandboxes have the name")?;
        ensure(second.exists("/").await?, "the one that was made is gone")?;
        Ok(second.destroy().await?)
    })
}

/// Returns the request for a shell's line that reads its input.
fn reading(line: String) -> Result<ExecRequest, Failed> {
    Ok(ExecRequest {
        command: Command::Shell(line),
        cwd: SandboxPath::parse("/workspace")?.into(),
        env: BTreeMap::new(),
        user: None,
        stdin: true,
        pty: None,
    })
}

async fn exit(running: &mut Execution) -> Result<ExitStatus, Failed> {
    loop {
        match within(20, running.events.next()).await? {
            Some(Ok(ExecutionEvent::Exit { status, .. })) => return Ok(status),
            Some(Ok(_)) => {}
            other => return Err(format!("no exit: {other:?}").into()),
        }
    }
}

fn old_handle() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let provider = ground.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let name = sandbox.name().to_string();
        let before = provider.open(&name).await?.driver;
        let mut olds = Vec::new();
        for _ in 0..16 {
            let mut old = before.exec(reading("cat > old".to_owned())?).await?;
            olds.push((old.input.take().ok_or("no input")?, old));
        }
        provider.sleep(&name).await?;
        let after = provider.wake(&name).await?.driver;
        let mut news = Vec::new();
        for number in 0..16 {
            news.push(after.exec(reading(format!("cat > new{number}"))?).await?);
        }
        for (mut input, old) in olds {
            ensure(input.write("wrong\n".into()).await.is_err(), "an old input was taken")?;
            drop(input);
            let size = PtySize { rows: 10, cols: 10 };
            ensure(old.control.resize(size).await.is_err(), "an old terminal was resized")?;
        }
        for (number, mut new) in news.into_iter().enumerate() {
            let mut input = new.input.take().ok_or("no input")?;
            input.write("right\n".into()).await?;
            drop(input);
            ensure(exit(&mut new).await? == ExitStatus::Exited(0), "it failed")?;
            let text = Sandbox::open(&*provider, &name).await?.read_text(&format!("new{number}")).await?;
            ensure(text == "right\n", format!("new{number}: {text:?}"))?;
        }
        Ok(Sandbox::open(&*provider, &name).await?.destroy().await?)
    })
}

fn no_tag() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        for method in ["/process.Process/SendInput", "/process.Process/CloseStdin"] {
            let missing = Fault::Said(StatusCode::NOT_FOUND, r#"{"code":"not_found"}"#);
            faults.plan(Method::POST, method, missing);
        }
        let options = ExecOptions { stdin: Stdin::Bytes("typed".into()), ..ExecOptions::default() };
        let ran = within(20, sandbox.exec("cat", options)).await??;
        ensure(ran.stdout_text() == "typed", format!("{ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn left() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        faults.plan(Method::POST, START, Fault::AnswerHeld);
        let caller = sandbox.clone();
        let begun =
            tokio::spawn(async move { caller.exec("sleep 86397 & wait", ExecOptions::default()).await });
        faults.arrived().await;
        let shown = "until cat /proc/[0-9]*/cmdline 2>/dev/null | grep -q '86[3]97'; do sleep 0.05; done";
        within(20, sandbox.exec(shown, ExecOptions::default())).await??;
        begun.abort();
        ensure(begun.await.is_err(), "the command ended")?;
        faults.release();
        ends(&sandbox, "sleep 86397").await?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        faults.plan(Method::POST, START, Fault::Cut(400));
        let line = "while :; do echo on; sleep 0.01; done & sleep 86396";
        let error = failed(sandbox.exec(line, ExecOptions::default()).await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        let shown = "cat /proc/[0-9]*/cmdline 2>/dev/null | grep -q '86[3]96'";
        let found = sandbox.exec(shown, ExecOptions::default()).await?;
        ensure(!found.success(), "it runs on")?;
        Ok(sandbox.destroy().await?)
    })
}

fn line_end() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let line = "cp \"$(command -v sleep)\" $'a\\nb' && ./$'a\\nb' 86395; true";
        let options = ExecOptions { timeout_ms: Some(1000), ..ExecOptions::default() };
        drop(sandbox.exec(line, options).await);
        ends(&sandbox, "b 86395").await?;
        Ok(sandbox.destroy().await?)
    })
}
