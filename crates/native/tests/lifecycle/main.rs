//! Sandboxes over time. They outlive their maker, their deadlines fire without it, and nothing is
//! left behind, whichever process is killed at any moment. This program is also the maker that is
//! killed: see [`maker`].

mod awake_snapshots;
mod damaged;
mod deadlines;
mod disk_snapshots;
mod disks;
mod groups;
mod guest_program;
mod guest_rights;
#[path = "../harness/mod.rs"]
mod harness;
mod id_ranges;
mod images;
mod later_users;
mod listing;
mod maker;
mod many;
mod outliving;
mod passed_files;
mod sleeping;
mod slots;
mod state;
mod stopped;
mod stored_images;
mod workspaces;

use libtest_mimic::Arguments;

use harness::{ensure, of_root, trial};

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("maker") {
        return maker::main(arguments);
    }
    let trials = [
        groups::trials(),
        guest_program::trials(),
        guest_rights::trials(),
        disk_snapshots::trials(),
        disks::trials(),
        outliving::trials(),
        passed_files::trials(),
        sleeping::trials(),
        slots::trials(),
        awake_snapshots::trials(),
        damaged::trials(),
        deadlines::trials(),
        stopped::trials(),
        many::trials(),
        listing::trials(),
        id_ranges::trials(),
        workspaces::trials(),
        images::trials(),
        later_users::trials(),
        stored_images::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}
