//! Signals to the program, and a reader that goes away: the command is told or killed, and a
//! throw-away sandbox never remains.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdout};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::machine::Machine;

/// Starts a `run` of a shell line and waits until it has printed `ready`.
fn ready(machine: &Machine, line: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = machine.spawn(&mut machine.command(&["run", "--", "bash", "-c", line]));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "ready\n");
    (child, stdout)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn the_first_interrupt_is_the_commands() {
    let machine = Machine::new();
    let line = "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done";
    let (mut child, mut stdout) = ready(&machine, line);
    send(&child, Signal::INT);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("caught\n", Some(7)));
    machine.assert_empty();
}

#[test]
fn the_second_interrupt_kills_a_command_that_ignores_the_first() {
    let machine = Machine::new();
    let line = "trap 'echo ignored' INT; echo ready; while :; do sleep 0.05; done";
    let (mut child, mut stdout) = ready(&machine, line);
    send(&child, Signal::INT);
    let mut said = String::new();
    stdout.read_line(&mut said).unwrap();
    assert_eq!(said, "ignored\n");
    send(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    machine.assert_empty();
}

#[test]
fn where_there_are_no_signals_the_first_interrupt_is_the_end() {
    let machine = Machine::new();
    let line = "echo ready; while :; do sleep 0.05; done";
    let args = ["--provider", "memory", "run", "--", "bash", "-c", line];
    let mut child = machine.spawn(&mut machine.command(&args));
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert_eq!(first, "ready\n");
    send(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn being_terminated_or_hung_up_destroys_the_sandbox() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let machine = Machine::new();
        let (mut child, _stdout) = ready(&machine, "trap '' TERM HUP QUIT; echo ready; sleep 100");
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        machine.assert_empty();
    }
}

/// Returns the process of a sandbox's guest, with which everything in the sandbox ends.
fn guest(machine: &Machine, id: &str) -> OwnedFd {
    let mark = std::fs::read_link(machine.state().join("sandboxes").join(id).join("ready")).unwrap();
    let number = mark.to_str().unwrap().split(' ').next().unwrap().parse().unwrap();
    pidfd_open(Pid::from_raw(number).unwrap(), PidfdFlags::empty()).unwrap()
}

/// Lists what a folder of the state folder holds.
fn left_in(machine: &Machine, folder: &str) -> Vec<OsString> {
    let entries = std::fs::read_dir(machine.state().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_run_that_is_killed_ends_its_sandbox_and_the_next_command_removes_what_is_left() {
    for options in [&["run"][..], &["run", "--name", "gone", "--workspace", "kept", "--destroy-workspace"]] {
        let machine = Machine::new();
        let line = "echo ready; exec sleep 4712";
        let options = [options, &["--idle-timeout", "100ms", "--", "sh", "-c", line]].concat();
        let mut child = machine.spawn(&mut machine.command(&options));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        let id = machine.run(&["ls", "-q"]).success().trim().to_owned();
        let guest = guest(&machine, &id);
        send(&child, Signal::KILL);
        assert_eq!(child.wait().unwrap().code(), None);
        let soon = Timespec { tv_sec: 20, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&guest, PollFlags::IN)], Some(&soon)).unwrap();
        assert_eq!(ended, 1, "the sandbox lives on");
        assert!(left_in(&machine, "sandboxes").contains(&id.into()), "who has removed it?");
        machine.assert_empty();
        for folder in ["sandboxes", "workspaces"] {
            assert_eq!(left_in(&machine, folder), [""; 0], "{folder}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let machine = Machine::new();
    let mut child = machine.spawn(&mut machine.command(&["run", "--", "yes"]));
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 2]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), &b""[..]));
    machine.assert_empty();
}

#[test]
fn a_reader_that_never_reads_does_not_keep_a_deadline_from_passing_or_a_signal_from_killing() {
    let machine = Machine::new();
    let mut child =
        machine.spawn(&mut machine.command(&["run", "--", "sh", "-c", "echo ready >&2; exec yes"]));
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    machine.assert_empty();
}

#[test]
fn an_interrupted_exec_leaves_its_sandbox_and_kills_its_command() {
    let machine = Machine::with_sandbox();
    let line = "echo ready; exec sleep 4711";
    let mut child = machine.spawn(&mut machine.command(&["exec", "box", "--", "sh", "-c", line]));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let line = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 4711'";
    let left = machine.run(&["exec", "box", "--", "sh", "-c", &line.replace("4711", "471[1]")]);
    assert_eq!(left.text(), "0\n");
}
