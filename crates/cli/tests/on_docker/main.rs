//! The real program with `--provider docker`, against the Engine that answers. Without one, or
//! without the images that `cargo xtask engine` makes, the tests show as ignored with that reason.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod bench;
mod commands;
#[path = "../cli/machine.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod machine;
mod mixed;
mod refusals;

use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Trial};

/// Debian with bash and Python.
pub const IMAGE: &str = "eyot-test-debian:1";

fn main() {
    let missing = missing();
    let needs_engine = commands::trials().into_iter().chain(mixed::trials()).chain(bench::trials());
    let trials = needs_engine.map(|case| trial(case, missing));
    let trials = trials.chain(refusals::trials().into_iter().map(|case| trial(case, None)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

/// Returns the reason why the tests cannot run here, if there is one.
fn missing() -> Option<&'static str> {
    let says = |arguments: &[&str]| {
        let asked =
            Command::new("docker").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if !says(&["version"]) {
        return Some("no Docker Engine answers: cargo xtask engine");
    }
    let has_image = says(&["image", "inspect", IMAGE]);
    (!has_image).then_some("the Engine lacks the tests' image: cargo xtask engine")
}

fn trial((name, case): Case, missing: Option<&str>) -> Trial {
    match missing {
        Some(reason) => Trial::test(name, || Ok(())).with_kind(reason).with_ignored_flag(true),
        None => Trial::test(name, move || {
            case();
            Ok(())
        }),
    }
}

/// A case and its name.
pub type Case = (&'static str, fn());

/// Runs `eyot` on Docker with these arguments, on a test's machine.
pub fn on_docker(machine: &machine::Machine, arguments: &[&str]) -> machine::Ran {
    let mut command = machine.command(arguments);
    command.env("EYOT_PROVIDER", "docker").env("EYOT_IMAGE", IMAGE);
    if let Some(host) = std::env::var_os("DOCKER_HOST") {
        command.env("DOCKER_HOST", host);
    }
    machine::Ran::from(command.output().unwrap())
}

/// A sandbox for one test, on the shared Engine. Dropping it removes the sandbox.
pub struct Boxed {
    /// The test's machine.
    pub machine: machine::Machine,
    /// The sandbox's name.
    pub name: String,
}

impl Boxed {
    /// Creates a sandbox with these flags.
    pub fn new(flags: &[&str]) -> Self {
        let (machine, name) = (machine::Machine::new(), format!("cli-{}", uuid::Uuid::now_v7().simple()));
        let made = Self { machine, name };
        let name = made.name.clone();
        let mut arguments = vec!["create", "--name", &name];
        arguments.extend(flags);
        assert_eq!(made.run(&arguments).success(), format!("{name}\n"));
        made
    }

    /// Runs `eyot` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> machine::Ran {
        on_docker(&self.machine, arguments)
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        let removed = self.run(&["rm", "--force", &self.name]);
        if !std::thread::panicking() {
            removed.success();
        }
    }
}
