//! Faults of the service: it throttles, fails, cuts streams, loses a sandbox under a call, and has a clock of its own.
//! The vendor does all of it now and then; the driver tells the truth each time.

use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use eyot::{Command, ErrorKind, ExecEvent, ExecOptions, Sandbox, SandboxId, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};

use crate::ground::{KEY, block_on};
use crate::injected::{Fault, NamedCase, Tried, ends, ensure, failed, ground, named};

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 18] = [
        ("a_throttled_question_is_asked_again_after_the_wait_that_was_asked_for", throttled),
        ("a_wait_that_is_too_long_is_told_and_not_waited_for", throttled_for_long),
        ("a_question_is_asked_again_after_a_failure_of_the_service", failing),
        ("a_create_whose_answer_is_lost_makes_one_sandbox", lost_answer),
        ("a_create_whose_answer_is_cut_makes_one_sandbox", cut_answer),
        ("a_create_whose_answers_are_all_cut_leaves_no_sandbox", cut_answers),
        ("a_create_that_is_refused_kills_no_sandbox_of_its_id", refused_create),
        ("a_program_with_an_equals_sign_in_its_name_is_run", equals_sign),
        ("a_path_of_the_caller_keeps_no_sandbox_from_being_made", own_path),
        ("a_throttled_command_is_not_run_twice_and_told_as_not_run", throttled_command),
        ("a_command_that_was_perhaps_started_is_ended_and_not_started_again", lost_command),
        ("a_stream_that_is_cut_is_an_error_and_the_sandbox_lives", cut_stream),
        ("a_read_that_is_cut_is_an_error_and_no_short_file", cut_read),
        ("a_sandbox_that_dies_under_a_command_ends_it_as_destroyed", dies),
        ("a_clock_that_is_wrong_changes_nothing", skewed),
        ("a_redirect_takes_the_key_nowhere", redirected),
        ("an_answer_that_never_ends_is_an_error", endless_answer),
        ("no_secret_is_in_an_error_or_in_what_is_shown_of_the_provider", secrets),
    ];
    named("faults", &cases)
}

fn throttled() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        faults.plan(Method::GET, "/v2/sandboxes", Fault::Refused(StatusCode::TOO_MANY_REQUESTS, Some(1)));
        let begun = Instant::now();
        ground.provider().list().await?;
        ensure(begun.elapsed() >= Duration::from_secs(1), "it did not wait")?;
        ensure(faults.count("GET /v2/sandboxes") == 2, "it was not asked twice")
    })
}

fn throttled_for_long() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        faults.plan(Method::GET, "/v2/sandboxes", Fault::Refused(StatusCode::TOO_MANY_REQUESTS, Some(3600)));
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), format!("{error:?}"))?;
        ensure(error.hint() == Some("try again in 3600 s"), format!("{:?}", error.hint()))?;
        ensure(faults.count("GET /v2/sandboxes") == 1, "it was asked again")
    })
}

fn failing() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        for status in [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE] {
            faults.plan(Method::GET, "/v2/sandboxes", Fault::Refused(status, None));
        }
        ground.provider().list().await?;
        for _ in 0..4 {
            faults.plan(Method::GET, "/v2/sandboxes", Fault::Refused(StatusCode::SERVICE_UNAVAILABLE, None));
        }
        let error = failed(ground.provider().list().await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(faults.count("GET /v2/sandboxes") == 3 + 4, "it was asked more or less often")
    })
}

fn redirected() -> Tried {
    let (ground, faults) = ground(0);
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0")?;
    elsewhere.set_nonblocking(true)?;
    let port = elsewhere.local_addr()?.port();
    block_on(async {
        faults.plan(Method::GET, "/v2/sandboxes", Fault::Redirected(port));
        let listed = tokio::time::timeout(Duration::from_secs(5), ground.provider().list()).await;
        ensure(elsewhere.accept().is_err(), "the other server was asked")?;
        failed(listed?).map(drop)
    })
}

fn endless_answer() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        faults.plan(Method::GET, "/v2/sandboxes", Fault::Endless);
        let listed = tokio::time::timeout(Duration::from_secs(20), ground.provider().list()).await;
        let error = failed(listed.map_err(|_| "it reads on")?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))
    })
}

fn lost_answer() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        faults.plan(Method::POST, "/v2/sandboxes", Fault::AnswerLost);
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        ensure(faults.count("POST /v2/sandboxes") == 2, "it was not asked twice")?;
        ensure(ground.native.list().await?.len() == 1, "two sandboxes were made")?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut_answer() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        faults.plan(Method::POST, "/v2/sandboxes", Fault::Cut(10));
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        ensure(ground.native.list().await?.len() == 1, "two sandboxes were made")?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut_answers() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        for _ in 0..2 {
            faults.plan(Method::POST, "/v2/sandboxes", Fault::Cut(10));
        }
        let error = failed(Sandbox::create(&*ground.provider(), SandboxSpec::default()).await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(ground.native.list().await?.is_empty(), "a sandbox is left")
    })
}

fn refused_create() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let spec = SandboxSpec { id: Some(SandboxId::generate()), ..SandboxSpec::default() };
        let theirs = Sandbox::create(&*ground.provider(), spec.clone()).await?;
        // The look for its id and its name finds nothing, as if it came a moment later.
        for _ in 0..2 {
            faults.plan(Method::GET, "/v2/sandboxes", Fault::Empty);
            faults.plan(Method::POST, "/v2/sandboxes", Fault::Cut(10));
        }
        let error = failed(Sandbox::create(&*ground.provider(), spec).await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(theirs.exists("/").await?, "the sandbox of another create was killed")?;
        ensure(ground.native.list().await?.len() == 1, "the create has left one")?;
        Ok(theirs.destroy().await?)
    })
}

fn equals_sign() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let line = "mkdir d && printf '#!/bin/sh\\necho \"ran $1\"\\n' > d/a=b && chmod +x d/a=b";
        sandbox.exec(line, ExecOptions::default()).await?;
        let argv = Command::argv(["./d/a=b", "$x y"]);
        let ran = sandbox.exec(argv, ExecOptions::default()).await?;
        ensure(ran.stdout_text() == "ran $x y\n", format!("{ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn own_path() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let mut spec = SandboxSpec::default();
        spec.env.insert("PATH".into(), "/opt/none".into());
        Ok(Sandbox::create(&*ground.provider(), spec).await?.destroy().await?)
    })
}

fn throttled_command() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let before = faults.count("POST /process.Process/Start");
        let refused = Fault::Refused(StatusCode::TOO_MANY_REQUESTS, Some(2));
        faults.plan(Method::POST, "/process.Process/Start", refused);
        let error = failed(sandbox.exec("touch ran", ExecOptions::default()).await)?;
        ensure(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), format!("{error:?}"))?;
        ensure(faults.count("POST /process.Process/Start") == before + 1, "it was sent again")?;
        ensure(!sandbox.exists("ran").await?, "it was run")?;
        Ok(sandbox.destroy().await?)
    })
}

fn lost_command() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        faults.plan(Method::POST, "/process.Process/Start", Fault::AnswerLost);
        let line = "echo x >> ran; sleep 86394; echo y >> ran";
        let error = failed(sandbox.exec(line, ExecOptions::default()).await)?;
        ensure(error.kind() == ErrorKind::Unavailable && !error.had_no_effect(), format!("{error:?}"))?;
        ends(&sandbox, "sleep 86394").await?;
        let ran = if sandbox.exists("ran").await? { sandbox.read_text("ran").await? } else { String::new() };
        ensure(["", "x\n"].contains(&ran.as_str()), format!("it was run twice: {ran:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut_stream() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        faults.plan(Method::POST, "/process.Process/Start", Fault::Cut(400));
        let line = "for i in $(seq 100); do echo $i; sleep 0.01; done";
        let error = failed(sandbox.exec(line, ExecOptions::default()).await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        let next = sandbox.exec("echo alive", ExecOptions::default()).await?;
        ensure(next.stdout_text() == "alive\n", format!("{next:?}"))?;
        Ok(sandbox.destroy().await?)
    })
}

fn cut_read() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        sandbox.write("f", vec![7_u8; 1 << 20]).await?;
        faults.plan(Method::POST, "/process.Process/Start", Fault::Cut(100_000));
        let error = failed(sandbox.read("f").await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        ensure(sandbox.read("f").await?.len() == 1 << 20, "the file is not whole")?;
        Ok(sandbox.destroy().await?)
    })
}

fn dies() -> Tried {
    let (ground, _) = ground(0);
    block_on(async {
        let sandbox = Sandbox::create(&*ground.provider(), SandboxSpec::default()).await?;
        let mut running = sandbox.exec_stream("echo up; sleep 86400", ExecOptions::default()).await?;
        let first = running.next().await;
        ensure(matches!(first, Some(Ok(ExecEvent::Stdout(_)))), format!("{first:?}"))?;
        // E2B's id is the native one's, in another form.
        let native = ground.native.list().await?.remove(0).id;
        let id = native.as_str().replacen("sb_", "i", 1);
        ground.api.lose(&id).await?;
        let ended = loop {
            match running.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => return Err("the events stopped without an end".into()),
            }
        };
        ensure(ended.kind() == ErrorKind::Destroyed, format!("{ended:?}"))?;
        let next = failed(sandbox.exec("true", ExecOptions::default()).await)?;
        ensure(next.kind() == ErrorKind::Destroyed, format!("{next:?}"))
    })
}

fn skewed() -> Tried {
    for skew_s in [-86_400, 86_400] {
        let (ground, _) = ground(skew_s);
        block_on(async {
            let provider = ground.provider();
            let first = Sandbox::create(&*provider, SandboxSpec::default()).await?;
            let second = Sandbox::create(&*provider, SandboxSpec::default()).await?;
            let listed: Vec<_> = provider.list().await?.into_iter().map(|info| info.id).collect();
            ensure(listed == [first.id().clone(), second.id().clone()], format!("{listed:?}"))?;
            let opened = Sandbox::open(&*provider, first.name().as_str()).await?;
            ensure(opened.info().created_ms == first.info().created_ms, "it was made at another time")?;
            let ran = opened.exec("echo on", ExecOptions::default()).await?;
            ensure(ran.success(), format!("{ran:?}"))?;
            first.destroy().await?;
            Ok::<_, Failed>(second.destroy().await?)
        })?;
    }
    Ok(())
}

fn secrets() -> Tried {
    let (ground, faults) = ground(0);
    block_on(async {
        let provider = ground.provider();
        let mut spec = SandboxSpec::default();
        spec.env.insert("TOKEN".to_owned(), "a-secret-of-the-spec".to_owned());
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let mut shown = vec![format!("{provider:?} {:?}", ground.options())];
        for status in [StatusCode::UNAUTHORIZED, StatusCode::INTERNAL_SERVER_ERROR] {
            faults.plan(Method::POST, "/process.Process/Start", Fault::Refused(status, None));
            shown.push(format!("{:?}", failed(sandbox.exec("true", ExecOptions::default()).await)?));
            faults.plan(Method::GET, "/v2/sandboxes", Fault::Refused(status, None));
            shown.push(format!("{:?}", failed(provider.list().await)?));
        }
        faults.plan(Method::POST, "/process.Process/Start", Fault::Cut(3));
        shown.push(format!("{:?}", failed(sandbox.exec("true", ExecOptions::default()).await)?));
        let listed = provider.list().await?;
        shown.push(format!("{listed:?}"));
        for text in shown {
            ensure(!text.contains(KEY) && !text.contains("a-secret-of-the-spec"), text.clone())?;
        }
        let opened = Sandbox::open(&*provider, sandbox.name().as_str()).await?;
        let ran = opened.exec("echo $TOKEN", ExecOptions::default()).await?;
        ensure(ran.stdout_text() == "a-secret-of-the-spec\n", "the variable is lost")?;
        Ok(sandbox.destroy().await?)
    })
}
