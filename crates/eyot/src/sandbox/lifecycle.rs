//! The deadlines of a live sandbox.

use super::Sandbox;
use crate::error::{Error, Result};
use crate::now::now_ms;
use crate::spec::{Lifecycle, check_lifecycle};

impl Sandbox {
    /// Replaces its deadlines and what happens when it is idle, for everybody who uses the sandbox and as long as it lives.
    /// The ttl still counts from the create; one that has passed already is `invalid`. The idle timeout counts from this
    /// call on. Providers without [`Capability::ChangeDeadlines`](crate::Capability) say `unsupported`.
    pub async fn set_lifecycle(&self, lifecycle: &Lifecycle) -> Result<()> {
        check_lifecycle(lifecycle)?;
        self.refuse_passed_ttl(lifecycle)?;
        self.driver().set_lifecycle(lifecycle).await.map_err(self.failed("set", "lifecycle"))
    }

    /// Refuses a ttl that has passed: a caller who wants the sandbox gone destroys it.
    fn refuse_passed_ttl(&self, lifecycle: &Lifecycle) -> Result<()> {
        let Some(ttl_ms) = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy) else { return Ok(()) };
        let lived_ms = u64::try_from(now_ms().saturating_sub(self.info().created_ms)).unwrap_or(0);
        if ttl_ms > lived_ms {
            Ok(())
        } else {
            let reason = format!("has passed already: it counts from the create, {} s ago", lived_ms / 1000);
            Err(Error::invalid("lifecycle.ttl_ms", reason)
                .with_hint("add what has passed, or destroy the sandbox"))
        }
    }
}
