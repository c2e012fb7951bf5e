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
        ("debian", DEBIAN, spec(DEBIAN)),
        ("busybox", BUSYBOX, spec(BUSYBOX)),
        ("debian_as_a_user", DEBIAN, user()),
        ("debian_read_only", DEBIAN, readonly()),
    ];
    variants.into_iter().flat_map(|(name, image, spec)| over(engine, name, image, &spec)).collect()
}

fn over(engine: &TestEngine, variant: &str, image: &'static str, spec: &SandboxSpec) -> Vec<Trial> {
    let fixture: Arc<dyn Fixture> =
        Arc::new(Variant { provider: engine.provider.clone(), spec: spec.clone() });
    let trial = |case: Case| {
        let fixture = Arc::clone(&fixture);
        engine.trial(format!("{variant}::{}", case.name), image, move || {
            match block_on(case.attempt(fixture)) {
                Ok(Verdict::Holds) => Ok(Completion::Completed),
                Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
                Err(broken) => Err(broken.into()),
            }
        })
    };
    cases().into_iter().map(trial).collect()
}
