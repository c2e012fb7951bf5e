//! The network `egress` of a live sandbox: its rules, and what was decided by them.

use std::sync::Arc;

use eyot_egress::{EgressDecision, EgressRules};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::task::AbortHandle;

use super::Sandbox;
use crate::capabilities::Capability;
use crate::created::SandboxInfo;
use crate::driver::SandboxDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::observer::{EgressDecisionEvent, Observer, SandboxEvent};
use crate::spec::{NetworkMode, check_rules};

impl Sandbox {
    /// Reads the rules of the network `egress` that hold now. `invalid` for a sandbox with another
    /// network.
    pub async fn egress_rules(&self) -> Result<EgressRules> {
        self.check_egress("egress_rules")?;
        self.driver().egress_rules().await.map_err(self.failed("read the rules of network", "egress"))
    }

    /// Replaces the rules, for everybody who uses the sandbox and as long as it lives. They hold for every connection
    /// that is made after this returns; connections that they do not allow are closed.
    pub async fn set_egress_rules(&self, rules: &EgressRules) -> Result<()> {
        self.check_egress("set_egress_rules")?;
        check_rules(rules)?;
        self.driver().set_egress_rules(rules).await.map_err(self.failed("set the rules of network", "egress"))
    }

    /// Streams the decisions about attempts to leave, oldest first: the `last` of those that are
    /// remembered (1,000 at most), and with `follow` what comes, until the stream is dropped or the
    /// sandbox ends.
    pub async fn egress_decisions(
        &self,
        last: usize,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>> {
        self.check_egress("egress_decisions")?;
        let decisions = self.driver().egress_decisions(last, follow).await;
        decisions.map_err(self.failed("read the decisions of network", "egress"))
    }

    fn check_egress(&self, operation: &str) -> Result<()> {
        self.check_alive()?;
        self.require(Capability::NetworkEgress, operation, &[])?;
        match self.info().spec.network {
            NetworkMode::Egress => Ok(()),
            other => {
                let word = serde_json::to_value(other).unwrap_or_default();
                let message = format!(
                    "sandbox `{}` has the network {word}, which has no rules and records no decisions",
                    self.name()
                );
                Err(Error::new(ErrorKind::Invalid, message)
                    .with_hint("make one with the network `egress`: eyot create --net egress"))
            }
        }
    }
}

/// Tells an observer of decisions. Dropping it ends that.
pub(super) struct DecisionFollower(AbortHandle);

impl Drop for DecisionFollower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl DecisionFollower {
    /// Tells `observer` of decisions, beginning with the `last` that are remembered; where there can be any.
    pub(super) fn start(
        info: &SandboxInfo,
        driver: &Arc<dyn SandboxDriver>,
        observer: Option<&Arc<dyn Observer>>,
        event: &SandboxEvent,
        last: usize,
    ) -> Option<Self> {
        let has_decisions =
            info.spec.network == NetworkMode::Egress && driver.capabilities().has(Capability::NetworkEgress);
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| has_decisions)?;
        let (driver, observer, event) = (Arc::clone(driver), Arc::clone(observer?), event.clone());
        Some(Self(runtime.spawn(follow(driver, observer, event, last)).abort_handle()))
    }
}

async fn follow(
    driver: Arc<dyn SandboxDriver>,
    observer: Arc<dyn Observer>,
    sandbox: SandboxEvent,
    last: usize,
) {
    let mut decisions = match driver.egress_decisions(last, true).await {
        Ok(decisions) => decisions,
        Err(error) => {
            tracing::warn!(%error, sandbox = %sandbox.sandbox_id, "an observer will hear of no decisions");
            return;
        }
    };
    // The sandbox's end ends it, by an error or without one.
    while let Some(Ok(decision)) = decisions.next().await {
        observer.egress_decided(EgressDecisionEvent { sandbox: sandbox.clone(), decision }).await;
    }
}
