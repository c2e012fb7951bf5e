//! Names of sandboxes as users write and read them: NAME or POOL/NAME.

use eyot::{Result, SandboxName};

use crate::pool_options::DEFAULT_SANDBOX;

/// The name of a sandbox, with its pool or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameInPool {
    /// The pool, if it was named.
    pub pool: Option<SandboxName>,
    /// The name in the pool.
    pub name: SandboxName,
}

impl NameInPool {
    /// Parses NAME or POOL/NAME.
    ///
    /// # Errors
    /// `invalid`: one of them is no name.
    pub fn parse(text: &str) -> Result<Self> {
        match text.split_once('/') {
            None => Ok(Self { pool: None, name: SandboxName::parse(text)? }),
            Some((pool, name)) => {
                Ok(Self { pool: Some(SandboxName::parse(pool)?), name: SandboxName::parse(name)? })
            }
        }
    }
}

/// Returns the name of a sandbox as lists show it: NAME in the pool `default`, else POOL/NAME.
pub fn shown_name(pool: &SandboxName, name: &SandboxName) -> String {
    if pool.as_str() == DEFAULT_SANDBOX { name.to_string() } else { format!("{pool}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_pool_or_none() {
        let parsed = |text: &str| {
            let named = NameInPool::parse(text).ok()?;
            Some((named.pool.map(|pool| pool.to_string()), named.name.to_string()))
        };
        assert_eq!(parsed("dev"), Some((None, "dev".to_owned())));
        assert_eq!(parsed("team/dev"), Some((Some("team".to_owned()), "dev".to_owned())));
        for wrong in ["", "/dev", "team/", "team/dev/x", "Team/dev"] {
            assert!(parsed(wrong).is_none(), "{wrong}");
        }
    }
}
