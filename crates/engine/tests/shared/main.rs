//! The store and the event log of several servers, in a real PostgreSQL database. Each case has a database of its own.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod events;
mod postgres;
mod runs;
mod store;

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use postgres::{Postgres, TestDatabase};

/// A case. It panics if it fails.
type Case = fn(&TestDatabase<'_>);

fn main() {
    let arguments = Arguments::from_args();
    let cases = [store::CASES, events::CASES, runs::CASES].concat();
    // A list of the tests needs no database.
    let server = if arguments.list { None } else { Postgres::start().map(Arc::new) };
    let is_there = server.is_some() || arguments.list;
    let trials: Vec<Trial> =
        cases.into_iter().map(|(name, case)| trial(name, case, server.clone(), is_there)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Before the process ends, which drops nothing.
    drop(server);
    conclusion.exit();
}

fn trial(name: &'static str, case: Case, server: Option<Arc<Postgres>>, is_there: bool) -> Trial {
    let run = move || {
        let database = server.as_ref().ok_or("there is no database")?.database();
        case(&database);
        Ok(())
    };
    Trial::test(name, run).with_ignored_flag(!is_there)
}
