//! The answer to the question whether a provider can be used on this machine.

use std::future::Future;
use std::pin::Pin;

use serde::Serialize;

/// A look at this machine.
pub type CheckFuture = Pin<Box<dyn Future<Output = ProviderCheck> + Send>>;

/// The result of a look at this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderCheck {
    /// Sandboxes can be made here.
    pub usable: bool,
    /// The finding, or the reason why sandboxes can't be made: a sentence in lower case.
    pub why: String,
    /// The name of the known cause why not.
    pub cause: Option<&'static str>,
    /// The way to make it usable.
    pub fix: Option<String>,
    /// The protections that are weaker here than elsewhere, a sentence each.
    pub weaker: Vec<String>,
}

impl ProviderCheck {
    /// Makes the answer that sandboxes can be made.
    pub fn usable(why: impl Into<String>) -> Self {
        Self { usable: true, why: why.into(), fix: None, weaker: Vec::new(), cause: None }
    }

    /// Makes the answer that an error keeps sandboxes from being made. Its hint is the fix.
    pub fn unusable(error: &eyot::Error) -> Self {
        let fix = error.hint().map(str::to_owned);
        Self { usable: false, why: error.to_string(), fix, weaker: Vec::new(), cause: None }
    }
}
