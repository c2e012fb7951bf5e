//! Faults of the service: it throttles, fails, cuts answers and terminals, sends its callers elsewhere, stops or loses a sandbox
//! under a call, and has a clock of its own. The driver tells the truth each time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eyot::{
    Error, ErrorKind, ExecEvent, ExecOptions, Sandbox, SandboxId, SandboxName, SandboxProvider, SandboxSpec,
};
use eyot_providers::daytona::{DaytonaOptions, DaytonaProvider};
use eyot_providers::e2b::Secret;
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use tokio::net::TcpListener;

use crate::ground::{Ground, block_on};
use crate::stand_in::{Fault, KEY};
use crate::tried::{Tried, ensure, failed, within};

type NamedCase = (&'static str, fn(&Ground) -> Tried);

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 27] = [
        ("a_throttled_question_is_asked_again_after_the_wait_that_was_asked_for", throttled),
        ("a_wait_that_is_too_long_is_told_and_not_waited_for", throttled_for_long),
        ("a_question_is_asked_again_after_a_failure_of_the_service", failing),
        ("a_throttled_create_is_sent_again", throttled_create),
        ("a_create_whose_answer_is_lost_is_found_and_sent_once", lost_create),
        ("a_create_whose_answer_is_cut_is_found_and_sent_once", cut_create),
        ("a_create_that_fails_is_not_sent_again_and_its_failure_is_told", failing_create),
        ("a_create_goes_on_over_failures_and_cut_answers_of_the_toolbox", bumpy_create),
        ("a_create_that_can_not_be_finished_leaves_nothing", unfinished_create),
        ("a_create_whose_caller_leaves_leaves_nothing", left_create),
        ("of_two_creates_of_one_name_at_once_one_fails", two_creates),
        ("of_two_creates_of_one_id_at_once_at_most_one_stays", two_creates_of_one_id),
        ("a_create_that_meets_the_name_of_another_program_harms_nothing", foreign_name),
        ("a_sandbox_of_another_program_is_not_found_and_not_removed_by_its_name", foreign_sandbox),
        ("a_sandbox_that_dies_under_a_command_ends_it_as_destroyed", dies),
        ("a_sandbox_that_the_vendor_stops_under_a_command_sleeps_and_wakes", stopped),
        ("a_command_whose_terminal_is_cut_fails_and_the_next_one_runs", cut_terminal),
        ("a_guest_that_was_killed_is_followed_by_another_and_files_stay", killed_guest),
        ("a_slow_reader_gets_the_whole_output", slow_reader),
        ("terminals_are_ended_with_their_handles", ended_terminals),
        ("a_state_folder_without_a_note_has_a_guest_of_its_own", other_folder),
        ("an_adopted_sandbox_is_left_as_it_was", adopted),
        ("an_adopted_sandbox_is_neither_stopped_nor_started", adopted_sleep),
        ("a_clock_that_is_wrong_changes_nothing", skewed),
        ("a_redirect_takes_the_key_nowhere", redirected),
        ("an_answer_that_never_ends_is_an_error", endless),
        ("no_secret_is_in_a_label_an_error_or_what_is_shown_of_the_provider", secrets),
    ];
    let trial =
        |(name, case): NamedCase| Trial::test(format!("faults::{name}"), move || case(&Ground::new()));
    cases.into_iter().map(trial).collect()
}

async fn until(seconds: u64, holds: impl Fn() -> bool) -> Tried {
    within(seconds, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

fn named(name: &str) -> SandboxSpec {
    SandboxSpec { name: Some(SandboxName::parse(name).expect("a name")), ..SandboxSpec::default() }
}

async fn made(ground: &Ground) -> Result<Sandbox, Error> {
    Sandbox::create(&*ground.provider(), named("job")).await
}

async fn run(sandbox: &Sandbox, line: &str) -> Result<String, Error> {
    Ok(sandbox.exec(line, ExecOptions::default()).await?.stdout_text().trim().to_owned())
}

/// Looks that nothing is left, in a while.
async fn empty(ground: &Ground) -> Tried {
    until(60, || ground.stand_in.machines.all().is_empty()).await?;
    ensure(ground.provider().list().await?.is_empty(), "the list is not empty")
}

/// Starts a command, and returns its stream once it has printed a line.
async fn started(sandbox: &Sandbox) -> Result<eyot::ExecStream, Failed> {
    let mut stream = sandbox.exec_stream("echo begun; sleep 86400", ExecOptions::default()).await?;
    match within(30, stream.next()).await? {
        Some(Ok(ExecEvent::Stdout(_))) => Ok(stream),
        other => Err(format!("{other:?}").into()),
    }
}

async fn error_of(mut stream: eyot::ExecStream) -> Result<Error, Failed> {
    within(90, async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Ok(error),
                None => return Err(Failed::from("it ended without an error")),
            }
        }
    })
    .await?
}

fn throttled(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("list", Fault::Http(429, Some(1)));
        let begun = Instant::now();
        ground.provider().list().await?;
        ensure(begun.elapsed() >= Duration::from_secs(1), "it did not wait")?;
        ensure(ground.stand_in.faults.count("list") == 2, "it was not asked twice")
    })
}

fn throttled_for_long(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("list", Fault::Http(429, Some(3600)));
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), format!("{error:?}"))?;
        ensure(error.hint() == Some("try again in 3600 s"), format!("{:?}", error.hint()))?;
        ensure(ground.stand_in.faults.count("list") == 1, "it was asked again")
    })
}

fn failing(ground: &Ground) -> Tried {
    block_on(async {
        for status in [500, 502, 503] {
            ground.stand_in.faults.plan("list", Fault::Http(status, None));
        }
        ground.provider().list().await?;
        for _ in 0..4 {
            ground.stand_in.faults.plan("list", Fault::Http(500, None));
        }
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(ground.stand_in.faults.count("list") == 4 + 4, "it was asked more or less often")
    })
}

fn throttled_create(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("create", Fault::Http(429, Some(1)));
        let begun = Instant::now();
        let sandbox = made(ground).await?;
        ensure(begun.elapsed() >= Duration::from_secs(1), "it did not wait")?;
        ensure(ground.stand_in.machines.all().len() == 1, "there is another one")?;
        Ok(sandbox.destroy().await?)
    })
}

fn lost_create(ground: &Ground) -> Tried {
    found_after(ground, Fault::AnswerLost)
}

fn cut_create(ground: &Ground) -> Tried {
    found_after(ground, Fault::Cut)
}

fn found_after(ground: &Ground, fault: Fault) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("create", fault);
        let sandbox = made(ground).await?;
        ensure(ground.stand_in.faults.count("create") == 1, "it was sent again")?;
        ensure(run(&sandbox, "echo on").await? == "on", "it does not run")?;
        ensure(ground.stand_in.machines.all().len() == 1, "there is another one")?;
        sandbox.destroy().await?;
        empty(ground).await
    })
}

fn failing_create(ground: &Ground) -> Tried {
    block_on(async {
        for status in [500, 502, 504] {
            ground.stand_in.faults.plan("create", Fault::Http(status, None));
            let error = failed(made(ground).await)?;
            ensure(error.kind() == ErrorKind::Unavailable && !error.had_no_effect(), format!("{error:?}"))?;
        }
        ensure(ground.stand_in.faults.count("create") == 3, "it was sent again")?;
        ground.stand_in.faults.plan("create", Fault::Http(400, None));
        let error = failed(made(ground).await)?;
        ensure(error.kind() == ErrorKind::Invalid, format!("{error:?}"))?;
        empty(ground).await
    })
}

fn bumpy_create(ground: &Ground) -> Tried {
    block_on(async {
        let faults = &ground.stand_in.faults;
        for fault in [Fault::Http(502, None), Fault::AnswerLost, Fault::Cut] {
            faults.plan("execute", fault);
        }
        faults.plan("bulk-upload", Fault::Http(503, None));
        // What it made does not start in time; a terminal is made twice under one name; another change is under way.
        faults.plan("create", Fault::DoneThen(400));
        faults.plan("pty", Fault::DoneThen(502));
        faults.plan("delete", Fault::Http(400, None));
        let sandbox = made(ground).await?;
        ensure(run(&sandbox, "echo on").await? == "on", "it does not run")?;
        sandbox.destroy().await?;
        empty(ground).await
    })
}

fn unfinished_create(ground: &Ground) -> Tried {
    block_on(async {
        for call in ["execute", "bulk-upload", "pty"] {
            for _ in 0..4 {
                ground.stand_in.faults.plan(call, Fault::Http(502, None));
            }
            let error = failed(made(ground).await)?;
            ensure(error.kind() == ErrorKind::Unavailable, format!("{call}: {error:?}"))?;
            ensure(ground.stand_in.machines.all().is_empty(), format!("{call}: a sandbox is left"))?;
        }
        empty(ground).await
    })
}

fn left_create(ground: &Ground) -> Tried {
    block_on(async {
        for (before, call) in ["create", "execute", "bulk-upload", "connect"].into_iter().enumerate() {
            ground.stand_in.faults.plan(call, Fault::Held);
            let provider = ground.provider();
            let create =
                tokio::spawn(async move { Sandbox::create(&*provider, named("left")).await.map(drop) });
            within(60, ground.stand_in.faults.arrived()).await?;
            create.abort();
            ensure(create.await.is_err(), "it was not left")?;
            ground.stand_in.faults.release();
            until(60, || ground.stand_in.machines.count_made() > before).await?;
            empty(ground).await?;
        }
        Ok(())
    })
}

fn two_creates(ground: &Ground) -> Tried {
    block_on(async {
        let other = other_provider(ground)?;
        let (provider, spec) = (ground.provider(), named("one"));
        let (one, two) =
            tokio::join!(Sandbox::create(&*provider, spec.clone()), Sandbox::create(&*other, spec.clone()));
        let (sandbox, refused) = match (one, two) {
            (Ok(sandbox), Err(error)) | (Err(error), Ok(sandbox)) => (sandbox, error),
            (one, two) => return Err(format!("{:?} {:?}", one.err(), two.err()).into()),
        };
        ensure(refused.kind() == ErrorKind::AlreadyExists, format!("{refused:?}"))?;
        ensure(run(&sandbox, "echo on").await? == "on", "the other one was harmed")?;
        Ok(sandbox.destroy().await?)
    })
}

fn two_creates_of_one_id(ground: &Ground) -> Tried {
    block_on(async {
        let other = other_provider(ground)?;
        let id = SandboxId::generate();
        let spec = |name| SandboxSpec { id: Some(id.clone()), ..named(name) };
        let provider = ground.provider();
        let (one, two) =
            tokio::join!(Sandbox::create(&*provider, spec("one")), Sandbox::create(&*other, spec("two")));
        ensure(one.is_err() || two.is_err(), "both were made")?;
        let refused = [one.as_ref().err(), two.as_ref().err()];
        let kinds = refused.into_iter().flatten().all(|error| error.kind() == ErrorKind::AlreadyExists);
        ensure(kinds, "one failed for another reason")?;
        let left = usize::from(one.is_ok()) + usize::from(two.is_ok());
        until(30, || ground.stand_in.machines.all().len() == left).await
    })
}

/// Makes a provider with a state folder of its own, as on another machine.
fn other_provider(ground: &Ground) -> Result<Arc<DaytonaProvider>, Error> {
    let notes = tempfile::tempdir().expect("a folder").keep();
    DaytonaProvider::new(DaytonaOptions { notes, ..ground.options() })
}

/// Makes a sandbox as another program does, and returns the vendor's id.
async fn foreign(ground: &Ground, name: &str) -> Result<String, Failed> {
    let asked = json!({ "name": name, "labels": { "of": "somebody" } });
    let machine = ground.stand_in.machines.create(&asked).map_err(|_| "it can't be made")?;
    until(60, || machine.is("started")).await?;
    Ok(machine.id.clone())
}

fn foreign_name(ground: &Ground) -> Tried {
    block_on(async {
        let id = foreign(ground, "job").await?;
        let error = failed(made(ground).await)?;
        ensure(error.kind() == ErrorKind::AlreadyExists, format!("{error:?}"))?;
        let machine = ground.stand_in.machines.find(&id);
        ensure(machine.is_some_and(|machine| machine.is("started")), "the other program's was harmed")
    })
}

fn foreign_sandbox(ground: &Ground) -> Tried {
    block_on(async {
        let id = foreign(ground, "theirs").await?;
        let provider = ground.provider();
        ensure(provider.list().await?.is_empty(), "it is listed")?;
        for key in ["theirs", id.as_str()] {
            let errors = [
                failed(provider.open(key).await)?,
                failed(provider.remove(key).await)?,
                failed(provider.sleep(key).await)?,
            ];
            let missing = errors.iter().all(|error| error.kind() == ErrorKind::NotFound);
            ensure(missing, format!("{errors:?}"))?;
        }
        let machine = ground.stand_in.machines.find(&id);
        ensure(machine.is_some_and(|machine| machine.is("started")), "it was harmed")
    })
}

fn dies(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let stream = started(&sandbox).await?;
        ground.stand_in.machines.lose("job").await;
        let error = error_of(stream).await?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        let error = failed(run(&sandbox, "true").await)?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        ensure(ground.stand_in.faults.count("create") == 1, "another one was made")
    })
}

fn stopped(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        run(&sandbox, "echo kept >file").await?;
        let stream = started(&sandbox).await?;
        let machine = ground.stand_in.machines.find("job").ok_or("there is no sandbox")?;
        ground.stand_in.machines.change(&machine, "stop").map_err(|_| "it can't be stopped")?;
        let error = error_of(stream).await?;
        ensure(error.is_sleeping(), format!("{error:?}"))?;
        let woken = Sandbox::wake(&*ground.provider(), "job").await?;
        ensure(run(&woken, "cat file").await? == "kept", "its files are lost")?;
        let error = failed(run(&sandbox, "true").await)?;
        ensure(error.is_sleeping(), format!("a handle of the life before: {error:?}"))?;
        Ok(woken.destroy().await?)
    })
}

fn cut_terminal(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let stream = started(&sandbox).await?;
        ground.stand_in.machines.find("job").ok_or("there is no sandbox")?.cut_terminals();
        let error = error_of(stream).await?;
        ensure(error.kind() == ErrorKind::Unavailable && !error.had_no_effect(), format!("{error:?}"))?;
        ensure(run(&sandbox, "echo on").await? == "on", "the next one does not run")?;
        Ok(sandbox.destroy().await?)
    })
}

fn killed_guest(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        run(&sandbox, "echo kept >file").await?;
        let stream = started(&sandbox).await?;
        let machine = ground.stand_in.machines.find("job").ok_or("there is no sandbox")?;
        let driver = machine.driver().map_err(|_| "it does not run")?;
        let kill = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline | grep -q 'eyot-guest beside' && kill -9 ${p#/proc/}; done; true";
        crate::stand_in::run_inside(&driver, kill).await?;
        let error = error_of(stream).await?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        let again = Sandbox::open(&*ground.provider(), "job").await?;
        ensure(run(&again, "cat file").await? == "kept", "its files are lost")?;
        Ok(again.destroy().await?)
    })
}

fn slow_reader(ground: &Ground) -> Tried {
    const BYTES: usize = 24 << 20;
    block_on(async {
        let sandbox = made(ground).await?;
        let line = format!("head -c {BYTES} /dev/zero");
        let mut stream = sandbox.exec_stream(line.as_str(), ExecOptions::default()).await?;
        let (mut read, mut pieces) = (0, 0);
        while let Some(event) = within(60, stream.next()).await? {
            if let ExecEvent::Stdout(bytes) = event? {
                read += bytes.len();
                pieces += 1;
                if pieces % 64 == 0 {
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
            }
        }
        ensure(read == BYTES, format!("{read} of {BYTES} bytes"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn ended_terminals(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let machine = ground.stand_in.machines.find("job").ok_or("there is no sandbox")?;
        drop(sandbox);
        until(60, || machine.count_terminals() == 0).await?;
        for _ in 0..3 {
            let again = Sandbox::open(&*ground.provider(), "job").await?;
            ensure(run(&again, "echo on").await? == "on", "it does not run")?;
        }
        until(60, || machine.count_terminals() == 0).await
    })
}

fn other_folder(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        run(&sandbox, "echo kept >file").await?;
        let other = other_provider(ground)?;
        let theirs = Sandbox::open(&*other, "job").await?;
        ensure(run(&theirs, "cat file").await? == "kept", "it is another one")?;
        ensure(run(&sandbox, "echo on").await? == "on", "the first guest was harmed")?;
        theirs.destroy().await?;
        let error = failed(run(&sandbox, "true").await)?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        empty(ground).await
    })
}

fn adopted(ground: &Ground) -> Tried {
    block_on(async {
        let id = foreign(ground, "theirs").await?;
        let provider = ground.provider();
        let error = failed(provider.adopt("theirs").await)?;
        ensure(error.kind() == ErrorKind::NotFound, format!("by its name: {error:?}"))?;
        let (name, _) = provider.adopt(&id).await?;
        let error = failed(provider.adopt(&id).await)?;
        ensure(error.kind() == ErrorKind::Conflict, format!("twice: {error:?}"))?;
        let sandbox = Sandbox::open(&*provider, name.as_str()).await?;
        ensure(run(&sandbox, "pwd").await? == "/tmp", "it begins elsewhere")?;
        let machine = ground.stand_in.machines.find(&id).ok_or("there is no sandbox")?;
        let driver = machine.driver().map_err(|_| "it does not run")?;
        provider.remove(name.as_str()).await?;
        ensure(machine.is("started"), "it was stopped or removed")?;
        let left = "ls -d /tmp/.eyot-* /proc/[0-9]*/exe 2>/dev/null | grep -c '^/tmp' || true";
        let left = crate::stand_in::run_inside(&driver, left).await?;
        ensure(left.trim() == "0", format!("{left} of the guest's directories are left"))?;
        ensure(provider.list().await?.is_empty(), "it is still listed")?;
        let (name, _) = provider.adopt(&id).await?;
        Sandbox::open(&*provider, name.as_str()).await?.destroy().await?;
        ensure(machine.is("started"), "a handle has removed it")
    })
}

fn adopted_sleep(ground: &Ground) -> Tried {
    block_on(async {
        let id = foreign(ground, "theirs").await?;
        let provider = ground.provider();
        let (name, _) = provider.adopt(&id).await?;
        let error = failed(provider.sleep(name.as_str()).await)?;
        ensure(error.kind() == ErrorKind::Unsupported, format!("{error:?}"))?;
        let machine = ground.stand_in.machines.find(&id).ok_or("there is no sandbox")?;
        ground.stand_in.machines.change(&machine, "stop").map_err(|_| "it can't be stopped")?;
        until(60, || machine.is("stopped")).await?;
        let error = failed(provider.wake(name.as_str()).await)?;
        ensure(error.kind() == ErrorKind::Unsupported, format!("{error:?}"))?;
        ensure(machine.is("stopped"), "it was started")?;
        provider.remove(name.as_str()).await?;
        ensure(machine.is("stopped"), "it was removed")
    })
}

fn skewed(_: &Ground) -> Tried {
    for skew_s in [-400_000_000, 400_000_000] {
        let ground = Ground::skewed(skew_s);
        block_on(async {
            let sandbox = made(&ground).await?;
            let options = ExecOptions { timeout_ms: Some(300), ..ExecOptions::default() };
            let late = sandbox.exec("sleep 100", options).await?;
            ensure(!late.success(), "its deadline did not come")?;
            let provider = ground.provider();
            provider.sleep("job").await?;
            let woken = Sandbox::wake(&*provider, "job").await?;
            ensure(run(&woken, "echo on").await? == "on", "it does not run")?;
            Ok::<(), Failed>(woken.destroy().await?)
        })?;
    }
    Ok(())
}

fn redirected(ground: &Ground) -> Tried {
    block_on(async {
        let elsewhere = TcpListener::bind("127.0.0.1:0").await?;
        let to = format!("http://{}/", elsewhere.local_addr()?);
        for call in ["list", "create"] {
            ground.stand_in.faults.plan(call, Fault::Redirected(to.clone()));
        }
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        failed(made(ground).await)?;
        let came = tokio::time::timeout(Duration::from_millis(50), elsewhere.accept()).await;
        ensure(came.is_err(), "it went there")
    })
}

fn endless(ground: &Ground) -> Tried {
    block_on(async {
        for _ in 0..4 {
            ground.stand_in.faults.plan("list", Fault::Endless);
        }
        let error = failed(within(60, ground.provider().list()).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))
    })
}

fn secrets(ground: &Ground) -> Tried {
    block_on(async {
        let mut spec = named("job");
        spec.env.insert("TOKEN".to_owned(), "secret-value".to_owned());
        let provider = ground.provider();
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let again = provider.open("job").await?;
        ensure(again.info.spec.env.get("TOKEN").is_some_and(|value| value == "secret-value"), "it is lost")?;
        ensure(run(&sandbox, "echo $TOKEN").await? == "secret-value", "it is not set")?;
        let machine = ground.stand_in.machines.find("job").ok_or("there is no sandbox")?;
        let labels = machine.described()["labels"].to_string();
        ensure(!labels.contains("secret-value"), "it is in a label")?;
        sandbox.destroy().await?;
        let wrong = "dtn_wrong_0123456789";
        let options = DaytonaOptions { api_key: Some(Secret::new(wrong)), ..ground.options() };
        let refusing = DaytonaProvider::new(options)?;
        let error = failed(refusing.list().await)?;
        ensure(error.kind() == ErrorKind::Permission, format!("{error:?}"))?;
        let shown = format!("{error:?} {error} {:?} {refusing:?} {provider:?}", error.hint());
        ensure(!shown.contains(wrong) && !shown.contains(KEY), "a key is shown")
    })
}
