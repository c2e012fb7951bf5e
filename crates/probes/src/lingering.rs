//! K13: processes that do not want to end.

use std::sync::Arc;

use eyot::{CancellationToken, ErrorKind, ExecOptions, Outcome, SandboxId};

use crate::check::{Check, cases, ensure, ensure_eq, promptly, slowness, until};
use crate::facts::note;
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k13_everything_that_a_command_left_is_dead_after_its_deadline(stage);
    k13_everything_that_a_command_left_is_dead_after_a_cancel(stage);
    k13_a_chain_of_ever_new_processes_is_dead_after_the_deadline(stage);
    k13_what_kills_the_helper_that_it_hangs_from_is_dead_after_the_deadline(stage);
    k13_after_a_normal_return_a_background_child_lives_and_delays_nothing(stage);
    k13_a_destroy_leaves_no_process_on_the_host(world);
}

const WAYS: [&str; 5] = ["setsid", "double-fork", "ignore", "hold-pipes", "chain-of-groups"];

/// Leaves a process behind in some way (the third argument marks it), and stays, or returns.
pub fn probe(arguments: &[String]) {
    let [way, stay, _marker] = arguments else { return };
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGQUIT] {
        sys::ignore(signal);
    }
    let left = match way.as_str() {
        "setsid" => sys::fork(in_a_new_session),
        "double-fork" => sys::fork(|| match sys::fork(in_a_new_session) {
            Ok(_) => 0,
            Err(errno) => errno,
        }),
        "chain-of-groups" => sys::fork(|| {
            for _ in 0..8 {
                let next = sys::call(libc::SYS_setpgid, &[0, 0]).and_then(|_| sys::fork(|| 0));
                if next.is_err() {
                    return 1;
                }
            }
            sys::pause()
        }),
        "kill-helper" => {
            let parent = u64::from(std::os::unix::process::parent_id());
            let left = sys::fork(in_a_new_session);
            note("killed", sys::call(libc::SYS_kill, &[parent, libc::SIGKILL as u64]).is_ok());
            left
        }
        // A process that is seen is gone already: each parent ends as soon as it has a child.
        "chain" => sys::fork(|| {
            loop {
                if sys::call(libc::SYS_fork, &[]).is_ok_and(|child| child != 0) {
                    sys::exit(0);
                }
            }
        }),
        _ => sys::fork(|| sys::pause()),
    };
    note("left", left.is_ok());
    if stay == "stay" {
        sys::pause();
    }
}

fn in_a_new_session() -> i32 {
    match sys::call(libc::SYS_setsid, &[]) {
        Ok(_) => sys::pause(),
        Err(errno) => errno,
    }
}

/// Lists every process that there is.
pub fn list_processes(_arguments: &[String]) {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let ended = std::fs::read_to_string(entry.path().join("status"))
                .unwrap_or_default()
                .contains("Z (zombie)");
            if !ended {
                count += 1;
                note(name, String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
    }
    note("count", count);
}

/// A word that is on the command line of what is looked for, and nowhere else.
pub fn new_marker() -> String {
    SandboxId::generate().to_string().replace("sb_", "marker")
}

/// Counts the processes of the host that have this word on their command line.
pub fn count_on_the_host(marker: &str) -> Check<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc")? {
        let line = std::fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        count += usize::from(String::from_utf8_lossy(&line).contains(marker));
    }
    Ok(count)
}

fn is_on_the_host(marker: &str) -> Check<bool> {
    Ok(count_on_the_host(marker)? > 0)
}

fn line(way: &str, stay: &str, marker: &str) -> String {
    format!("exec /attack/threats probe linger {way} {stay} {marker}")
}

async fn dead_after_the_deadline(stage: &Stage, who: &str, way: &str) -> Check {
    let marker = new_marker();
    let timeout_ms = 500 * u64::from(slowness());
    let options = ExecOptions { timeout_ms: Some(timeout_ms), ..stage.options_of(who) };
    let work = stage.sandbox.exec(line(way, "stay", &marker), options);
    let result = promptly(way, work).await??;
    ensure_eq!(result.outcome, Outcome::TimedOut);
    ensure!(result.stdout_text().contains("left=true"), "{way}: {}", result.stdout_text());
    ensure!(result.duration_ms >= timeout_ms, "{way}: {} ms is early", result.duration_ms);
    ensure!(!result.may_still_be_running, "{way}: the kill was not confirmed");
    ensure!(!is_on_the_host(&marker)?, "{who}, {way}: something lives on");
    stage.still_works().await
}

async fn k13_everything_that_a_command_left_is_dead_after_its_deadline(stage: Stage) -> Check {
    for who in stage.everybody() {
        for way in WAYS {
            dead_after_the_deadline(&stage, who, way).await?;
        }
    }
    Ok(())
}

async fn k13_everything_that_a_command_left_is_dead_after_a_cancel(stage: Stage) -> Check {
    for way in WAYS {
        let (marker, cancel) = (new_marker(), CancellationToken::new());
        let options = ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() };
        let mut stream = stage.sandbox.exec_stream(line(way, "stay", &marker), options).await?;
        let result = loop {
            match promptly(way, stream.next()).await? {
                Some(Ok(eyot::ExecEvent::End(result))) => break result,
                Some(Ok(_)) => cancel.cancel(),
                Some(Err(error)) => return Err(error.into()),
                None => return Err(crate::check::Failure::Broken("there was no end".to_owned())),
            }
        };
        ensure_eq!(result.outcome, Outcome::Cancelled);
        ensure!(!is_on_the_host(&marker)?, "{way}: something lives on");
    }
    stage.still_works().await
}

async fn k13_a_chain_of_ever_new_processes_is_dead_after_the_deadline(stage: Stage) -> Check {
    for who in stage.everybody() {
        dead_after_the_deadline(&stage, who, "chain").await?;
    }
    Ok(())
}

async fn k13_what_kills_the_helper_that_it_hangs_from_is_dead_after_the_deadline(stage: Stage) -> Check {
    for who in stage.everybody() {
        let marker = new_marker();
        let options =
            ExecOptions { timeout_ms: Some(1_500 * u64::from(slowness())), ..stage.options_of(who) };
        let work = stage.sandbox.exec(line("kill-helper", "stay", &marker), options);
        match promptly("the call", work).await? {
            Ok(result) => ensure!(!result.success() && !result.may_still_be_running, "{result:?}"),
            Err(error) => ensure!(error.kind() != ErrorKind::Internal, "{error}"),
        }
        ensure!(!is_on_the_host(&marker)?, "{who}: something lives on");
        stage.still_works().await?;
    }
    Ok(())
}

async fn k13_after_a_normal_return_a_background_child_lives_and_delays_nothing(stage: Stage) -> Check {
    for who in stage.everybody() {
        for way in WAYS {
            let marker = new_marker();
            let work = stage.sandbox.exec(line(way, "return", &marker), stage.options_of(who));
            let result = promptly(way, work).await??;
            ensure_eq!(result.outcome, Outcome::Exited(0));
            // Between two of its processes it can't be seen for a moment; one that is dead is never
            // seen again.
            until(&format!("{who}, {way}: the child"), async || is_on_the_host(&marker)).await?;
        }
        let line = "(trap '' TERM; echo served > served; exec sleep 1000) & echo started";
        let result =
            promptly("a shell's background child", stage.sandbox.exec(line, stage.options_of(who))).await??;
        ensure_eq!(result.stdout_text(), "started\n");
    }
    stage.still_works().await
}

async fn k13_a_destroy_leaves_no_process_on_the_host(world: Arc<World>) -> Check {
    let (stage, marker) = (world.stage().await?, new_marker());
    for way in WAYS {
        stage.sandbox.exec(line(way, "return", &marker), ExecOptions::default()).await?;
    }
    ensure!(is_on_the_host(&marker)?, "there is nothing to kill");
    stage.end().await?;
    ensure!(!is_on_the_host(&marker)?, "something outlived the sandbox");
    Ok(())
}
