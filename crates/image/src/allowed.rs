//! The images that may be fetched for users who must not choose from everything that the host's
//! owner can reach.

use std::collections::BTreeSet;
use std::str::FromStr;

use eyot::{Error, Result};
use serde::Deserialize;

use crate::ImageName;

/// The images that may be fetched: some by name, some by pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedImages {
    names: BTreeSet<ImageName>,
    patterns: Vec<ImagePattern>,
}

impl AllowedImages {
    /// Allows these names, and those that a pattern matches.
    pub fn new(names: impl IntoIterator<Item = ImageName>, patterns: Vec<ImagePattern>) -> Self {
        Self { names: names.into_iter().collect(), patterns }
    }

    /// Allows one more image.
    #[must_use]
    pub fn with(mut self, name: ImageName) -> Self {
        self.names.insert(name);
        self
    }

    /// Tells whether an image may be fetched.
    pub fn has(&self, name: &ImageName) -> bool {
        self.names.contains(name) || self.patterns.iter().any(|pattern| pattern.matches(name))
    }
}

/// A pattern of image names: a name such as `node:22`, or one in full with `*` for any text behind
/// the registry, such as `docker.io/library/*`; `*` alone is every image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ImagePattern(String);

impl ImagePattern {
    /// Tells whether the name, written out in full, has this form.
    pub fn matches(&self, name: &ImageName) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == name.as_str() };
        let Some(name) = name.as_str().strip_prefix(first) else { return false };
        match rest.rsplit_once('*') {
            None => name.ends_with(rest),
            Some((middle, last)) => name.strip_suffix(last).is_some_and(|name| has_parts(name, middle)),
        }
    }
}

/// Tells whether these parts, between `*`s, stand in the text in this order.
fn has_parts(text: &str, parts: &str) -> bool {
    let mut parts = parts.split('*');
    let rest = parts.try_fold(text, |rest, part| rest.find(part).and_then(|at| rest.get(at + part.len()..)));
    rest.is_some()
}

impl FromStr for ImagePattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((before, _)) = text.split_once('*') else {
            return Ok(Self(ImageName::parse(text)?.as_str().to_owned()));
        };
        // A `*` in the registry's name would open the registries of strangers.
        let names_registry =
            before.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) || host == "localhost");
        let is_plain = text.chars().all(|letter| letter.is_ascii_graphic());
        if text == "*" || (names_registry && is_plain) {
            return Ok(Self(text.to_owned()));
        }
        let reason = format!("is no pattern of images: `{text}`");
        Err(Error::invalid("allow", reason).with_hint(
            "name the registry before the `*`: `docker.io/library/*`; or `*` alone, for every image of every registry",
        ))
    }
}

impl TryFrom<String> for ImagePattern {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, name: &str) -> bool {
        let patterns = vec![pattern.parse().unwrap()];
        AllowedImages::new([], patterns).has(&ImageName::parse(name).unwrap())
    }

    #[test]
    fn a_pattern_is_compared_with_the_whole_name() {
        for (pattern, name) in [
            ("docker.io/library/*", "node:22"),
            ("docker.io/library/node:*", "node"),
            ("docker.io/*", "team/app:1"),
            ("node:22", "docker.io/library/node:22"),
            ("registry.example:5000/*/app:1.*", "registry.example:5000/team/app:1.2"),
            ("ghcr.io/*/a/*:1", "ghcr.io/x/a/y:1"),
            ("*", "anything.example/at/all:3"),
        ] {
            assert!(allows(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("docker.io/library/*", "team/app:1"),
            ("docker.io/library/*", "evil.example/docker.io/library/node:22"),
            ("docker.io/library/node:*", "nodes:22"),
            ("node:22", "node:23"),
            ("registry.example/*:1", "registry.example/app:12"),
            ("ghcr.io/*/a/*:1", "ghcr.io/x/b/y:1"),
        ] {
            assert!(!allows(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_registry_is_named_and_has_no_star() {
        for text in ["", "library/*", "*.example.com/app", "*/node", "docker*/x", "a b/*", "docker.io/a b*"] {
            assert!(text.parse::<ImagePattern>().is_err(), "{text}");
        }
    }
}
