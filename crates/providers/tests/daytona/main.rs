//! The conformance suite over a stand-in of Daytona with native sandboxes, and over the vendor's own service. The latter needs
//! DAYTONA_API_KEY; without it its rules show as ignored.

mod faults;
mod ground;
#[path = "../vendor/left.rs"]
mod left;
#[allow(dead_code, reason = "shared with the other tests of the provider")]
mod stand_in;
#[path = "../vendor/tried.rs"]
mod tried;
#[path = "../vendor/mod.rs"]
mod vendor;

use eyot_providers::daytona::{DaytonaOptions, DaytonaProvider, EXCEPTIONS};
use libtest_mimic::{Arguments, Trial};

use vendor::{OverVendor, ignored, over};

fn main() {
    let arguments = Arguments::from_args();
    if !rustix::process::geteuid().is_root() {
        let reason = "the stand-in's commands are root's, and native ones only where root makes them";
        let trials = of_vendor().into_iter().chain([ignored("stand_in", reason)]).collect();
        libtest_mimic::run(&arguments, trials).exit();
    }
    let ground = ground::Ground::new();
    let stand_in = OverVendor { provider: ground.provider(), exceptions: EXCEPTIONS, rounds: 2 };
    let mut trials = over("stand_in", stand_in);
    trials.extend(of_vendor());
    trials.extend(faults::trials());
    let done = libtest_mimic::run(&arguments, trials);
    drop(ground);
    done.exit();
}

/// The rules over the vendor's own service.
fn of_vendor() -> Vec<Trial> {
    if std::env::var_os("DAYTONA_API_KEY").is_none() {
        let reason = "DAYTONA_API_KEY is not set";
        return vec![ignored("vendor", reason)];
    }
    let notes = tempfile::tempdir().expect("a folder for notes").keep();
    let owner = format!("eyot-tests-{}", std::process::id());
    let options = DaytonaOptions { owner, ..DaytonaOptions::from_environment(&notes) };
    let provider = DaytonaProvider::new(options).expect("a provider");
    over("vendor", OverVendor { provider, exceptions: EXCEPTIONS, rounds: 1 })
}
