//! The network `egress`, tested with an internet of the test's own. This program runs itself in two
//! network namespaces with a cable between them. One is the host's side: the provider and the
//! egress programs. The other is the internet: a name server and web servers on addresses that
//! count as public, and canaries on addresses that do not. The test runs the same as root and,
//! where user namespaces allow it, as an ordinary user.

mod canaries;
mod inside;
mod internet;
mod names;
mod network;
mod packages;
mod protocols;
mod reach;
mod rules;
mod survival;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    match std::env::var(network::ROLE).as_deref() {
        Ok("internet") => internet::main(),
        Ok("network") => network::main(),
        Ok("maker") => survival::maker(),
        Ok("host") => libtest_mimic::run(&Arguments::from_args(), trials(None)).exit_code(),
        _ => start(),
    }
}

/// Continues in namespaces. If they can't be made, every test shows as ignored with the reason.
fn start() -> ExitCode {
    if Arguments::from_args().list {
        libtest_mimic::run(&Arguments::from_args(), trials(None)).exit_code()
    } else {
        match network::enter() {
            Ok(code) => code,
            Err(reason) => libtest_mimic::run(&Arguments::from_args(), trials(Some(&reason))).exit_code(),
        }
    }
}

fn trials(missing: Option<&str>) -> Vec<Trial> {
    let subjects = [
        reach::cases,
        canaries::cases,
        names::cases,
        protocols::cases,
        rules::cases,
        survival::cases,
        packages::cases,
    ];
    subjects.into_iter().flat_map(|cases| cases()).map(|case| world::trial(case, missing)).collect()
}
