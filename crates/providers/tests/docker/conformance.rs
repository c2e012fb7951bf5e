//! The conformance suite over several images and users.

use std::sync::Arc;

use eyot::conformance::{Case, Fixture, ReusedSandboxes, Verdict, cases};
use eyot::{Capability, SandboxProvider, SandboxSpec, Security};
use eyot_providers::docker::DockerProvider;
use futures_util::future::BoxFuture;
use libtest_mimic::{Completion, Trial};

use crate::check::docker;
use crate::engine::{BUSYBOX, DEBIAN, TestEngine, block_on, spec};

struct Variant {
    provider: Arc<DockerProvider>,
    spec: SandboxSpec,
    rounds: usize,
    reused: Option<Arc<ReusedSandboxes>>,
}

impl Fixture for Variant {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    fn spec(&self) -> SandboxSpec {
        self.spec.clone()
    }

    fn rounds(&self) -> usize {
        self.rounds
    }

    fn remove_image<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, eyot::Result<()>> {
        // Where a sandbox is still over it, it loses its name alone.
        let removed = docker(&["rmi", "-f", reference]);
        let failed =
            |error| eyot::Error::new(eyot::ErrorKind::Internal, format!("remove an image: {error:?}"));
        Box::pin(async move { removed.map(drop).map_err(failed) })
    }

    fn reused(&self) -> Option<&ReusedSandboxes> {
        self.reused.as_deref()
    }
}

/// Runs every rule over one variant, and over all of them for `cargo xtask soak docker`. A
/// container takes a third of a second, so each variant takes minutes. The soak makes one for every
/// case; else those that are `reused` serve the cases that need no more than a workspace.
pub fn trials(engine: &TestEngine, reused: &Arc<ReusedSandboxes>) -> Vec<Trial> {
    let user = || SandboxSpec { user: Some("1000:1000".to_owned()), ..spec(DEBIAN) };
    let readonly = || {
        let security = Security { readonly_rootfs: true, ..Security::default() };
        SandboxSpec { security, ..user() }
    };
    let variants = [
        ("soak::debian_as_a_user", DEBIAN, user()),
        ("soak::debian", DEBIAN, spec(DEBIAN)),
        ("soak::busybox", BUSYBOX, spec(BUSYBOX)),
        ("soak::debian_read_only", DEBIAN, readonly()),
    ];
    let variant = |spec, rounds, reused| Variant { provider: engine.provider.clone(), spec, rounds, reused };
    let whole = variants
        .into_iter()
        .flat_map(|(name, image, spec)| over(engine, name, image, variant(spec, ROUNDS_OF_SOAK, None)));
    let whole = whole.map(|trial| trial.with_ignored_flag(true));
    let short = variant(user(), ROUNDS, Some(Arc::clone(reused)));
    over(engine, "debian_as_a_user", DEBIAN, short).into_iter().chain(whole).collect()
}

/// The number of rounds of each client in a case with many. Each round puts containers to sleep,
/// which takes seconds.
const ROUNDS: usize = 2;
const ROUNDS_OF_SOAK: usize = 6;

fn over(engine: &TestEngine, name: &str, image: &'static str, variant: Variant) -> Vec<Trial> {
    let fixture: Arc<dyn Fixture> = Arc::new(variant);
    let trial = |case: Case| {
        let fixture = Arc::clone(&fixture);
        if fixture.spec().security.readonly_rootfs && case.needs.contains(&Capability::Snapshots) {
            let reason = "a sandbox with a read-only root has its files in volumes, which no snapshot has";
            return Trial::ignorable_test(format!("{name}::{}", case.name), move || {
                Ok(Completion::ignored_with(reason))
            });
        }
        engine.trial(format!("{name}::{}", case.name), image, move || match block_on(case.attempt(fixture)) {
            Ok(Verdict::Holds) => Ok(Completion::Completed),
            Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
            Err(broken) => Err(broken.into()),
        })
    };
    cases().into_iter().map(trial).collect()
}
