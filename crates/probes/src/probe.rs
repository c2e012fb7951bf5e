//! The attacker's entry: which probe is which.

use std::process::ExitCode;

/// The work of a probe inside, given its arguments.
pub type Probe = fn(&[String]);

/// Runs the probe that is named first with the arguments behind it: makes raw system calls, and
/// prints what came of them, one fact a line. Meant to run inside a sandbox; some probes take all
/// that they can get.
///
/// The exit code is a failure only if there is no such probe.
pub fn main(arguments: &[String]) -> ExitCode {
    let Some((name, rest)) = arguments.split_first() else { return ExitCode::FAILURE };
    match probes().into_iter().find(|(known, _)| known == name) {
        Some((_, probe)) => {
            probe(rest);
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("there is no probe `{name}`");
            ExitCode::FAILURE
        }
    }
}

fn probes() -> Vec<(&'static str, Probe)> {
    vec![
        ("namespaces", crate::namespaces::probe),
        ("mounts", crate::mounts::probe),
        ("chroot", crate::mounts::escape_from_chroot),
        ("sockets", crate::sockets::probe),
        ("calls", crate::calls::probe),
        ("foreign-calls", crate::calls::probe_foreign),
        ("own-child", crate::calls::probe_own_child),
        ("terminal", crate::terminal::probe),
        ("guest", crate::guest::probe),
        ("guest-program", crate::guest::probe_program),
        ("signal-guest", crate::guest::probe_signals),
        ("descriptors", crate::descriptors::probe),
        ("masked", crate::masked::probe),
        ("sysctl", crate::masked::probe_sysctl),
        ("proc", crate::masked::probe_proc),
        ("crash", crate::masked::crash),
        ("cgroups", crate::cgroups::probe),
        ("bomb", crate::bombs::probe),
        ("use-up", crate::counters::use_up),
        ("leave-ipc", crate::counters::leave_ipc),
        ("raise-limits", crate::counters::raise_limits),
        ("hop", crate::bombs::hop_from_user_to_user),
        ("many-files", crate::bombs::make_many_files),
        ("deep", crate::bombs::make_deep_path),
        ("privileges", crate::setuid::probe),
        ("owners", crate::owners::probe),
        ("create", crate::owners::create),
        ("linger", crate::lingering::probe),
        ("processes", crate::lingering::list_processes),
        ("host-services", crate::host_services::probe),
        ("leave-network", crate::host_services::leave),
        ("reach-service", crate::inodes::reach),
        ("watch-shared", crate::inodes::watch),
        ("lock-shared", crate::inodes::lock),
        ("leave", crate::siblings::leave),
        ("find", crate::siblings::find),
        ("fail-closed", crate::fail_closed::probe),
        ("swap", crate::links::swap),
        ("bytes", crate::flood::probe),
    ]
}
