//! `eyot image pull` against a real registry: Debian's `docker-registry` on this host's loopback. Where that is missing the
//! tests show as ignored, with the reason.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod access;
mod damage;
#[path = "../cli/machine.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod machine;
mod pulling;
mod registry;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = ["docker-registry", "curl"].into_iter().find(|program| !registry::has(program));
    let trials = [pulling::trials(), damage::trials(), access::trials()].into_iter().flatten();
    let trials = trials.map(|(name, case)| match missing {
        None => Trial::test(name, move || {
            case();
            Ok(())
        }),
        Some(program) => {
            Trial::test(name, || Ok(())).with_kind(format!("there is no {program}")).with_ignored_flag(true)
        }
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

/// A case and its name.
pub type Case = (&'static str, fn());
