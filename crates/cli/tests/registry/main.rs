//! Images from outside: `eyot image pull` against a real registry, Debian's `docker-registry` on this host's loopback; and
//! `eyot image build-base`. Where something is missing the tests show as ignored, with the reason.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod access;
mod base;
mod damage;
#[path = "../cli/machine.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod machine;
mod pulling;
mod registry;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = match ["docker-registry", "curl"].into_iter().find(|program| !registry::has(program)) {
        Some("curl") => Some("there is no curl"),
        Some(_) => Some("there is no docker-registry"),
        None => None,
    };
    let cases = [pulling::trials(), damage::trials(), access::trials()].into_iter().flatten();
    let trials = cases.map(|case| trial(case, missing));
    let trials = trials.chain(base::trials().into_iter().map(|case| trial(case, base::missing())));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
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
