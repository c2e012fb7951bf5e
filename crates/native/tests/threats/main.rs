//! The threats: a process inside a native sandbox tries the forbidden thing, and what it got is compared with
//! what it should have got. Each row of the threat table (K: kernel and namespaces, F: files, E: commands)
//! has at least one case that is named after it.
//!
//! This program is also the attacker. Every stage has it inside, read-only, and a case runs it there as
//! `threats probe <name>`: it makes the raw system calls and prints one fact a line. It runs alike under root
//! (where a sandbox has a range of ids, and a root of its own inside) and under an ordinary user (who is
//! mapped alone); what differs is decided by who runs it.

mod check;
mod facts;
mod open_holes;
mod probe;
mod sys;
mod world;

mod arguments;
mod bombs;
mod calls;
mod cancel;
mod cgroups;
mod crowd;
mod deadlines;
mod descriptors;
mod fail_closed;
mod flood;
mod guest;
mod host_services;
mod limits;
mod lingering;
mod links;
mod masked;
mod mounts;
mod names;
mod namespaces;
mod search;
mod setuid;
mod siblings;
mod sizes;
mod sockets;
mod special;
mod sudden_death;
mod tar;
mod terminal;
mod writers;

use std::process::ExitCode;

use check::Case;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("probe") => probe::main(&arguments[2..]),
        _ => world::run(cases()),
    }
}

fn cases() -> Vec<Case> {
    let subjects = [
        namespaces::cases,
        mounts::cases,
        sockets::cases,
        calls::cases,
        terminal::cases,
        guest::cases,
        descriptors::cases,
        masked::cases,
        cgroups::cases,
        bombs::cases,
        limits::cases,
        setuid::cases,
        lingering::cases,
        host_services::cases,
        siblings::cases,
        fail_closed::cases,
        links::cases,
        special::cases,
        names::cases,
        tar::cases,
        sizes::cases,
        search::cases,
        writers::cases,
        flood::cases,
        deadlines::cases,
        cancel::cases,
        arguments::cases,
        sudden_death::cases,
        crowd::cases,
    ];
    subjects.into_iter().flat_map(|cases| cases()).collect()
}
