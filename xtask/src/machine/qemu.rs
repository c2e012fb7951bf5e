//! Runs the machine: QEMU's smallest, its console on our pipe, and an end for it whatever happens.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::disk::Tests;
use super::report::{News, Report};
use super::sys;
use crate::log::say;

/// The machine to run.
#[derive(Debug)]
pub struct Machine {
    /// The kernel.
    pub kernel: PathBuf,
    /// The initial file system.
    pub initramfs: PathBuf,
    /// The disk with the system. It is not changed: writes go to a temporary file.
    pub root: PathBuf,
    /// The disk with the tests.
    pub tests: Tests,
    /// The time at which it is stopped, done or not.
    pub deadline: Duration,
}

/// Only what matters on the console, a reboot (which ends QEMU) after a panic, and no watchdogs: an
/// emulated processor is late for everything. The machine has no other clock than the time stamp
/// counter, which QEMU takes from the host's, and nothing to find out its rate by.
fn command_line() -> String {
    format!(
        "console=ttyS0 quiet loglevel=3 panic=-1 reboot=t nowatchdog rcupdate.rcu_cpu_stall_suppress=1 \
         random.trust_cpu=on tsc=reliable tsc_early_khz={}",
        sys::time_stamp_khz()
    )
}

/// Starts it and follows its console to the end.
///
/// # Errors
/// When QEMU can't be started. Anything that happens afterwards is in the report.
pub fn run(machine: &Machine) -> Result<Report, String> {
    let mut child = command(machine).spawn().map_err(|error| format!("start the machine: {error}"))?;
    let console = child.stdout.take().ok_or("the machine has no console")?;
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut report = Report::new(&machine.tests.mark);
    follow(&mut child, &lines, machine.deadline, &mut report)?;
    reader.join().map_err(|_| "the console's reader panicked".to_owned())?;
    Ok(report)
}

fn command(machine: &Machine) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args(["-M", "microvm", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048"])
        .args(["-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"])
        .arg("-kernel")
        .arg(&machine.kernel)
        .arg("-initrd")
        .arg(&machine.initramfs)
        .args(["-append", &command_line()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let disks = [("root", &machine.root, "snapshot=on"), ("tests", &machine.tests.disk, "readonly=on")];
    for (name, path, how) in disks {
        let drive = format!("id={name},if=none,format=raw,{how},file={}", path.display());
        command.args(["-drive", &drive, "-device", &format!("virtio-blk-device,drive={name}")]);
    }
    command
}

/// Shows the console until the machine ends, or ends it.
fn follow(
    child: &mut Child,
    lines: &Receiver<String>,
    deadline: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let until = Instant::now() + deadline;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => match report.line(&line) {
                News::Step(step) => say(format_args!("\n     {step}")),
                News::Line(line) => say(format_args!("{line}")),
            },
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                report.trouble(format_args!("it was not done within {} minutes", deadline.as_secs() / 60));
                child.kill().map_err(|error| format!("stop the machine: {error}"))?;
                break;
            }
        }
    }
    let status = child.wait().map_err(|error| format!("wait for the machine: {error}"))?;
    if !status.success() {
        report.trouble(format_args!("QEMU ended with {status}"));
    }
    Ok(())
}
