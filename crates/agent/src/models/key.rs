//! The source of a provider's key.

use super::secret::ApiKey;
use crate::model::{ModelError, ModelErrorKind};

/// The source of a provider's key.
pub(super) enum KeySource {
    /// A key that the caller provided.
    Given(ApiKey),
    /// An environment variable, which is read when the key is needed.
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// Set if the provider does not work without the key.
        is_needed: bool,
    },
    /// No key.
    None,
}

impl KeySource {
    /// The key that a vendor's own server takes from the environment when none was given.
    pub(super) fn of_environment(provider: &str) -> Self {
        match provider {
            "anthropic" => Self::Variable { name: "ANTHROPIC_API_KEY", is_needed: false },
            "openai" => Self::Variable { name: "OPENAI_API_KEY", is_needed: false },
            _ => Self::None,
        }
    }

    /// Returns the key. [`ModelErrorKind::Unauthorized`]: the key is required and missing.
    pub(super) fn read(&self, provider: &str) -> Result<Option<ApiKey>, ModelError> {
        self.read_from(provider, |name| std::env::var(name).ok())
    }

    fn read_from(
        &self,
        provider: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<ApiKey>, ModelError> {
        let (name, is_needed) = match self {
            Self::Given(key) => return Ok(Some(key.clone())),
            Self::None => return Ok(None),
            Self::Variable { name, is_needed } => (*name, *is_needed),
        };
        match variable(name).filter(|key| !key.trim().is_empty()) {
            Some(key) => {
                let key = ApiKey::from(key.trim());
                key.remember();
                Ok(Some(key))
            }
            None if is_needed => {
                let remedy = format!("set {name}, or configure one");
                let message = format!("the provider `{provider}` has no key: {remedy}");
                Err(ModelError::new(ModelErrorKind::Unauthorized, message))
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_missing_or_blank_is_told_with_what_to_do() {
        let source = KeySource::Variable { name: "ANTHROPIC_API_KEY", is_needed: true };
        for value in [None, Some(" ".to_owned())] {
            let failure = source.read_from("anthropic", |_| value.clone()).err().unwrap();
            let said = "the provider `anthropic` has no key: set ANTHROPIC_API_KEY, or configure one";
            assert_eq!((failure.kind, failure.message.as_str()), (ModelErrorKind::Unauthorized, said));
        }
        let key = source.read_from("anthropic", |name| Some(format!("{name}-of-a-test")));
        assert!(key.unwrap().is_some());
        let optional = KeySource::Variable { name: "ANTHROPIC_API_KEY", is_needed: false };
        assert!(optional.read_from("anthropic", |_| None).unwrap().is_none());
    }
}
