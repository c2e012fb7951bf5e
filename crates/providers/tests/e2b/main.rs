//! The conformance suite over E2B's API: as this repository's server speaks it, with native sandboxes, and as the
//! vendor's own does. The latter needs E2B_API_KEY; without it its rules show as ignored.

#[path = "../vendor/bodies.rs"]
mod bodies;
mod bounds;
mod faults;
mod ground;
mod injected;
#[path = "../vendor/left.rs"]
mod left;
#[path = "../vendor/planned.rs"]
mod planned;
mod races;
#[path = "../vendor/tried.rs"]
mod tried;
#[path = "../vendor/mod.rs"]
mod vendor;

use eyot_providers::e2b::{E2bOptions, E2bProvider, EXCEPTIONS};
use libtest_mimic::{Arguments, Trial};

use vendor::{OverVendor, ignored, over};

fn main() {
    let arguments = Arguments::from_args();
    if !rustix::process::geteuid().is_root() {
        let reason = "E2B's sandboxes have a root, and native ones only where root makes them";
        let trials = of_vendor().into_iter().chain([ignored("stand_in", reason)]).collect();
        libtest_mimic::run(&arguments, trials).exit();
    }
    let ground = ground::Ground::new();
    let stand_in = OverVendor { provider: ground.provider(), exceptions: EXCEPTIONS, rounds: 2 };
    let mut trials = over("stand_in", stand_in);
    trials.extend(of_vendor());
    trials.extend(faults::trials().into_iter().chain(races::trials()).chain(bounds::trials()));
    let done = libtest_mimic::run(&arguments, trials);
    drop(ground);
    done.exit();
}

/// The rules over the vendor's own service.
fn of_vendor() -> Vec<Trial> {
    if std::env::var_os("E2B_API_KEY").is_none() {
        let reason = "E2B_API_KEY is not set";
        return vec![ignored("vendor", reason)];
    }
    let notes = tempfile::tempdir().expect("a folder for notes");
    let owner = format!("eyot-tests-{}", std::process::id());
    let options = E2bOptions { owner, ..E2bOptions::from_environment(notes.path()) };
    let provider = E2bProvider::new(options).expect("a provider");
    over("vendor", OverVendor { provider, exceptions: EXCEPTIONS, rounds: 1 })
}
