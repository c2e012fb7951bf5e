//! The threats: a process inside a native sandbox tries the forbidden thing, and what it got is
//! compared with what it should have got. Each row of the threat table (K: kernel and namespaces,
//! F: files, E: commands, N: network) has at least one case that is named after it.
//!
//! The program that runs the cases is also the attacker. Every stage has it inside, read-only, and
//! a case runs it there as `threats probe <name>`: it makes the raw system calls and prints one
//! fact a line. So whoever runs cases hands the arguments behind the word `probe` to [`attack`]. It
//! runs alike under root (where a sandbox has a range of ids, and a root of its own inside) and
//! under an ordinary user (who is mapped alone); what differs is decided by who runs it.
//!
//! Two run them: the test target `threats`, and `eyot verify` on the user's own host.

mod check;
mod facts;
mod probe;
mod rows;
mod sys;
mod world;

mod arguments;
mod bombs;
mod calls;
mod cancel;
mod cgroups;
mod counters;
mod crowd;
mod deadlines;
mod descriptors;
mod fail_closed;
mod flood;
mod guest;
mod host_services;
mod inodes;
mod limits;
mod lingering;
mod links;
mod masked;
mod mounts;
mod names;
mod namespaces;
mod owners;
mod search;
mod setuid;
mod siblings;
mod sizes;
mod sockets;
mod special;
mod sudden_death;
mod tar;
mod terminal;
mod watching;
mod writers;

pub use check::{Case, Verdict, want_slow};
pub use probe::main as attack;
pub use rows::{ROWS, Row, row_of};
pub use world::World;

/// Every case, by subject. Those of one row of the threat table need not stand together.
pub fn cases() -> Vec<Case> {
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
        counters::cases,
        setuid::cases,
        owners::cases,
        lingering::cases,
        host_services::cases,
        inodes::cases,
        siblings::cases,
        fail_closed::cases,
        links::cases,
        special::cases,
        names::cases,
        tar::cases,
        sizes::cases,
        search::cases,
        watching::cases,
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
