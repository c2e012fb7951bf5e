//! Names of sandboxes as users write and read them: NAME or POOL/NAME.

use eyot::{Error, Result, SandboxName};

use crate::pool_options::DEFAULT_SANDBOX;

const RULE: &str = "each 1 to 41 of a-z, 0-9 and `-`, not beginning with `-`";

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
    /// `invalid`: one of them is no name. The message has the whole text.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((pool, name)) = text.split_once('/') else {
            return Ok(Self { pool: None, name: SandboxName::parse(text)? });
        };
        match (SandboxName::parse(pool), SandboxName::parse(name)) {
            (Ok(pool), Ok(name)) => Ok(Self { pool: Some(pool), name }),
            _ => Err(Error::invalid("name", format!("must be NAME or POOL/NAME, {RULE}; got `{text}`"))),
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
        assert!(NameInPool::parse("../x").unwrap_err().to_string().ends_with("got `../x`"));
    }
}
