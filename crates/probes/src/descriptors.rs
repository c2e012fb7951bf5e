//! K8: what a command is born with.

use crate::check::{Check, cases, ensure, ensure_eq};
use crate::facts::{note, tried_io};
use crate::sys;
use crate::world::Stage;

cases! {
    k08_a_command_has_three_descriptors_and_no_more(stage);
    k08_a_started_process_and_one_on_a_terminal_have_three_descriptors_and_no_more(stage);
    k08_a_command_starts_inside_and_its_descriptors_lead_nowhere(stage);
    k08_a_command_starts_with_an_ordinary_disposition_of_signals(stage);
}

/// Says which descriptors it has, what they are, where it is, and which signals it was told to
/// ignore.
pub fn probe(_arguments: &[String]) {
    let open = (0..65_536_u64).filter(|fd| sys::call(libc::SYS_fcntl, &[*fd, libc::F_GETFD as u64]).is_ok());
    let open: Vec<String> = open.map(|fd| fd.to_string()).collect();
    note("open", open.join(","));
    for fd in 0..3 {
        let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        note(format_args!("target_{fd}"), target.display());
        tried_io(format_args!("below_{fd}"), std::fs::read_dir(format!("/proc/self/fd/{fd}/..")));
        tried_io(format_args!("listed_{fd}"), std::fs::read_dir(format!("/proc/self/fd/{fd}/")));
    }
    note("cwd", std::env::current_dir().unwrap_or_default().display());
    note("root", std::fs::read_link("/proc/self/root").unwrap_or_default().display());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("Sig") || line.starts_with("NoNewPrivs")) {
        if let Some((name, value)) = line.split_once(':') {
            note(name, value.trim());
        }
    }
}

async fn k08_a_command_has_three_descriptors_and_no_more(stage: Stage) -> Check {
    for who in stage.everybody() {
        stage.probe_as(who, &["descriptors"]).await?.is("open", "0,1,2")?;
    }
    let listed = stage.output("echo /proc/self/fd/*").await?;
    // The shell's own descriptor of the folder that it lists is one of them.
    ensure!(listed.split(' ').count() <= 4, "{listed}");
    Ok(())
}

async fn k08_a_started_process_and_one_on_a_terminal_have_three_descriptors_and_no_more(
    stage: Stage,
) -> Check {
    let options = eyot::ExecOptions { pty: Some(eyot::PtySize::default()), ..eyot::ExecOptions::default() };
    let facts = stage.probe_with(options, &["descriptors"]).await?;
    facts.is("open", "0,1,2")?;
    ensure!(facts.get("target_0")?.starts_with("/dev/pts/"), "{facts:?}");
    let line = "/attack/threats probe descriptors > /workspace/facts";
    let started = stage.sandbox.start(line, eyot::StartOptions::default()).await?;
    crate::check::promptly("the process", stage.sandbox.wait(started.id)).await??;
    let facts = crate::facts::Facts::parse(&stage.sandbox.read_text("facts").await?);
    facts.is("open", "0,1,2")
}

async fn k08_a_command_starts_inside_and_its_descriptors_lead_nowhere(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["descriptors"]).await?;
        facts.is("cwd", "/workspace")?;
        facts.is("root", "/")?;
        facts.none_worked("below_")?;
        facts.none_worked("listed_")?;
        for fd in 0..3 {
            let target = facts.get(&format!("target_{fd}"))?;
            ensure!(target == "/dev/null" || target.starts_with("pipe:"), "descriptor {fd} is {target}");
        }
    }
    Ok(())
}

async fn k08_a_command_starts_with_an_ordinary_disposition_of_signals(stage: Stage) -> Check {
    let line = "grep -E '^(SigBlk|SigIgn|NoNewPrivs)' /proc/self/status | tr -d '\\t\\n'";
    for who in stage.everybody() {
        let result = stage.sh_as(who, line).await?;
        let expected = "SigBlk:0000000000000000SigIgn:0000000000000000NoNewPrivs:1";
        ensure_eq!(result.stdout_text(), expected);
    }
    Ok(())
}
