//! A bridge that fails, throttles, cuts its answers or sends its callers elsewhere; containers that end; and creates that
//! meet, or whose callers leave.

use axum::http::{Method, StatusCode};
use eyot::{ErrorKind, ExecOptions, Sandbox, SandboxName, SandboxProvider, SandboxSpec};
use eyot_providers::cloudflare::CloudflareProvider;
use libtest_mimic::{Failed, Trial};
use tokio::net::TcpListener;

use crate::ground::{Ground, KEY, block_on};
use crate::injected::{Fault, NamedCase, Tried, empty, ensure, failed, ground, named, within};

pub const EXEC: &str = "/exec";
const NEW: &str = "/v1/sandbox";

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 17] = [
        ("a_call_that_is_throttled_waits_as_long_as_it_is_told", throttled),
        ("a_wait_that_is_too_long_is_told_instead", too_long_a_wait),
        ("a_create_goes_on_over_failures_and_cut_answers", bumpy),
        ("a_create_that_fails_leaves_nothing", failed_create),
        ("a_removal_that_fails_is_done_by_the_next_list", failed_removal),
        ("a_create_whose_caller_leaves_leaves_nothing", left),
        ("of_two_creates_of_one_name_one_fails_and_harms_nothing", one_name),
        ("a_command_whose_sandbox_dies_says_so_and_no_other_is_started_in_its_place", dies),
        ("a_sandbox_that_vanishes_without_a_word_is_noticed", vanishes),
        ("a_sandbox_that_was_replaced_while_nobody_looked_is_not_used", replaced),
        ("a_sandbox_whose_programs_have_removed_the_guest_s_files_keeps_its_own", cleaned),
        ("a_command_whose_stream_is_cut_fails_and_the_next_one_runs", cut_stream),
        ("a_guest_that_was_killed_is_followed_by_another_and_files_stay", killed_guest),
        ("the_key_goes_to_no_other_server_and_into_no_error", key),
        ("an_answer_without_an_end_is_an_error", endless),
        ("more_containers_than_may_run_are_a_quota", quota),
        ("an_adopted_sandbox_is_left_as_it_was", adopted),
    ];
    named("faults", &cases)
}

pub async fn create(ground: &Ground) -> eyot::Result<Sandbox> {
    Sandbox::create(&*ground.provider(), SandboxSpec::default()).await
}

pub async fn only_id(ground: &Ground) -> Result<String, Failed> {
    ground.bridge.containers.ids().await.pop().ok_or_else(|| "there is no container".into())
}

pub async fn run(sandbox: &Sandbox, line: &str) -> eyot::Result<String> {
    Ok(sandbox.exec(line, ExecOptions::default()).await?.stdout_text().trim().to_owned())
}

fn throttled() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        faults.plan(Method::POST, NEW, Fault::Refused(StatusCode::TOO_MANY_REQUESTS, Some(1)));
        let begun = tokio::time::Instant::now();
        let sandbox = create(&ground).await?;
        ensure(begun.elapsed().as_millis() >= 1000, "it did not wait")?;
        Ok(sandbox.destroy().await?)
    })
}

fn too_long_a_wait() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        faults.plan(Method::POST, NEW, Fault::Refused(StatusCode::TOO_MANY_REQUESTS, Some(3600)));
        let error = failed(within(10, create(&ground)).await?)?;
        ensure(
            error.kind() == ErrorKind::Unavailable && error.to_string().contains("in 3600 s"),
            format!("{error:?}"),
        )
    })
}

fn bumpy() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        faults.plan(Method::POST, EXEC, Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR, None));
        faults.plan(Method::POST, EXEC, Fault::Cut(20));
        faults.plan(Method::POST, EXEC, Fault::AnswerLost);
        faults.plan(Method::POST, "/session", Fault::AnswerLost);
        let sandbox = create(&ground).await?;
        ensure(run(&sandbox, "echo on").await? == "on", "it does not run")?;
        ensure(ground.bridge.containers.ids().await.len() == 1, "it was made twice")?;
        sandbox.destroy().await?;
        empty(&ground).await
    })
}

fn failed_create() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        for fault in [Fault::Refused(StatusCode::BAD_GATEWAY, None), Fault::Cut(1), Fault::AnswerLost] {
            faults.plan_times(Method::POST, EXEC, fault, 4);
            let error = failed(within(60, create(&ground)).await?)?;
            ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
            ensure(ground.bridge.containers.ids().await.is_empty(), "a container is left")?;
            ensure(ground.provider().list().await?.is_empty(), "a record is left")?;
        }
        Ok(())
    })
}

fn failed_removal() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let id = sandbox.id().to_string();
        faults.plan_times(Method::DELETE, "", Fault::Refused(StatusCode::BAD_GATEWAY, None), 4);
        failed(sandbox.destroy().await)?;
        let error = failed(ground.provider().open(&id).await.map(drop))?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        ensure(ground.bridge.containers.ids().await.len() == 1, "it is gone")?;
        ensure(ground.provider().list().await?.is_empty(), "it is listed")?;
        empty(&ground).await
    })
}

fn left() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        faults.plan(Method::POST, EXEC, Fault::Held);
        let provider = ground.provider();
        let begun = tokio::spawn(async move { Sandbox::create(&*provider, SandboxSpec::default()).await });
        faults.arrived().await;
        begun.abort();
        ensure(begun.await.is_err(), "the create ended")?;
        faults.release();
        let gone = async {
            while faults.count("DELETE", "") == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        within(30, gone).await?;
        empty(&ground).await?;
        ensure(ground.provider().list().await?.is_empty(), "a record is left")
    })
}

fn one_name() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        let spec = SandboxSpec { name: Some(SandboxName::parse("one")?), ..SandboxSpec::default() };
        faults.plan(Method::POST, EXEC, Fault::Held);
        let (first, wanted) = (ground.provider(), spec.clone());
        let begun = tokio::spawn(async move { Sandbox::create(&*first, wanted).await });
        faults.arrived().await;
        // Of another process, as far as the provider knows.
        let other = CloudflareProvider::new(ground.options())?;
        let error = failed(Sandbox::create(&*other, spec).await)?;
        ensure(error.kind() == ErrorKind::AlreadyExists, format!("{error:?}"))?;
        faults.release();
        let sandbox = begun.await??;
        ensure(run(&sandbox, "echo on").await? == "on", "the first one is gone")?;
        ensure(ground.bridge.containers.ids().await.len() == 1, "there are two containers")?;
        Ok(sandbox.destroy().await?)
    })
}

fn dies() -> Tried {
    ends(false)
}

fn vanishes() -> Tried {
    ends(true)
}

fn ends(silently: bool) -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let id = only_id(&ground).await?;
        let caller = sandbox.clone();
        let running =
            tokio::spawn(
                async move { caller.exec("touch began; sleep 86394", ExecOptions::default()).await },
            );
        run(&sandbox, "until [ -e began ]; do sleep 0.05; done").await?;
        if silently {
            ground.bridge.containers.vanish(&id).await?;
        } else {
            ground.bridge.containers.end(&id).await?;
        }
        let error = failed(within(60, running).await??)?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        // What may be somebody's work is removed when that is asked for.
        ground.provider().remove(sandbox.id().as_str()).await?;
        empty(&ground).await?;
        ensure(ground.provider().list().await?.is_empty(), "it is listed")
    })
}

fn replaced() -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let name = sandbox.name().to_string();
        sandbox.write("file", "x").await?;
        drop(sandbox);
        let id = only_id(&ground).await?;
        ground.bridge.containers.end(&id).await?;
        let other = CloudflareProvider::new(ground.options())?;
        let error = failed(within(60, other.open(&name)).await?.map(drop))?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        ensure(error.hint().is_some_and(|hint| hint.contains("Cloudflare has ended")), format!("{error:?}"))?;
        other.remove(&name).await?;
        empty(&ground).await
    })
}

fn cleaned() -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let name = sandbox.name().to_string();
        sandbox.write("file", "kept").await?;
        let container =
            ground.bridge.containers.running(&only_id(&ground).await?).await.ok_or("no container")?;
        run(&sandbox, "rm -rf /tmp/.eyot-*").await?;
        container.cut_terminals();
        drop(sandbox);
        let error = failed(within(60, ground.provider().open(&name)).await?.map(drop))?;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        let read = container.sandbox.read_text("file").await;
        ensure(read? == "kept", "its files are gone")?;
        ground.provider().remove(&name).await?;
        empty(&ground).await
    })
}

fn cut_stream() -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let container =
            ground.bridge.containers.running(&only_id(&ground).await?).await.ok_or("no container")?;
        let caller = sandbox.clone();
        let running =
            tokio::spawn(
                async move { caller.exec("touch began; sleep 86393", ExecOptions::default()).await },
            );
        run(&sandbox, "until [ -e began ]; do sleep 0.05; done").await?;
        container.cut_terminals();
        let error = failed(within(60, running).await??)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        // One that begins in the very moment in which the end is told fails, too.
        let next = async {
            loop {
                match run(&sandbox, "echo on").await {
                    Err(error) if error.kind() == ErrorKind::Unavailable => {}
                    ran => return ran,
                }
            }
        };
        ensure(within(60, next).await?? == "on", "the next one does not run")?;
        let one = async {
            while container.count_terminals() > 1 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        within(20, one).await?;
        Ok(sandbox.destroy().await?)
    })
}

fn killed_guest() -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let line = "kill -9 $(grep -la 'eyot-guest.[b]eside' /proc/[0-9]*/cmdline | cut -d/ -f3)";
        Ok(another_guest_follows(&ground, &sandbox, line).await?.destroy().await?)
    })
}

/// Kills the guest of the only sandbox by a shell line, and checks that another one follows when the sandbox is opened, with the
/// files. Returns it as it was opened.
pub async fn another_guest_follows(
    ground: &Ground,
    sandbox: &Sandbox,
    kill: &str,
) -> Result<Sandbox, libtest_mimic::Failed> {
    sandbox.write("file", "kept").await?;
    let container = ground.bridge.containers.running(&only_id(ground).await?).await.ok_or("no container")?;
    container.sandbox.exec(kill, ExecOptions::default()).await?;
    let error = failed(within(60, run(sandbox, "true")).await?)?;
    ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
    let again = within(60, Sandbox::open(&*ground.provider(), sandbox.name().as_str())).await??;
    ensure(again.read_text("file").await? == "kept", "the file is not there")?;
    Ok(again)
}

fn key() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        let other = TcpListener::bind("127.0.0.1:0").await?;
        faults.plan(Method::POST, NEW, Fault::Redirected(other.local_addr()?.port()));
        let error = failed(create(&ground).await)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        let came = tokio::time::timeout(std::time::Duration::from_millis(200), other.accept()).await;
        ensure(came.is_err(), "the other server was called")?;
        faults.plan(Method::POST, NEW, Fault::KeyTold);
        let error = failed(create(&ground).await)?;
        ensure(error.kind() == ErrorKind::Permission, format!("{error:?}"))?;
        let shown = format!("{error:?} {error} {:?} {:?}", ground.options(), ground.provider());
        ensure(!shown.contains(KEY), "the key is shown")
    })
}

fn endless() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        faults.plan_times(Method::POST, EXEC, Fault::Endless, 4);
        let error = failed(within(60, create(&ground)).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        empty(&ground).await
    })
}

fn quota() -> Tried {
    let (ground, _) = ground(1);
    block_on(async {
        let sandbox = create(&ground).await?;
        let error = failed(within(60, create(&ground)).await?)?;
        ensure(error.kind() == ErrorKind::Quota, format!("{error:?}"))?;
        ensure(run(&sandbox, "echo on").await? == "on", "the first one is gone")?;
        ensure(ground.provider().list().await?.len() == 1, "a record is left")?;
        Ok(sandbox.destroy().await?)
    })
}

fn adopted() -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let bridge_id = "abcdefgh234567";
        let container = ground.bridge.containers.of(bridge_id).await?.ok_or("no room")?;
        let provider = ground.provider();
        let (_, id) = provider.adopt(bridge_id).await?;
        failed(provider.adopt(bridge_id).await)?;
        failed(provider.adopt("../x").await)?;
        let sandbox = Sandbox::open(&*provider, id.as_str()).await?;
        ensure(run(&sandbox, "pwd").await? == "/workspace", "it does not start in the workspace")?;
        sandbox.write("file", "kept").await?;
        provider.remove(id.as_str()).await?;
        ensure(ground.bridge.containers.ids().await == [bridge_id], "the container is gone")?;
        ensure(container.sandbox.read_text("file").await? == "kept", "the file is gone")?;
        let left = "ls -d /tmp/.eyot-* /workspace/.eyot-* 2>/dev/null; grep -la eyot-guest.[b]eside /proc/[0-9]*/cmdline";
        let until_gone = async {
            loop {
                let found = container.sandbox.exec(left, ExecOptions::default()).await?;
                if found.stdout_text().is_empty() {
                    return Ok::<_, Failed>(());
                }
            }
        };
        within(20, until_gone).await?
    })
}
