//! A secret: it is sent, and shown nowhere.

use std::fmt;

use reqwest::header::HeaderValue;

/// A key or a token. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret behind a word, as a header may want it.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn with_prefix(&self, prefix: &str) -> Self {
        Self(format!("{prefix}{}", self.0))
    }

    /// Returns the value of a header that carries it; `None`: no header can.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("e2b_0123");
        assert!(!format!("{secret:?} {:?}", secret.header().unwrap()).contains("0123"));
    }
}
