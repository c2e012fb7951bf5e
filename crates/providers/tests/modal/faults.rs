//! Faults of the service: it throttles, fails, cuts streams, loses a sandbox under a call, and has a clock of its own.
//! The vendor does all of it now and then; the driver tells the truth each time.

use std::time::{Duration, Instant};

use eyot::{
    Command, Error, ErrorKind, ExecEvent, ExecOptions, Sandbox, SandboxId, SandboxName, SandboxProvider,
    SandboxSpec, Stdin,
};
use eyot_providers::e2b::Secret;
use eyot_providers::modal::{ModalOptions, ModalProvider};
use libtest_mimic::{Failed, Trial};

use crate::ground::{Ground, block_on};
use crate::stand_in::{Fault, TOKEN_ID, TOKEN_SECRET};
pub use crate::tried::{Tried, ensure, failed, within};

pub type NamedCase = (&'static str, fn(&Ground) -> Tried);

/// Statuses of gRPC.
pub const NOT_FOUND: i32 = 5;
pub const RESOURCE_EXHAUSTED: i32 = 8;
pub const UNAVAILABLE: i32 = 14;
const INTERNAL: i32 = 13;

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 29] = [
        ("a_throttled_question_is_asked_again_after_the_wait_that_was_asked_for", throttled),
        ("a_proxy_that_throttles_is_heard_too", throttled_by_proxy),
        ("a_wait_that_is_too_long_is_told_and_not_waited_for", throttled_for_long),
        ("a_question_is_asked_again_after_a_failure_of_the_service", failing),
        ("a_create_whose_answer_is_lost_makes_one_sandbox", lost_answer),
        ("a_create_whose_answers_are_all_lost_is_found_by_its_tag", lost_answers),
        ("a_create_that_nobody_answers_and_that_made_nothing_says_so", refused_creates),
        ("a_create_that_is_refused_ends_no_sandbox_of_its_id", refused_create),
        ("a_create_that_can_not_be_finished_leaves_nothing", unfinished_create),
        ("of_two_creates_of_one_name_at_once_one_fails", two_creates),
        ("a_program_with_an_equals_sign_in_its_name_is_run", equals_sign),
        ("a_path_of_the_caller_keeps_no_sandbox_from_being_made", own_path),
        ("a_start_whose_answer_is_lost_runs_the_command_once", lost_start),
        ("a_start_that_is_never_answered_is_ended", unanswered_start),
        ("an_output_that_is_cut_is_taken_up_where_it_was", cut_stream),
        ("an_output_that_ends_without_a_status_is_no_end", no_status),
        ("a_read_that_is_cut_again_and_again_is_an_error_and_no_short_file", cut_read),
        ("an_input_whose_answer_is_lost_is_read_once", lost_input),
        ("a_sandbox_that_dies_under_a_command_ends_it_as_destroyed", dies),
        ("a_call_that_waits_for_an_answer_hears_that_its_sandbox_was_destroyed_here", silent),
        ("arguments_that_are_more_than_modal_takes_go_by_a_file_that_is_removed", long_arguments),
        ("a_clock_that_is_wrong_changes_nothing", skewed),
        ("tokens_that_run_out_are_asked_for_again_under_a_command", expired),
        ("a_redirect_takes_the_token_nowhere", redirected),
        ("an_answer_that_never_ends_is_an_error", endless_answer),
        ("a_command_whose_caller_leaves_at_its_start_ends", left),
        ("many_commands_at_once_can_all_be_ended", many),
        ("an_image_that_can_not_be_built_is_told_and_makes_nothing", no_image),
        ("no_secret_is_in_an_error_or_in_what_is_shown_of_the_provider", secrets),
    ];
    let trial =
        |(name, case): NamedCase| Trial::test(format!("faults::{name}"), move || case(&Ground::new(0)));
    cases.into_iter().map(trial).collect()
}

/// Waits until no process of a sandbox has such a command.
async fn ends(sandbox: &Sandbox, command: &str) -> Tried {
    let (begin, last) = command.split_at(command.len() - 1);
    let line = format!(
        "while cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '{begin}[{last}]'; do sleep 0.05; done"
    );
    let ran = within(30, sandbox.exec(line, ExecOptions::default())).await??;
    ensure(ran.success(), format!("{ran:?}"))
}

pub async fn made(ground: &Ground) -> Result<Sandbox, Error> {
    Sandbox::create(&*ground.provider(), SandboxSpec::default()).await
}

fn throttled(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("SandboxListV2", Fault::Refused(RESOURCE_EXHAUSTED, Some(1.0)));
        let begun = Instant::now();
        ground.provider().list().await?;
        ensure(begun.elapsed() >= Duration::from_secs(1), "it did not wait")?;
        ensure(ground.stand_in.faults.count("SandboxListV2") == 2, "it was not asked twice")
    })
}

fn throttled_by_proxy(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("SandboxListV2", Fault::Http(429, Some(1)));
        let begun = Instant::now();
        ground.provider().list().await?;
        ensure(begun.elapsed() >= Duration::from_secs(1), "it did not wait")
    })
}

fn throttled_for_long(ground: &Ground) -> Tried {
    block_on(async {
        for fault in [Fault::Refused(RESOURCE_EXHAUSTED, Some(3600.0)), Fault::Http(429, Some(3600))] {
            ground.stand_in.faults.plan("SandboxListV2", fault);
            let error = failed(ground.provider().list().await)?;
            ensure(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), format!("{error:?}"))?;
            ensure(error.hint() == Some("try again in 3600 s"), format!("{:?}", error.hint()))?;
        }
        ensure(ground.stand_in.faults.count("SandboxListV2") == 2, "it was asked again")
    })
}

fn failing(ground: &Ground) -> Tried {
    block_on(async {
        for fault in [Fault::Http(502, None), Fault::Refused(UNAVAILABLE, None), Fault::Http(500, None)] {
            ground.stand_in.faults.plan("SandboxListV2", fault);
        }
        ground.provider().list().await?;
        for _ in 0..4 {
            ground.stand_in.faults.plan("SandboxListV2", Fault::Refused(INTERNAL, None));
        }
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(ground.stand_in.faults.count("SandboxListV2") == 4 + 4, "it was asked more or less often")
    })
}

fn lost_answer(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("SandboxCreateV2", Fault::AnswerLost);
        let sandbox = made(ground).await?;
        ensure(ground.stand_in.faults.count("SandboxCreateV2") == 2, "it was not asked twice")?;
        ensure(ground.stand_in.running().len() == 1, "two sandboxes were made")?;
        Ok(sandbox.destroy().await?)
    })
}

fn lost_answers(ground: &Ground) -> Tried {
    block_on(async {
        for fault in [Fault::AnswerLost, Fault::Cut(3), Fault::NoStatus(7), Fault::AnswerLost] {
            ground.stand_in.faults.plan("SandboxCreateV2", fault);
        }
        let sandbox = made(ground).await?;
        ensure(ground.stand_in.running().len() == 1, "two sandboxes were made")?;
        sandbox.destroy().await?;
        ensure(ground.stand_in.running().is_empty(), "it is left")
    })
}

fn refused_creates(ground: &Ground) -> Tried {
    block_on(async {
        for _ in 0..4 {
            ground.stand_in.faults.plan("SandboxCreateV2", Fault::Refused(UNAVAILABLE, None));
        }
        let error = failed(made(ground).await)?;
        // Modal may make it still.
        ensure(error.kind() == ErrorKind::Unavailable && !error.had_no_effect(), format!("{error:?}"))?;
        ensure(ground.stand_in.running().is_empty(), "a sandbox is left")
    })
}

fn refused_create(ground: &Ground) -> Tried {
    block_on(async {
        let spec = SandboxSpec { id: Some(SandboxId::generate()), ..SandboxSpec::default() };
        let theirs = Sandbox::create(&*ground.provider(), spec.clone()).await?;
        let error = failed(Sandbox::create(&*ground.provider(), spec).await)?;
        ensure(error.kind() == ErrorKind::AlreadyExists, format!("{error:?}"))?;
        ensure(theirs.exists("/").await?, "the sandbox of another create was ended")?;
        ensure(ground.stand_in.running().len() == 1, "the create has left one")?;
        Ok(theirs.destroy().await?)
    })
}

fn unfinished_create(ground: &Ground) -> Tried {
    block_on(async {
        ground.stand_in.faults.plan("TaskExecStart", Fault::Refused(NOT_FOUND, None));
        let error = failed(made(ground).await)?;
        ensure(error.kind() == ErrorKind::Setup, format!("{error:?}"))?;
        ensure(ground.stand_in.running().is_empty(), "a sandbox is left")?;
        // A caller that leaves in the middle leaves nothing either.
        ground.stand_in.faults.plan("SandboxCreateV2", Fault::AnswerHeld);
        let provider = ground.provider();
        let begun = tokio::spawn(async move { Sandbox::create(&*provider, SandboxSpec::default()).await });
        ground.stand_in.faults.arrived().await;
        begun.abort();
        ensure(begun.await.is_err(), "it has ended")?;
        ground.stand_in.faults.release();
        within(20, async {
            while !ground.stand_in.running().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await
    })
}

fn two_creates(ground: &Ground) -> Tried {
    block_on(async {
        let spec = SandboxSpec { name: Some(SandboxName::parse("one")?), ..SandboxSpec::default() };
        ground.stand_in.faults.plan("SandboxCreateV2", Fault::Held);
        let (first, wanted) = (ground.provider(), spec.clone());
        let begun = tokio::spawn(async move { Sandbox::create(&*first, wanted).await });
        ground.stand_in.faults.arrived().await;
        let second = Sandbox::create(&*ModalProvider::new(ground.options())?, spec).await?;
        ground.stand_in.faults.release();
        let error = failed(begun.await?)?;
        ensure(error.kind() == ErrorKind::AlreadyExists, format!("{error:?}"))?;
        ensure(ground.stand_in.running().len() == 1, "two sandboxes have the name")?;
        ensure(second.exists("/").await?, "the one that was made is gone")?;
        Ok(second.destroy().await?)
    })
}

fn equals_sign(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let line = "mkdir d && printf '#!/bin/sh\\necho \"ran $1\"\\n' > d/a=b && chmod +x d/a=b";
        sandbox.exec(line, ExecOptions::default()).await?;
        let ran = sandbox.exec(Command::argv(["./d/a=b", "$x y"]), ExecOptions::default()).await?;
        ensure(ran.stdout_text() == "ran $x y\n", format!("{ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn own_path(ground: &Ground) -> Tried {
    block_on(async {
        let mut spec = SandboxSpec::default();
        spec.env.insert("PATH".into(), "/opt/none".into());
        Ok(Sandbox::create(&*ground.provider(), spec).await?.destroy().await?)
    })
}

fn lost_start(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        for fault in [Fault::AnswerLost, Fault::Refused(RESOURCE_EXHAUSTED, Some(0.1))] {
            ground.stand_in.faults.plan("TaskExecStart", fault);
        }
        let ran = sandbox.exec("echo x >> ran; cat ran", ExecOptions::default()).await?;
        ensure(ran.stdout_text() == "x\n", format!("{ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn unanswered_start(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        for _ in 0..4 {
            ground.stand_in.faults.plan("TaskExecStart", Fault::AnswerLost);
        }
        let line = "echo x >> ran; sleep 86394; echo y >> ran";
        let error = failed(sandbox.exec(line, ExecOptions::default()).await)?;
        ensure(error.kind() == ErrorKind::Unavailable && !error.had_no_effect(), format!("{error:?}"))?;
        ends(&sandbox, "sleep 86394").await?;
        let ran = if sandbox.exists("ran").await? { sandbox.read_text("ran").await? } else { String::new() };
        ensure(["", "x\n"].contains(&ran.as_str()), format!("it was run twice: {ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut_stream(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        for after in [60, 90, 120] {
            ground.stand_in.faults.plan("TaskExecStdioRead", Fault::Cut(after));
        }
        let line = "for i in $(seq 300); do echo $i; [ $((i % 50)) = 0 ] && sleep 0.1; done; exit 7";
        let ran = sandbox.exec(line, ExecOptions::default()).await?;
        let whole: String = (1..=300).map(|number| format!("{number}\n")).collect();
        ensure(ran.stdout_text() == whole, format!("{ran:?}"))?;
        ensure(ran.outcome == eyot::Outcome::Exited(7), format!("{ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn no_status(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        sandbox.write("f", vec![7_u8; 1 << 20]).await?;
        ground.stand_in.faults.plan("TaskExecStdioRead", Fault::NoStatus(100_000));
        ensure(sandbox.read("f").await?.len() == 1 << 20, "the file is not whole")?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut_read(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        sandbox.write("f", vec![7_u8; 1 << 20]).await?;
        ground.stand_in.faults.plan("TaskExecStdioRead", Fault::Cut(100_000));
        for _ in 0..8 {
            ground.stand_in.faults.plan("TaskExecStdioRead", Fault::Refused(UNAVAILABLE, None));
        }
        let error = failed(sandbox.read("f").await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(sandbox.read("f").await?.len() == 1 << 20, "the file is not whole")?;
        Ok(sandbox.destroy().await?)
    })
}

fn lost_input(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        for _ in 0..2 {
            ground.stand_in.faults.plan("TaskExecStdinWrite", Fault::AnswerLost);
        }
        let options = ExecOptions { stdin: Stdin::Bytes("typed".into()), ..ExecOptions::default() };
        let ran = within(20, sandbox.exec("cat", options)).await??;
        ensure(ran.stdout_text() == "typed", format!("{ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn dies(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let mut running = sandbox.exec_stream("echo up; sleep 86400", ExecOptions::default()).await?;
        let first = running.next().await;
        ensure(matches!(first, Some(Ok(ExecEvent::Stdout(_)))), format!("{first:?}"))?;
        ground.stand_in.lose(&ground.stand_in.running()[0]).await;
        let ended = within(30, async {
            loop {
                match running.next().await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break Ok(error),
                    None => break Err(Failed::from("the events stopped without an end")),
                }
            }
        })
        .await??;
        ensure(ended.kind() == ErrorKind::Destroyed, format!("{ended:?}"))?;
        let next = failed(sandbox.exec("true", ExecOptions::default()).await)?;
        ensure(next.kind() == ErrorKind::Destroyed, format!("{next:?}"))?;
        let missing = failed(Sandbox::open(&*ground.provider(), sandbox.name().as_str()).await)?;
        ensure(missing.kind() == ErrorKind::NotFound, format!("{missing:?}"))
    })
}

fn silent(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        ground.stand_in.faults.plan("TaskExecStart", Fault::Silent);
        let caller = sandbox.clone();
        let begun = tokio::spawn(async move { caller.exec("true", ExecOptions::default()).await });
        within(20, async {
            while ground.stand_in.faults.count("TaskExecStart") < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await?;
        sandbox.destroy().await?;
        let error = failed(within(10, begun).await??)?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))
    })
}

fn long_arguments(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let long = "x y\n".repeat(25_000);
        let ran = sandbox.exec(Command::argv(["printf", "%s.%s", "", &long]), ExecOptions::default()).await?;
        ensure(ran.stdout_text() == format!(".{long}"), "the arguments are others")?;
        let missing = failed(sandbox.exec(Command::argv(["./none", &long]), ExecOptions::default()).await)?;
        ensure(missing.kind() == ErrorKind::NotFound, format!("{missing:?}"))?;
        let left = sandbox.exec("ls -A /tmp", ExecOptions::default()).await?;
        ensure(!left.stdout_text().contains(".eyot-"), left.stdout_text())?;
        Ok(sandbox.destroy().await?)
    })
}

fn skewed(_: &Ground) -> Tried {
    for skew_s in [-86_400, 86_400] {
        let ground = Ground::new(skew_s);
        block_on(async {
            let provider = ground.provider();
            let mut all = Vec::new();
            // More than one page of the list.
            for _ in 0..5 {
                all.push(made(&ground).await?);
            }
            let listed: Vec<_> = provider.list().await?.into_iter().map(|info| info.id).collect();
            let ids: Vec<_> = all.iter().map(|sandbox| sandbox.id().clone()).collect();
            ensure(listed == ids, format!("{listed:?}"))?;
            let opened = Sandbox::open(&*provider, all[0].name().as_str()).await?;
            ensure(opened.info().created_ms == all[0].info().created_ms, "it was made at another time")?;
            let ran = opened.exec("echo on", ExecOptions::default()).await?;
            ensure(ran.success(), format!("{ran:?}"))?;
            for sandbox in all {
                sandbox.destroy().await?;
            }
            Ok::<_, Failed>(())
        })?;
    }
    Ok(())
}

fn expired(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let mut running = sandbox.exec_stream("echo up; cat go; echo down", ExecOptions::default()).await?;
        ground.stand_in.expire_tokens();
        let ran = sandbox.exec("echo on", ExecOptions::default()).await?;
        ensure(ran.stdout_text() == "on\n", format!("{ran:?}"))?;
        ground.stand_in.expire_tokens();
        ensure(ground.provider().list().await?.len() == 1, "it is not listed")?;
        while let Some(event) = running.next().await {
            event?;
        }
        Ok(sandbox.destroy().await?)
    })
}

fn redirected(ground: &Ground) -> Tried {
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0")?;
    elsewhere.set_nonblocking(true)?;
    let port = elsewhere.local_addr()?.port();
    block_on(async {
        for _ in 0..4 {
            ground.stand_in.faults.plan("SandboxListV2", Fault::Redirected(port));
        }
        let listed = within(15, ground.provider().list()).await?;
        ensure(elsewhere.accept().is_err(), "the other server was asked")?;
        failed(listed).map(drop)
    })
}

fn endless_answer(ground: &Ground) -> Tried {
    block_on(async {
        for _ in 0..4 {
            ground.stand_in.faults.plan("SandboxListV2", Fault::Endless);
        }
        let error = failed(within(20, ground.provider().list()).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))
    })
}

fn left(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        ground.stand_in.faults.plan("TaskExecStart", Fault::AnswerHeld);
        let caller = sandbox.clone();
        let begun =
            tokio::spawn(async move { caller.exec("sleep 86397 & wait", ExecOptions::default()).await });
        ground.stand_in.faults.arrived().await;
        let shown = "until cat /proc/[0-9]*/cmdline 2>/dev/null | grep -q '86[3]97'; do sleep 0.05; done";
        within(20, sandbox.exec(shown, ExecOptions::default())).await??;
        begun.abort();
        ensure(begun.await.is_err(), "the command ended")?;
        ground.stand_in.faults.release();
        ends(&sandbox, "sleep 86397").await?;
        Ok(sandbox.destroy().await?)
    })
}

fn many(ground: &Ground) -> Tried {
    block_on(async {
        let sandbox = made(ground).await?;
        let mut running = Vec::new();
        // More streams than one connection takes.
        for _ in 0..60 {
            running.push(sandbox.exec_stream("echo up; sleep 86393", ExecOptions::default()).await?);
        }
        let alive = within(30, sandbox.exec("echo alive", ExecOptions::default())).await??;
        ensure(alive.stdout_text() == "alive\n", format!("{alive:?}"))?;
        drop(running);
        ends(&sandbox, "sleep 86393").await?;
        Ok(sandbox.destroy().await?)
    })
}

fn no_image(ground: &Ground) -> Tried {
    block_on(async {
        let spec = |image: &str| SandboxSpec { image: Some(image.to_owned()), ..SandboxSpec::default() };
        let error = failed(Sandbox::create(&*ground.provider(), spec("no-such-image")).await)?;
        ensure(error.kind() == ErrorKind::Setup, format!("{error:?}"))?;
        ensure(error.to_string().contains("the image is not there"), format!("{error:?}"))?;
        let error = failed(Sandbox::create(&*ground.provider(), spec("debian:12\nRUN id")).await)?;
        ensure(error.kind() == ErrorKind::Invalid, format!("{error:?}"))?;
        ensure(ground.stand_in.faults.count("SandboxCreateV2") == 0, "a sandbox was made")
    })
}

fn secrets(ground: &Ground) -> Tried {
    block_on(async {
        let provider = ground.provider();
        let mut spec = SandboxSpec::default();
        spec.env.insert("TOKEN".to_owned(), "a-secret-of-the-spec".to_owned());
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let mut shown = vec![format!("{provider:?} {:?}", ground.options())];
        for code in [16, 13, 3] {
            for _ in 0..4 {
                ground.stand_in.faults.plan("TaskExecStart", Fault::Refused(code, None));
                ground.stand_in.faults.plan("SandboxListV2", Fault::Refused(code, None));
            }
            shown.push(format!("{:?}", failed(sandbox.exec("true", ExecOptions::default()).await)?));
            shown.push(format!("{:?}", failed(provider.list().await)?));
            // The rest of what was planned.
            while provider.list().await.is_err()
                || sandbox.exec("true", ExecOptions::default()).await.is_err()
            {}
        }
        let wrong = Some((Secret::new(TOKEN_ID), Secret::new("as-wrong-secret")));
        let stranger = ModalProvider::new(ModalOptions { token: wrong, ..ground.options() })?;
        let error = failed(stranger.list().await)?;
        ensure(error.kind() == ErrorKind::Permission, format!("{error:?}"))?;
        shown.push(format!("{error:?}"));
        shown.push(format!("{:?}", provider.list().await?));
        for text in shown {
            let secrets = [TOKEN_ID, TOKEN_SECRET, "as-wrong-secret", "a-secret-of-the-spec", "malformed"];
            ensure(!secrets.iter().any(|secret| text.contains(secret)), text.clone())?;
        }
        let opened = Sandbox::open(&*provider, sandbox.name().as_str()).await?;
        let ran = opened.exec("echo $TOKEN", ExecOptions::default()).await?;
        ensure(ran.stdout_text() == "a-secret-of-the-spec\n", "the variable is lost")?;
        Ok(sandbox.destroy().await?)
    })
}
