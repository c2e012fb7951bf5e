//! `eyot image` and `--image` against sources of images: a real registry (Debian's
//! `docker-registry` on this host's loopback), a Docker Engine, and `eyot image build-base`. The
//! tests of a missing source show as ignored, with the reason.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod access;
mod base;
mod damage;
mod engine;
mod fetched;
#[path = "../cli/machine.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod machine;
mod measured;
mod over_server;
mod pulling;
mod registry;
#[path = "../cli/server.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod server;
mod sources;

use libtest_mimic::{Arguments, Completion, Trial};

fn main() {
    let no_registry = ["docker-registry", "curl"].into_iter().find(|program| !registry::has(program));
    let no_registry = no_registry.map(|program| format!("there is no {program}"));
    let no_engine = (!engine::answers()).then(|| "no Docker Engine answers: cargo xtask engine".to_owned());
    let with_registry = [pulling::trials(), damage::trials(), access::trials(), sources::trials()];
    let with_registry = [with_registry.concat(), measured::small_trials(), over_server::trials()].concat();
    let trials = [
        listed(with_registry, no_registry.as_deref()),
        listed([engine::trials(), damage::import_trials(), over_server::plain_trials()].concat(), None),
        listed(engine::real_trials(), no_engine.as_deref()),
        listed(fetched::trials(), no_registry.as_deref().or(no_engine.as_deref())),
        listed(base::trials(), base::missing()).into_iter().map(of_soak).collect(),
        listed(measured::trials(), no_registry.as_deref()).into_iter().map(by_name).collect(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}

fn listed(cases: Vec<Case>, missing: Option<&str>) -> Vec<Trial> {
    let trial = |(name, case): Case| match missing {
        None => Trial::test(name, move || {
            case();
            Ok(())
        }),
        Some(reason) => {
            let reason = reason.to_owned();
            Trial::ignorable_test(name, move || Ok(Completion::ignored_with(reason)))
        }
    };
    cases.into_iter().map(trial).collect()
}

/// Marks a test that `cargo xtask soak images` runs.
fn of_soak(trial: Trial) -> Trial {
    trial.with_ignored_flag(true)
}

/// Marks a test that runs only if it is asked for: `--ignored`.
fn by_name(trial: Trial) -> Trial {
    trial.with_kind("measurement: --ignored --nocapture").with_ignored_flag(true)
}

/// A case and its name.
pub type Case = (&'static str, fn());
