//! Things that a failure, a lost answer or a slow call could leave at the vendor's, or in a sandbox.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use eyot::{ErrorKind, ExecEvent, ExecOptions, SandboxProvider};
use eyot_providers::cloudflare::CloudflareProvider;
use libtest_mimic::Trial;

use crate::faults::{EXEC, another_guest_follows, create, only_id, run};
use crate::ground::block_on;
use crate::injected::{
    Fault, NamedCase, Tried, empty, ensure, failed, ground, named, within, without_records,
};

const SESSION: &str = "/session";

pub fn trials() -> Vec<Trial> {
    let cases: [NamedCase; 6] = [
        ("a_guest_that_was_killed_is_followed_by_another_though_its_commands_run_on", orphans),
        ("an_upload_that_fails_is_not_left_in_an_adopted_sandbox", upload),
        ("a_call_that_outlasts_the_removal_leaves_no_container", slow_call),
        ("a_session_whose_answer_is_lost_is_ended_and_another_is_used", lost_session),
        ("a_list_does_not_wait_for_a_removal_that_hangs", slow_sweep),
        ("a_script_is_sent_four_times_at_most", tries),
    ];
    named("leftovers", &cases)
}

fn orphans() -> Tried {
    let (ground, _) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        let mut running = sandbox.exec_stream("echo up; sleep 86391", ExecOptions::default()).await?;
        let first = running.next().await;
        ensure(matches!(first, Some(Ok(ExecEvent::Stdout(_)))), format!("{first:?}"))?;
        // The guest is older than what it has started.
        let line = "kill -9 $(grep -la 'eyot-guest.[b]eside' /proc/[0-9]*/cmdline | cut -d/ -f3 | sort -n | head -n 1)";
        let again = another_guest_follows(&ground, &sandbox, line).await?;
        ensure(run(&again, "pgrep -fc 'sleep 8639[1]'").await? == "1", "its command does not run on")?;
        Ok(again.destroy().await?)
    })
}

fn upload() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        let bridge_id = "abcdefgh234567";
        let container = ground.bridge.containers.of(bridge_id).await?.ok_or("no room")?;
        faults.plan_times(Method::PUT, "", Fault::AnswerLost, 4);
        failed(within(60, ground.provider().adopt(bridge_id)).await?)?;
        let left = "ls -d /tmp/.eyot-* /workspace/.eyot-* 2>/dev/null";
        let left = container.sandbox.exec(left, ExecOptions::default()).await?.stdout_text();
        ensure(left.is_empty(), left)?;
        without_records(&ground).await
    })
}

fn slow_call() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        // Of another process, as far as the provider knows.
        let other = CloudflareProvider::new(ground.options())?;
        faults.plan(Method::POST, SESSION, Fault::Held);
        let name = sandbox.name().to_string();
        let opening = tokio::spawn(async move { other.open(&name).await.map(drop) });
        faults.arrived().await;
        within(60, sandbox.destroy()).await??;
        faults.release();
        failed(within(60, opening).await??)?;
        empty(&ground).await
    })
}

fn lost_session() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        faults.plan_times(Method::POST, SESSION, Fault::AnswerLost, 2);
        let sandbox = within(60, create(&ground)).await??;
        ensure(run(&sandbox, "echo on").await? == "on", "it does not run")?;
        let container =
            ground.bridge.containers.running(&only_id(&ground).await?).await.ok_or("no container")?;
        let one = async {
            while container.count_sessions() != 1 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(20, one).await?;
        Ok(sandbox.destroy().await?)
    })
}

fn slow_sweep() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        let sandbox = create(&ground).await?;
        faults.plan_times(Method::DELETE, "", Fault::Refused(StatusCode::BAD_GATEWAY, None), 4);
        failed(sandbox.destroy().await)?;
        faults.plan(Method::DELETE, "", Fault::Held);
        ensure(within(20, ground.provider().list()).await??.is_empty(), "it is listed")?;
        faults.release();
        empty(&ground).await
    })
}

fn tries() -> Tried {
    let (ground, faults) = ground(9);
    block_on(async {
        for _ in 0..4 {
            faults.plan_times(Method::POST, EXEC, Fault::Refused(StatusCode::BAD_GATEWAY, None), 3);
            faults.plan(Method::POST, EXEC, Fault::Cut(1));
        }
        let error = failed(within(60, create(&ground)).await?)?;
        ensure(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
        let sent = faults.count("POST", EXEC);
        ensure(sent == 4, format!("it was sent {sent} times"))?;
        empty(&ground).await
    })
}
