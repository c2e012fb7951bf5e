//! Keys of providers: they are sent, and never shown.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::credentials::REDACTED;
use crate::redaction::register_secret;

/// The key of a provider. `Debug` does not show it.
///
/// ```
/// let key = eyot_agent::ApiKey::from("sk-secret");
/// assert_eq!(format!("{key:?}"), "ApiKey(<redacted>)");
/// ```
#[derive(Clone)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// Returns the key in plain text, for sending.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Registers the key as a secret.
    pub(crate) fn remember(&self) {
        register_secret(self.expose());
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self(Arc::from(key))
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(Arc::from(key))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({REDACTED})")
    }
}

impl<'de> Deserialize<'de> for ApiKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
