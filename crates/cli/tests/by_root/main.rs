//! The real program in what only root can do or stage. For an ordinary user the tests show as ignored with that reason.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod cloudflare;
#[path = "../../../providers/tests/cloudflare/stand_in/mod.rs"]
#[allow(dead_code, reason = "shared with the tests of the provider")]
mod cloudflare_stand_in;
mod daytona;
#[path = "../../../providers/tests/daytona/stand_in/mod.rs"]
#[allow(dead_code, reason = "shared with the tests of the provider")]
mod daytona_stand_in;
mod disks;
mod e2b;
#[path = "../../../providers/tests/vendor/left.rs"]
mod left;
#[path = "../cli/machine.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod machine;
mod modal;
#[path = "../../../providers/tests/modal/stand_in/mod.rs"]
#[allow(dead_code, reason = "shared with the tests of the provider")]
mod modal_stand_in;
#[path = "../cli/server.rs"]
#[allow(dead_code, reason = "shared with the other tests of the program")]
mod server;
mod slots;
mod state_folder;
mod vendor_rules;

use libtest_mimic::{Arguments, Trial};

/// A case and its name.
pub type Case = (&'static str, fn());

fn main() {
    let needs = [
        (disks::trials(), "only root makes disks"),
        (e2b::trials(), "only root has native sandboxes that are as E2B's"),
        (cloudflare::trials(), "only root has native sandboxes that are as Cloudflare's"),
        (modal::trials(), "only root has native sandboxes that are as Modal's"),
        (daytona::trials(), "only root has native sandboxes that are as the stand-in of Daytona has them"),
        (slots::trials(), "only root has slots"),
        (state_folder::trials(), "only root gives files to other users"),
    ];
    let trials =
        needs.into_iter().flat_map(|(cases, reason)| cases.into_iter().map(move |case| trial(case, reason)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn trial((name, case): Case, reason: &str) -> Trial {
    if rustix::process::geteuid().is_root() {
        return Trial::test(name, move || {
            case();
            Ok(())
        });
    }
    Trial::test(name, || Ok(())).with_kind(reason).with_ignored_flag(true)
}
