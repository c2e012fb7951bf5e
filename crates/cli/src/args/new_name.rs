//! The name of a new sandbox, as a user types it.

use eyot::SandboxName;

/// The name of a new sandbox: NAME or POOL/NAME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewName {
    /// The pool, if it was named.
    pub pool: Option<SandboxName>,
    /// The name in the pool.
    pub name: SandboxName,
}

impl NewName {
    /// Parses NAME or POOL/NAME.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parse = |text: &str| SandboxName::parse(text).map_err(|error| error.to_string());
        match text.split_once('/') {
            None => Ok(Self { pool: None, name: parse(text)? }),
            Some((pool, name)) => Ok(Self { pool: Some(parse(pool)?), name: parse(name)? }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_pool_or_none() {
        let shown = |text: &str| {
            NewName::parse(text).map(|new| (new.pool.map(|pool| pool.to_string()), new.name.to_string()))
        };
        assert_eq!(shown("dev"), Ok((None, "dev".to_owned())));
        assert_eq!(shown("team/dev"), Ok((Some("team".to_owned()), "dev".to_owned())));
        for wrong in ["", "/dev", "team/", "team/dev/x", "Team/dev"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }
}
