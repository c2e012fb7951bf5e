//! cgroup v2 for real: the sandbox tests under Debian's cloud kernel in a virtual machine, as root,
//! as an ordinary user, and as an ordinary user with a delegated group. Hosts that still have v1
//! (and CI's machine is one) can't show how Eyot holds limits where nearly everybody runs it; and
//! Debian's kernel is an old one of those that are supported.
//!
//! The machine is QEMU's `microvm` with software emulation: nothing is needed of the host's own
//! processor. It boots a kernel that is downloaded and unpacked, never installed, from a disk that
//! is made of the host's own packages.

mod closure;
mod cpio;
mod disk;
mod initramfs;
mod kernel;
mod modules;
mod qemu;
mod report;
mod sys;

use std::path::PathBuf;
use std::time::Duration;

use crate::log::say;
use crate::packages;
use crate::process::{has, is_root, target_directory};
use crate::programs::{self, Built};
use report::Report;

/// The settings of the machine's programs.
#[derive(Debug)]
struct Wanted {
    /// Of the tests, those with this in their name.
    filter: Option<String>,
    /// Of the programs, these; all when there are none.
    programs: Vec<String>,
    /// Of those who run them, these; all when there are none.
    users: Vec<String>,
    /// Everybody runs what has to do with control groups, and nothing else.
    groups_only: bool,
    /// The programs, and parts of the tests' names, that have to do with control groups.
    of_groups: &'static [(&'static str, &'static str)],
    /// The time at which the machine is stopped, done or not.
    deadline: Duration,
}

/// One program, run as somebody.
#[derive(Debug)]
struct Run {
    program: String,
    user: String,
    /// Of the tests, those with this in their name; empty for all.
    filter: String,
}

/// The test programs that are run in there. The others need what the machine's small system lacks.
const PROGRAMS: [&str; 5] = ["doctor", "verify", "conformance", "threats", "lifecycle"];
/// Of these, the commands of `eyot`. Whether they succeed is all that counts.
const COMMANDS: [&str; 2] = ["doctor", "verify"];
/// The users that run the tests: root, an ordinary user, one whose group is delegated to it, and
/// one who can ask a user manager for such a group (a stand-in: there is no systemd in there).
const USERS: [&str; 4] = ["root", "user", "delegated", "manager"];
/// The users that run all of them. The others differ from the ordinary user by their control groups
/// alone…
const ALL_OF: [&str; 2] = ["root", "user"];
/// …and run what has to do with those: programs, and a part of the tests' names.
const OF_GROUPS: [(&str, &str); 8] = [
    ("doctor", ""),
    ("conformance", "memory"),
    ("conformance", "processes_than_allowed"),
    ("conformance", "processor_time"),
    ("threats", "k11_"),
    ("threats", "k16_control_groups"),
    ("lifecycle", "group"),
    ("lifecycle", "frozen"),
];
/// The arguments that `cargo xtask soak` runs the machine with. They cover what only this machine
/// can show, in a quarter of an hour; the whole takes more than an hour and is for a release.
pub const OF_SOAK: [&str; 13] = [
    "--groups",
    "--as",
    "root",
    "--as",
    "delegated",
    "--program",
    "doctor",
    "--program",
    "conformance",
    "--program",
    "threats",
    "--program",
    "lifecycle",
];
/// The part of these that `cargo xtask test` runs, as root.
const OF_CI: [(&str, &str); 2] = [("threats", "k11_a_bomb"), ("threats", "k16_control_groups")];
/// The time after which the short run is stopped. Beside other jobs it takes two or three.
const DEADLINE_OF_CI: Duration = Duration::from_secs(6 * 60);
/// The tests that are left out, with the reason: an emulated processor is some twenty times slower.
const LEFT_OUT: [(&str, &str); 3] = [
    ("flood", "gigabytes through an emulated processor"),
    ("two_hundred", "two hundred sandboxes on an emulated processor"),
    ("200_commands", "two hundred commands on an emulated processor"),
];
/// The factor by which the tests wait longer.
const SLOWNESS: u32 = 10;
const DEADLINE: Duration = Duration::from_secs(90 * 60);

/// The task, with its arguments.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let wanted = Wanted::parse(arguments)?;
    if !is_root() {
        return Err("the machine's disk is made by root, who can give files to others".to_owned());
    }
    prepare()?;
    try_in(&wanted, &programs::built()?)
}

/// Installs what the machine is made of, and downloads its kernel.
pub fn prepare() -> Result<(), String> {
    packages::install_for_machine()?;
    if let Some(missing) = ["qemu-system-x86_64", "busybox", "mkfs.ext4"].iter().find(|name| !has(name)) {
        return Err(format!("there is no {missing} here, and apt can't install it"));
    }
    kernel::kernel(&folder()?).map(drop)
}

/// Boots the machine once, for the limits that only control groups of version 2 hold.
pub fn try_limits(built: &[Built]) -> Result<(), String> {
    let wanted = Wanted {
        programs: vec!["threats".to_owned()],
        users: vec!["root".to_owned()],
        groups_only: true,
        of_groups: &OF_CI,
        deadline: DEADLINE_OF_CI,
        ..Wanted::parse(&[])?
    };
    try_in(&wanted, built)
}

fn try_in(wanted: &Wanted, built: &[Built]) -> Result<(), String> {
    let report = start(wanted, built)?;
    report.print();
    report.result()
}

fn start(wanted: &Wanted, built: &[Built]) -> Result<Report, String> {
    let folder = folder()?;
    let kernel = kernel::kernel(&folder)?;
    let root = disk::root(&folder)?;
    let tests = disk::tests(&folder, built, wanted)?;
    let initramfs = initramfs::write(&folder, &kernel)?;
    for (name, why) in LEFT_OUT {
        say(format_args!("     Left out: tests with `{name}` in their name ({why})"));
    }
    qemu::run(&qemu::Machine { kernel: kernel.image, initramfs, root, tests, deadline: wanted.deadline })
}

/// Returns the folder in which the kernel and the disks stay from one run to the next.
fn folder() -> Result<PathBuf, String> {
    let folder = target_directory()?.join("machine");
    std::fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    Ok(folder)
}

impl Wanted {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut wanted = Self {
            filter: None,
            programs: Vec::new(),
            users: Vec::new(),
            groups_only: false,
            of_groups: &OF_GROUPS,
            deadline: DEADLINE,
        };
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            let mut value = || left.next().cloned().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--groups" => wanted.groups_only = true,
                "--filter" => wanted.filter = Some(value()?),
                "--program" => wanted.programs.push(one_of(&PROGRAMS, value()?)?),
                "--as" => wanted.users.push(one_of(&USERS, value()?)?),
                "--minutes" => {
                    let minutes: u64 = value()?.parse().map_err(|_| "--minutes needs a number")?;
                    wanted.deadline = Duration::from_secs(minutes * 60);
                }
                other => return Err(format!("`machine` has no argument `{other}`")),
            }
        }
        Ok(wanted)
    }

    fn programs(&self) -> Vec<&str> {
        chosen(&self.programs, &PROGRAMS)
    }

    /// Returns the runs, in order.
    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for user in chosen(&self.users, &USERS) {
            for program in self.programs() {
                let filters = match &self.filter {
                    _ if program == "doctor" => vec![""],
                    Some(filter) => vec![filter.as_str()],
                    None if program == "verify" => vec![""],
                    None if ALL_OF.contains(&user) && !self.groups_only => vec![""],
                    None => self
                        .of_groups
                        .iter()
                        .filter(|(of, _)| *of == program)
                        .map(|(_, name)| *name)
                        .collect(),
                };
                let run = |filter: &str| Run {
                    program: program.to_owned(),
                    user: user.to_owned(),
                    filter: filter.to_owned(),
                };
                runs.extend(filters.into_iter().map(run));
            }
        }
        runs
    }
}

fn one_of(known: &[&str], value: String) -> Result<String, String> {
    if known.contains(&value.as_str()) {
        Ok(value)
    } else {
        Err(format!("`{value}` is none of: {}", known.join(" ")))
    }
}

fn chosen<'a>(wanted: &'a [String], all: &[&'a str]) -> Vec<&'a str> {
    if wanted.is_empty() { all.to_vec() } else { wanted.iter().map(String::as_str).collect() }
}
