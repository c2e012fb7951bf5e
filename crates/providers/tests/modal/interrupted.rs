//! Outputs, inputs and uploads that are interrupted; and what the vendor has removed since it was asked for.

use std::time::{Duration, Instant};

use eyot::{
    Command, ErrorKind, ExecEvent, ExecOptions, ExecRequest, ExecutionEvent, ExitStatus, Outcome, Sandbox,
    SandboxPath, SandboxProvider, SandboxSpec,
};
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};

use crate::faults::{
    NOT_FOUND, NamedCase, RESOURCE_EXHAUSTED, Tried, UNAVAILABLE, ensure, failed, made, within,
};
use crate::ground::{Ground, block_on};
use crate::stand_in::Fault;

/// `UNIMPLEMENTED`.
const UNIMPLEMENTED: i32 = 12;
const READ: &str = "TaskExecStdioRead";
const TYPE: &str = "TaskExecStdinWrite";

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 8] = [
        ("the_last_output_of_a_stream_that_breaks_at_its_end_is_not_lost", last_output),
        ("a_pause_after_a_break_is_not_cut_short_by_the_other_output", pause),
        ("an_input_whose_write_was_given_up_keeps_its_place", cancelled_input),
        ("the_end_of_an_input_is_told_until_it_is_heard", unheard_end),
        ("an_upload_whose_caller_leaves_at_its_start_leaves_nothing", cancelled_upload),
        ("a_build_that_nothing_is_told_of_is_asked_about_a_few_times", silent_build),
        ("an_app_and_an_image_that_were_removed_are_made_anew", removed_ids),
        ("the_words_of_a_worker_are_in_no_error", words),
    ];
    let trial =
        |(name, case): NamedCase| Trial::test(format!("interrupted::{name}"), move || case(&Ground::new(0)));
    cases.into_iter().map(trial).collect()
}

/// Opens the only sandbox behind the vendor's back.
async fn inside(ground: &Ground) -> Result<Sandbox, Failed> {
    let native = &ground.stand_in.native;
    let only = native.list().await?.pop().ok_or("there is no sandbox")?;
    Ok(Sandbox::open(&**native, only.id.as_str()).await?)
}

fn last_output(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        ground.stand_in.faults.plan(READ, Fault::LastLost);
        // For either output: the pauses are longer than an ended command is listened to.
        ground.stand_in.faults.plan_times(READ, Fault::Refused(UNAVAILABLE, None), 6);
        let ran = within(60, sandbox.exec("sleep 0.3; echo tail; exit 3", ExecOptions::default())).await??;
        ensure(ran.stdout_text() == "tail\n" && ran.outcome == Outcome::Exited(3), format!("{ran:?}"))?;
        ensure(!ran.output_open, "its output counts as open")?;
        Ok(sandbox.destroy().await?)
    })
}

fn pause(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        ground.stand_in.faults.plan(READ, Fault::Cut(600));
        let line = "echo up >&2; until [ -e /tmp/go ]; do sleep 0.02; done; head -c 2000 /dev/zero | tr '\\0' x; \
                    for i in $(seq 300); do echo $i >&2; sleep 0.01; done";
        let mut running = sandbox.exec_stream(line, ExecOptions::default()).await?;
        let first = running.next().await;
        ensure(matches!(first, Some(Ok(ExecEvent::Stderr(_)))), format!("{first:?}"))?;
        ground.stand_in.faults.plan_times(READ, Fault::Refused(UNAVAILABLE, None), 2);
        inside(ground).await?.write("/tmp/go", "").await?;
        let (begun, mut come) = (Instant::now(), 0);
        while come < 2000 {
            match within(30, running.next()).await? {
                Some(Ok(ExecEvent::Stdout(bytes))) => come += bytes.len(),
                Some(Ok(ExecEvent::Stderr(_))) => {}
                other => return Err(format!("{come} bytes came, and then {other:?}").into()),
            }
        }
        // 200 ms, 400 ms and 800 ms.
        ensure(begun.elapsed() >= Duration::from_millis(1400), format!("after {:?}", begun.elapsed()))?;
        drop(running);
        Ok(sandbox.destroy().await?)
    })
}

/// Returns a request for a command that is typed into.
fn typed_into(argv: &[&str]) -> Result<ExecRequest, Failed> {
    Ok(ExecRequest {
        command: Command::Argv(argv.iter().map(|argument| (*argument).to_owned()).collect()),
        cwd: SandboxPath::root().into(),
        env: Default::default(),
        user: None,
        stdin: true,
        pty: None,
    })
}

/// Reads the events of a command that ends well, and returns what it printed.
async fn printed(mut execution: eyot::Execution) -> Result<String, Failed> {
    let mut text = Vec::new();
    while let Some(event) = execution.events.next().await {
        match event? {
            ExecutionEvent::Stdout(bytes) => text.extend_from_slice(&bytes),
            ExecutionEvent::Stderr(_) => {}
            ExecutionEvent::Exit { status, .. } => {
                ensure(matches!(status, ExitStatus::Exited(0)), format!("{status:?}"))?;
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
    Err("the events stopped without an end".into())
}

fn cancelled_input(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let driver = ground.provider().open(sandbox.id().as_str()).await?.driver;
        let mut execution = driver.exec(typed_into(&["cat"])?).await?;
        let mut input = execution.input.take().ok_or("it has no input")?;
        ground.stand_in.faults.plan(TYPE, Fault::AnswerHeld);
        tokio::select! {
            written = input.write("one,".into()) => return Err(format!("it was written: {written:?}").into()),
            () = ground.stand_in.faults.arrived() => {}
        }
        ground.stand_in.faults.release();
        input.write("two".into()).await?;
        drop(input);
        let text = within(30, printed(execution)).await??;
        ensure(text == "one,two", text)?;
        Ok(sandbox.destroy().await?)
    })
}

fn unheard_end(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let driver = ground.provider().open(sandbox.id().as_str()).await?.driver;
        let mut execution = driver.exec(typed_into(&["cat"])?).await?;
        let mut input = execution.input.take().ok_or("it has no input")?;
        input.write("typed".into()).await?;
        // More than a call is tried.
        ground.stand_in.faults.plan_times(TYPE, Fault::Refused(UNAVAILABLE, None), 5);
        drop(input);
        let text = within(30, printed(execution)).await??;
        ensure(text == "typed", text)?;
        Ok(sandbox.destroy().await?)
    })
}

fn cancelled_upload(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        ground.stand_in.faults.plan("TaskExecStart", Fault::AnswerHeld);
        let caller = sandbox.clone();
        let begun = tokio::spawn(async move { caller.write("f", "content").await });
        ground.stand_in.faults.arrived().await;
        // It has made its file.
        let inside = inside(ground).await?;
        let begins = "until ls -A /tmp | grep -q '^[.]eyot-'; do sleep 0.02; done";
        within(20, inside.exec(begins, ExecOptions::default())).await??;
        begun.abort();
        ensure(begun.await.is_err(), "it has ended")?;
        ground.stand_in.faults.release();
        let ends = "while ls -A /tmp | grep -q '^[.]eyot-' \
                    || cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '/tmp/[.]eyot-'; \
                    do sleep 0.05; done";
        within(30, inside.exec(ends, ExecOptions::default())).await??;
        ensure(!sandbox.exists("f").await?, "it was written")?;
        Ok(sandbox.destroy().await?)
    })
}

fn silent_build(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan_times("ImageJoinStreaming", Fault::Empty, 50);
        let error = failed(within(30, made(ground)).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        let asked = ground.stand_in.faults.count("ImageJoinStreaming");
        ensure(asked == 4, format!("it was asked {asked} times"))?;
        ensure(ground.stand_in.running().is_empty(), "a sandbox is left")
    })
}

fn removed_ids(ground: &Ground) -> Tried {
    block_on(async {
        made(ground).await?.destroy().await?;
        ground.stand_in.remove_apps_and_images();
        let sandbox = made(ground).await?;
        ensure(ground.provider().list().await?.len() == 1, "it is not listed")?;
        sandbox.destroy().await?;
        // An app that is gone has no sandboxes.
        ground.stand_in.remove_apps_and_images();
        ground.stand_in.faults.plan("SandboxListV2", Fault::Refused(NOT_FOUND, None));
        ensure(ground.provider().list().await?.is_empty(), "something is listed")?;
        let spec = SandboxSpec { image: Some("im-removed".to_owned()), ..SandboxSpec::default() };
        let error = failed(Sandbox::create(&*ground.provider(), spec).await)?;
        ensure(error.kind() == ErrorKind::NotFound, format!("{error:?}"))
    })
}

fn words(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        for code in [3, NOT_FOUND, 7, RESOURCE_EXHAUSTED, 9, UNIMPLEMENTED, 16] {
            // A token that is refused is asked for once more.
            ground.stand_in.faults.plan_times(
                "TaskExecStart",
                Fault::Refused(code, None),
                if code == 16 { 2 } else { 1 },
            );
            let error = failed(sandbox.exec("true", ExecOptions::default()).await)?;
            ensure(!format!("{error:?} {error}").contains("planned"), format!("{code}: {error:?}"))?;
        }
        Ok(sandbox.destroy().await?)
    })
}
