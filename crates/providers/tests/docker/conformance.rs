//! The conformance suite, over images and users that differ.

use std::sync::Arc;

use eyot::conformance::{Case, Fixture, Verdict, cases};
use eyot::{SandboxProvider, SandboxSpec, Security};
use eyot_providers::docker::DockerProvider;
use libtest_mimic::{Completion, Trial};

use crate::engine::{BUSYBOX, DEBIAN, TestEngine, block_on, spec};

struct Variant {
    provider: Arc<DockerProvider>,
    spec: SandboxSpec,
}

impl Fixture for Variant {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    fn spec(&self) -> SandboxSpec {
        self.spec.clone()
    }
}

/// Every rule over every variant.
pub fn trials(engine: &TestEngine) -> Vec<Trial> {
    let user = || SandboxSpec { user: Some("1000:1000".to_owned()), ..spec(DEBIAN) };
    let readonly = || {
        let security = Security { readonly_rootfs: true, ..Security::default() };
        SandboxSpec { security, ..user() }
    };
    let variants = [
        ("debian_as_a_user", DEBIAN, user(), Tier::Always),
        ("debian", DEBIAN, spec(DEBIAN), Tier::Slow),
        ("busybox", BUSYBOX, spec(BUSYBOX), Tier::Slow),
        ("debian_read_only", DEBIAN, readonly(), Tier::Slow),
    ];
    let all = variants.into_iter().map(|(name, image, spec, tier)| over(engine, name, image, &spec, tier));
    all.flatten().collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    Always,
    Slow,
}

/// Returns whether all variants are wanted. A container costs a third of a second, so each variant takes minutes; only
/// `cargo xtask soak` runs all of them.
fn wants_slow() -> bool {
    std::env::var("EYOT_SLOW").is_ok_and(|value| value == "1")
}

fn over(
    engine: &TestEngine,
    variant: &str,
    image: &'static str,
    spec: &SandboxSpec,
    tier: Tier,
) -> Vec<Trial> {
    let fixture: Arc<dyn Fixture> =
        Arc::new(Variant { provider: engine.provider.clone(), spec: spec.clone() });
    let trial = |case: Case| {
        let fixture = Arc::clone(&fixture);
        engine.trial(format!("{variant}::{}", case.name), image, move || {
            if tier == Tier::Slow && !wants_slow() {
                return Ok(Completion::ignored_with("cargo xtask soak docker runs it"));
            }
            match block_on(case.attempt(fixture)) {
                Ok(Verdict::Holds) => Ok(Completion::Completed),
                Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
                Err(broken) => Err(broken.into()),
            }
        })
    };
    cases().into_iter().map(trial).collect()
}
