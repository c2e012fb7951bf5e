//! Keys of providers: they are sent, and never shown.
//!
//! Each key that is registered is remembered here, so that a text which may have one in it (a vendor's message, a tool's
//! arguments) can be cleaned with [`redact`] before anybody reads it.

use std::borrow::Cow;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};

/// The text that stands in the place of a secret.
pub(super) const REDACTED: &str = "<redacted>";

/// The shortest secret that is searched for in texts. A shorter one, such as the `x` that a local server is given, would be
/// found in words that have nothing to do with it.
const SHORTEST_BYTES: usize = 8;

static SECRETS: RwLock<Vec<ApiKey>> = RwLock::new(Vec::new());

/// The key of a provider. `Debug` does not show it, and its memory is overwritten when it is dropped.
///
/// ```
/// let key = eyot_agent::ApiKey::from("sk-secret");
/// assert_eq!(format!("{key:?}"), "ApiKey(<redacted>)");
/// ```
#[derive(Clone)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// The key itself, to send it.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Remembers the key, so that [`redact`] finds it.
    pub(crate) fn remember(&self) {
        if self.expose().len() < SHORTEST_BYTES {
            return;
        }
        let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().all(|known| known.expose() != self.expose()) {
            secrets.push(self.clone());
            secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        }
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self(SecretString::from(key))
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(SecretString::from(key))
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

/// Replaces each secret that was registered so far. Secrets of fewer than eight bytes are left.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    let mut clean = Cow::Borrowed(text);
    for secret in secrets.iter().filter(|secret| text.contains(secret.expose())) {
        clean = Cow::Owned(clean.replace(secret.expose(), REDACTED));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_the_longest_first() {
        ApiKey::from("canary-of-secret").remember();
        ApiKey::from("canary-of-secret-longer").remember();
        ApiKey::from("short").remember();
        let clean = redact("a canary-of-secret-longer, a canary-of-secret, a short one");
        assert_eq!(clean, "a <redacted>, a <redacted>, a short one");
        assert!(matches!(redact("nothing in it"), Cow::Borrowed(_)));
    }
}
