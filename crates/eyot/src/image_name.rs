//! Names of images: `node:22` and `docker.io/library/node:22` are the same.

use std::fmt;

use crate::error::{Error, Result};

mod grammar;

/// A reference, written out in full.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName(String);

impl ImageName {
    /// Parses `[registry/]repository[:tag][@digest]`. The default tag is `latest`, unless there is
    /// a digest; the default registry is Docker's.
    ///
    /// # Errors
    /// `Invalid` for text that is no reference.
    pub fn parse(text: &str) -> Result<Self> {
        grammar::in_full(text).map(Self).ok_or_else(|| {
            Error::invalid("image", format!("is not an image reference: `{text}`")).with_hint(
                "a reference looks like `node:22`, `registry.example/team/app:1.2` or `name@sha256:…`; names have no \
                 capital letters",
            )
        })
    }

    /// Parses the name of an image that is to be made of a snapshot. It has no digest, which nobody can choose, and is not
    /// `host`, which are a host's own programs where sandboxes are native.
    ///
    /// # Errors
    /// `Invalid`, also for text that is no reference.
    pub fn parse_new(text: &str) -> Result<Self> {
        let refused = |reason: &str| Err(Error::invalid("reference", reason.to_owned()).context("commit"));
        if text == "host" {
            return refused("is `host`, which is this host's own programs");
        }
        let name = Self::parse(text).map_err(|error| error.context("commit"))?;
        if name.digest().is_some() { refused("has a digest, which nobody can choose") } else { Ok(name) }
    }

    /// Returns the name in full.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digest in the name, such as `sha256:…`, if there is one.
    pub fn digest(&self) -> Option<&str> {
        self.0.split_once('@').map(|(_, digest)| digest)
    }

    /// Returns the tag in the name. Only a name with a digest may have none.
    pub fn tag(&self) -> Option<&str> {
        let name = self.0.split('@').next().unwrap_or_default();
        name.strip_prefix(self.repository())?.strip_prefix(':')
    }

    /// Returns registry and repository, without tag and digest.
    pub fn repository(&self) -> &str {
        let name = self.0.split('@').next().unwrap_or_default();
        match name.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => repository,
            _ => name,
        }
    }

    /// Returns the name as people write it, without Docker's registry.
    pub fn short(&self) -> &str {
        let name = self.0.strip_prefix("docker.io/").unwrap_or(&self.0);
        name.strip_prefix("library/").unwrap_or(name)
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_written_out_and_back() {
        for (text, full) in [
            ("node:22", "docker.io/library/node:22"),
            ("node", "docker.io/library/node:latest"),
            ("team/app:1", "docker.io/team/app:1"),
            ("127.0.0.1:5000/x:y", "127.0.0.1:5000/x:y"),
        ] {
            let name = ImageName::parse(text).unwrap();
            assert_eq!(name.as_str(), full);
            assert_eq!(ImageName::parse(name.short()).unwrap(), name);
        }
        assert_eq!(ImageName::parse("127.0.0.1:5000/x:y").unwrap().repository(), "127.0.0.1:5000/x");
        assert_eq!(ImageName::parse("node:22").unwrap().short(), "node:22");
    }

    #[test]
    fn a_digest_is_part_of_a_name_and_a_tag_is_not_needed_then() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let name = ImageName::parse(&format!("node@{digest}")).unwrap();
        let parts = (name.repository(), name.tag(), name.digest());
        assert_eq!(parts, ("docker.io/library/node", None, Some(digest.as_str())));
        let both = ImageName::parse(&format!("127.0.0.1:5000/node:22@{digest}")).unwrap();
        assert_eq!((both.repository(), both.tag()), ("127.0.0.1:5000/node", Some("22")));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in ["", "/etc", "../x", "UPPER", "a b", "./x", "a//b", "x@sha256:12"] {
            assert!(ImageName::parse(text).is_err() && ImageName::parse_new(text).is_err(), "{text}");
        }
    }
}
