//! The conformance suite over the bridge's wire: as a stand-in speaks it, whose containers are native sandboxes, and as the
//! vendor's own does. The latter needs CLOUDFLARE_SANDBOX_WORKER_URL; without it its rules show as ignored.

#[path = "../vendor/bodies.rs"]
mod bodies;
mod faults;
mod ground;
mod injected;
#[path = "../vendor/left.rs"]
mod left;
mod leftovers;
#[path = "../vendor/planned.rs"]
mod planned;
#[allow(dead_code, reason = "shared with the other tests of the provider")]
mod stand_in;
#[path = "../vendor/tried.rs"]
mod tried;
#[path = "../vendor/mod.rs"]
mod vendor;

use eyot_providers::cloudflare::{CloudflareOptions, CloudflareProvider, EXCEPTIONS};
use libtest_mimic::{Arguments, Trial};

use vendor::{OverVendor, ignored, over};

fn main() {
    let arguments = Arguments::from_args();
    let ground = ground::Ground::new();
    let stand_in = OverVendor { provider: ground.provider(), exceptions: EXCEPTIONS, rounds: 2 };
    let mut trials = over("stand_in", stand_in);
    trials.extend(of_vendor().into_iter().chain(faults::trials()).chain(leftovers::trials()));
    let done = libtest_mimic::run(&arguments, trials);
    drop(ground);
    done.exit();
}

/// The rules over the vendor's own service.
fn of_vendor() -> Vec<Trial> {
    if std::env::var_os("CLOUDFLARE_SANDBOX_WORKER_URL").is_none() {
        let reason = "CLOUDFLARE_SANDBOX_WORKER_URL is not set";
        return vec![ignored("vendor", reason)];
    }
    let records = tempfile::tempdir().expect("a folder for records").keep();
    let provider =
        CloudflareProvider::new(CloudflareOptions::from_environment(&records)).expect("a provider");
    over("vendor", OverVendor { provider, exceptions: EXCEPTIONS, rounds: 1 })
}
