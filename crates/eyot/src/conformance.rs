//! The conformance suite: every rule of the contract as one case with a sentence for a name, run over a provider.
//!
//! A provider is whatever passes it. Implement [`Fixture`], and make a test target without a harness of its own
//! (`harness = false` in `Cargo.toml`, with this crate's feature `conformance`) of one line:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # struct MyFixture;
//! # impl eyot::conformance::Fixture for MyFixture {
//! #     fn provider(&self) -> Arc<dyn eyot::SandboxProvider> { unreachable!() }
//! # }
//! eyot::conformance_tests!(MyFixture);
//! ```
//!
//! `docs/writing-a-provider.md` explains the way there, and what the output means.
//!
//! It takes the arguments of every Rust test: a part of a name, `--list`, `--test-threads`. A case that needs a
//! [`Capability`] that the provider has not, or a program that the sandbox lacks, shows as ignored with the reason.
//!
//! What is held here is the contract of the handle, of [`crate::Workspace`] and of the driver. How well a sandbox is
//! isolated is not: that depends on what a provider promises.

mod beneath;
mod cancel;
mod check;
mod commit;
mod concurrency;
mod copies;
mod create;
mod deadline;
mod directories;
mod disposable;
mod dropped;
mod egress;
mod environment;
mod exec;
mod harness;
mod hooks;
mod kept;
mod lifetime;
mod limits;
mod links;
mod logs;
mod names;
mod output;
mod paths;
mod ports;
mod processes;
mod programs;
mod read;
mod remove;
mod search;
mod sizes;
mod sleep;
mod snapshots;
mod special;
mod stat;
mod stdin;
mod stream_io;
mod tar;
mod terminal;
mod tree;
mod usage;
mod watch;
mod workspace;
mod workspace_exec;
mod write;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::capabilities::Capability;
use crate::path::MAX_PATH_BYTES;
use crate::provider::SandboxProvider;
use crate::spec::SandboxSpec;

pub use disposable::ReusedSandboxes;
pub use dropped::{MAX_AWAITS, dropped_after};
pub use harness::main;

/// The part that an implementer supplies: the provider, and what an ordinary sandbox of it is made
/// from.
pub trait Fixture: Send + Sync + 'static {
    /// The provider, ready to make sandboxes. Called inside a runtime, once for every sandbox; the same provider every
    /// time, or one that sees the same sandboxes.
    fn provider(&self) -> Arc<dyn SandboxProvider>;

    /// The spec of an ordinary sandbox, quick to make: its image, say. The suite fills in names,
    /// limits and manifests. By default the default spec.
    fn spec(&self) -> SandboxSpec {
        SandboxSpec::default()
    }

    /// Returns the longest path, in bytes, that the backend takes. By default that is [`MAX_PATH_BYTES`]. A backend that
    /// puts something of its own before every path may say less: then a longer one must be `invalid`.
    fn max_path_bytes(&self) -> usize {
        MAX_PATH_BYTES
    }

    /// Returns how often each client of a case with many clients goes round. A provider that takes
    /// seconds to put a sandbox to sleep may ask for less where time is short.
    fn rounds(&self) -> usize {
        6
    }

    /// Lists the rules that the provider can't keep although it has what they need, by their names, each with the
    /// reason. They show as ignored. Keep it short, and say the same in the provider's documents.
    fn exceptions(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Removes an image that a case has made, and which nothing uses any more. By default from the images that the provider
    /// lists.
    fn remove_image<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, crate::Result<()>> {
        Box::pin(async move {
            self.provider().images(Arc::new(|_| None))?.remove(reference, true).await.map(drop)
        })
    }

    /// Returns the sandboxes that are used for one case after another, where a case needs no more
    /// than an empty workspace. By default there are none, and every case has a sandbox of its own.
    fn reused(&self) -> Option<&ReusedSandboxes> {
        None
    }
}

/// Trying one rule.
pub type Attempt = BoxFuture<'static, Result<Verdict, String>>;

/// One rule.
#[derive(Clone, Copy)]
pub struct Case {
    /// The rule, a sentence in snake case.
    pub name: &'static str,
    /// The capabilities that a provider must have for the rule to apply.
    pub needs: &'static [Capability],
    /// Tries it in sandboxes of its own, and removes them. An error says what did not hold.
    pub run: fn(Arc<dyn Fixture>) -> Attempt,
}

/// The result of trying a rule, short of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It could not be tried here, and why.
    NotHere(String),
}

/// Every rule, by subject.
pub fn cases() -> Vec<Case> {
    let subjects: Vec<fn() -> Vec<Case>> = vec![
        paths::cases,
        names::cases,
        read::cases,
        special::cases,
        write::cases,
        stream_io::cases,
        stat::cases,
        directories::cases,
        remove::cases,
        links::cases,
        beneath::cases,
        search::cases,
        tar::cases,
        workspace::cases,
        exec::cases,
        programs::cases,
        environment::cases,
        output::cases,
        stdin::cases,
        sizes::cases,
        deadline::cases,
        cancel::cases,
        tree::cases,
        concurrency::cases,
        create::cases,
        hooks::cases,
        lifetime::cases,
        sleep::cases,
        snapshots::cases,
        copies::cases,
        commit::cases,
        dropped::cases,
        processes::cases,
        logs::cases,
        terminal::cases,
        kept::cases,
        ports::cases,
        egress::cases,
        usage::cases,
        watch::cases,
        limits::cases,
        workspace_exec::cases,
    ];
    subjects.into_iter().flat_map(|cases| cases()).collect()
}

/// Makes the `main` of a test target with `harness = false` that holds every rule against a [`Fixture`].
#[macro_export]
macro_rules! conformance_tests {
    ($fixture:expr) => {
        fn main() -> ::std::process::ExitCode {
            $crate::conformance::main($fixture)
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let cases = cases();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len());
    }
}
