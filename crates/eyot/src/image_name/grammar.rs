//! The grammar of image references, as `distribution/reference` has it. The parser is written by
//! hand: the regular expression of the library for OCI's documents takes 40 ms to compile, in every
//! process that names an image. Tests of the image store compare the results with that library's.

const DOCKER: &str = "docker.io";
const DOCKER_OF_OLD: &str = "index.docker.io";
const OFFICIAL: &str = "library";
const LATEST: &str = "latest";
const MAX_REPOSITORY_BYTES: usize = 255;
const MAX_TAG_BYTES: usize = 128;

/// Writes a reference out with its defaults. Returns `None` for text that is no reference.
pub(super) fn in_full(text: &str) -> Option<String> {
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
    let named = |tag: &str| format!("{registry}/{repository}:{tag}");
    Some(match (tag, digest) {
        (Some(tag), Some(digest)) => format!("{}@{digest}", named(tag)),
        (None, Some(digest)) => format!("{registry}/{repository}@{digest}"),
        (tag, None) => named(tag.unwrap_or(LATEST)),
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
