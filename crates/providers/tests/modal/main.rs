//! The conformance suite over a stand-in of Modal with native sandboxes, and over the vendor's own service. The latter needs
//! MODAL_TOKEN_ID and MODAL_TOKEN_SECRET; without them its rules show as ignored.

mod faults;
mod ground;
mod interrupted;
#[path = "../vendor/left.rs"]
mod left;
mod stand_in;
#[path = "../vendor/tried.rs"]
mod tried;
#[path = "../vendor/mod.rs"]
mod vendor;

use eyot_providers::modal::{EXCEPTIONS, ModalOptions, ModalProvider};
use libtest_mimic::{Arguments, Trial};

use vendor::{OverVendor, ignored, over};

fn main() {
    let arguments = Arguments::from_args();
    if !rustix::process::geteuid().is_root() {
        let reason = "Modal's commands are root's, and native ones only where root makes them";
        let trials = of_vendor().into_iter().chain([ignored("stand_in", reason)]).collect();
        libtest_mimic::run(&arguments, trials).exit();
    }
    let ground = ground::Ground::new(0);
    let stand_in = OverVendor { provider: ground.provider(), exceptions: EXCEPTIONS, rounds: 2 };
    let mut trials = over("stand_in", stand_in);
    trials.extend(of_vendor());
    trials.extend(faults::trials());
    trials.extend(interrupted::trials());
    let done = libtest_mimic::run(&arguments, trials);
    drop(ground);
    done.exit();
}

/// The rules over the vendor's own service.
fn of_vendor() -> Vec<Trial> {
    let has_token =
        ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"].map(std::env::var_os).iter().all(Option::is_some);
    if !has_token {
        let reason = "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set";
        return vec![ignored("vendor", reason)];
    }
    let notes = tempfile::tempdir().expect("a folder for notes");
    let app = format!("eyot-tests-{}", std::process::id());
    let options = ModalOptions { app, ..ModalOptions::from_environment(notes.path()) };
    let provider = ModalProvider::new(options).expect("a provider");
    over("vendor", OverVendor { provider, exceptions: EXCEPTIONS, rounds: 1 })
}
