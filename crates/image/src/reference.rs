//! Names of images, as the library for OCI's documents has them.

use eyot::ImageName;
#[cfg(any(test, feature = "pull"))]
use eyot::{Error, ErrorKind, Result};
#[cfg(any(test, feature = "pull"))]
use oci_spec::distribution::Reference;

use crate::digest::Digest;

/// Returns the parts of a name.
#[cfg(any(test, feature = "pull"))]
pub(crate) fn reference_of(name: &ImageName) -> Result<Reference> {
    let without_registry = name.repository().split_once('/');
    let (registry, repository) = without_registry.ok_or_else(|| {
        Error::new(ErrorKind::Internal, format!("the name of an image has no registry: `{name}`"))
    })?;
    let [registry, repository] = [registry, repository].map(str::to_owned);
    let owned = str::to_owned;
    Ok(match (name.tag().map(owned), name.digest().map(owned)) {
        (Some(tag), Some(digest)) => Reference::with_tag_and_digest(registry, repository, tag, digest),
        (None, Some(digest)) => Reference::with_digest(registry, repository, digest),
        (tag, None) => Reference::with_tag(registry, repository, tag.unwrap_or_default()),
    })
}

/// Returns the digest in a name, if there is one that blobs can have.
pub(crate) fn digest_of(name: &ImageName) -> Option<Digest> {
    name.digest().and_then(Digest::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_library(text: &str) -> Option<String> {
        let reference: Reference = text.parse().ok()?;
        Some(reference.whole())
    }

    /// Reads a name, whose parts must be those of the library.
    fn parse(text: &str) -> Option<String> {
        let name = ImageName::parse(text).ok()?;
        let parts: Option<Reference> = text.parse().ok();
        assert_eq!(reference_of(&name).ok(), parts, "{text}");
        Some(name.as_str().to_owned())
    }

    #[test]
    fn references_are_read_as_the_library_reads_them() {
        let (sha256, sha512) = ("0123456789abcdef".repeat(4), "A".repeat(128));
        let long = ["a".repeat(255), "a".repeat(256), format!("h.io/{}", "b/".repeat(127) + "b")];
        let tags = [format!("x:{}", "t".repeat(128)), format!("x:{}", "t".repeat(129))];
        let digests =
            [format!("x@sha256:{sha256}"), format!("x:1@sha512:{sha512}"), format!("x@sha256:{sha512}")];
        for text in [
            "node",
            "node:22",
            "team/app",
            "localhost/x",
            "localhost:5000/a/b:c",
            "Foo/bar",
            "Foo",
            "foo/Bar",
            "index.docker.io/x",
            "docker.io/a/b",
            "127.0.0.1:5000/x:y",
            "h:/x",
            "h:x/y",
            "h.:1/y",
            "-h/y",
            "h-/y",
            "x:",
            "x:.t",
            "x:-t",
            "x:_t",
            "a..b",
            "a.b",
            "a__b",
            "a___b",
            "a---b",
            "a_-b",
            "a.",
            ".a",
            "_a",
            "a/",
            "/a",
            "a//b",
            "x@",
            "x@sha256:",
            "x@md5:00",
            "x@sha256:12",
            "[::1]:5/x",
            "a b",
            "",
            ":",
            "@",
            "x:1:2",
            "x@y@z",
            "x/y:1/z",
        ] {
            assert_eq!(parse(text), of_library(text), "{text}");
        }
        for text in long.iter().chain(&tags).chain(&digests) {
            assert_eq!(parse(text), of_library(text), "{text}");
        }
    }

    #[test]
    fn what_is_put_together_at_random_is_read_as_the_library_reads_it() {
        let pieces =
            ["a", "b9", "B", ".", "-", "_", "__", "--", "/", ":", "@", "localhost", "80", "docker.io"];
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize
        };
        let mut accepted = 0;
        for _ in 0..20_000 {
            let text: String = (0..1 + next() % 7).map(|_| pieces[next() % pieces.len()]).collect();
            assert_eq!(parse(&text), of_library(&text), "{text}");
            accepted += usize::from(parse(&text).is_some());
        }
        assert!(accepted > 1_000, "{accepted}");
    }

    #[test]
    fn letters_of_other_scripts_are_in_no_part_of_a_reference() {
        for text in ["ä", "x:ä", "ä/x", "h.io/ä", "x:٣"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
