//! The grammar of image references, as `distribution/reference` has it. The parser is written by
//! hand: the regular expression of the library for OCI's documents takes 40 ms to compile, in every
//! process that names an image. Tests compare the results with that library's.

use oci_spec::distribution::Reference;

const DOCKER: &str = "docker.io";
const DOCKER_OF_OLD: &str = "index.docker.io";
const OFFICIAL: &str = "library";
const LATEST: &str = "latest";
const MAX_REPOSITORY_BYTES: usize = 255;
const MAX_TAG_BYTES: usize = 128;

/// Splits a reference into its parts, with the defaults written out. Returns `None` for text that
/// is no reference.
pub(crate) fn parse(text: &str) -> Option<Reference> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        // Otherwise the colon belongs to a port.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    if !is_name(name) || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
        return None;
    }
    let (registry, repository) = split(name);
    if repository.len() > MAX_REPOSITORY_BYTES {
        return None;
    }
    let owned = str::to_owned;
    Some(match (tag, digest) {
        (Some(tag), Some(digest)) => {
            Reference::with_tag_and_digest(registry, repository, owned(tag), owned(digest))
        }
        (None, Some(digest)) => Reference::with_digest(registry, repository, owned(digest)),
        (tag, None) => Reference::with_tag(registry, repository, owned(tag.unwrap_or(LATEST))),
    })
}

/// Splits a name into registry and repository.
fn split(name: &str) -> (String, String) {
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    let (registry, repository) = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => (DOCKER, name),
    };
    match registry {
        DOCKER | DOCKER_OF_OLD if !repository.contains('/') => {
            (DOCKER.to_owned(), format!("{OFFICIAL}/{repository}"))
        }
        DOCKER | DOCKER_OF_OLD => (DOCKER.to_owned(), repository.to_owned()),
        other => (other.to_owned(), repository.to_owned()),
    }
}

/// Tells whether this is a name: components between slashes, of which the first may be a host.
fn is_name(name: &str) -> bool {
    let are_components = |text: &str| text.split('/').all(is_component);
    are_components(name)
        || name.split_once('/').is_some_and(|(first, rest)| is_host(first) && are_components(rest))
}

/// Tells whether this is a component: lower-case letters and digits, with one dot, one or two
/// underscores or any number of hyphens between them.
fn is_component(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_in_letters = |text: &str| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(is_letter) && text.bytes().next_back().is_some_and(is_letter)
    };
    let is_separator =
        |run: &str| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    ends_in_letters(text)
        && text.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit()).all(is_separator)
}

/// Tells whether this is a host: names between dots, and perhaps a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let is_edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        is_edge(label.bytes().next())
            && is_edge(label.bytes().next_back())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG_BYTES
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

fn is_digest(text: &str) -> bool {
    let digits = match text.split_once(':') {
        Some(("sha256", hex)) => (hex, 64),
        Some(("sha384", hex)) => (hex, 96),
        Some(("sha512", hex)) => (hex, 128),
        _ => return false,
    };
    digits.0.len() == digits.1 && digits.0.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_library(text: &str) -> Option<Reference> {
        text.parse().ok()
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
