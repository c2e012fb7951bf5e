//! The conformance suite and the faults of a cluster: over a stand-in of an API server, whose Pods are processes
//! of this machine with the real guest, and over the real cluster of `cargo xtask cluster`, if there is one. Making
//! the namespaces of Pods takes root; without it everything shows as ignored.

mod cluster;
mod faults;
mod stand_in;
#[path = "../vendor/tried.rs"]
mod tried;
#[path = "../vendor/mod.rs"]
mod vendor;

use libtest_mimic::Arguments;

use stand_in::StandIn;
use vendor::{OverVendor, ignored, over};

fn main() {
    let arguments = Arguments::from_args();
    if !rustix::process::geteuid().is_root() {
        let reason = "only root can make the namespaces of Pods";
        libtest_mimic::run(&arguments, vec![ignored("stand_in", reason)]).exit();
    }
    let real = cluster::Cluster::find();
    real.iter().filter(|_| !arguments.list).for_each(|real| real.prepare());
    let cluster = StandIn::new();
    let stand_in = OverVendor { provider: cluster.provider(), exceptions: &[], rounds: 2 };
    let mut trials = over("stand_in", stand_in);
    trials.extend(faults::trials().into_iter().chain(cluster::trials(real.as_ref())));
    let done = libtest_mimic::run(&arguments, trials);
    real.iter().for_each(|real| real.clear());
    drop((cluster, real));
    done.exit();
}
