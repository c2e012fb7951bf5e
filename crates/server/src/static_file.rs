//! A file that the server sends to browsers as it is: with an entity tag, and compressed by gzip
//! for clients that accept it.

use std::borrow::Cow;
use std::io::Write;
use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// A file, its media type, and its two encodings.
pub(crate) struct StaticFile {
    kind: Cow<'static, str>,
    bytes: Bytes,
    /// The file as it is, made at the first request.
    plain: OnceLock<EncodedFile>,
    /// The file compressed by gzip, made at the first request; `None`: compression failed.
    packed: OnceLock<Option<EncodedFile>>,
}

/// The body that is sent for a file, and its entity tag.
struct EncodedFile {
    bytes: Bytes,
    tag: HeaderValue,
}

/// The headers that are sent with every file.
const HEADERS: [(&str, &str); 3] = [
    ("vary", "accept-encoding"),
    ("x-content-type-options", "nosniff"),
    // Asked for again each time, and answered with 304 while it is the same.
    ("cache-control", "no-cache"),
];

/// The headers of a page that nobody may frame or read from another site; its policy is the page's.
const APART: [(&str, &str); 4] = [
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
];

impl StaticFile {
    /// Returns a file that is part of the program.
    pub(crate) const fn embedded(kind: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            kind: Cow::Borrowed(kind),
            bytes: Bytes::from_static(bytes),
            plain: OnceLock::new(),
            packed: OnceLock::new(),
        }
    }

    /// Returns a file that was made while the program runs.
    pub(crate) fn made(kind: String, bytes: Vec<u8>) -> Self {
        Self { kind: Cow::Owned(kind), bytes: bytes.into(), plain: OnceLock::new(), packed: OnceLock::new() }
    }

    /// Answers a request with the file, or with 304 if the client has it.
    pub(crate) fn answer(&self, asked: &HeaderMap) -> Response {
        let packed = if takes_gzip(asked) { self.packed() } else { None };
        let (EncodedFile { bytes, tag }, encoding) =
            packed.map_or_else(|| (self.plain(), "identity"), |packed| (packed, "gzip"));
        let seen = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = seen.flat_map(|tags| tags.split(',')).any(|seen| *tag == *seen.trim());
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let head = [(header::CONTENT_TYPE, &*self.kind), (header::CONTENT_ENCODING, encoding)];
            (head, bytes.clone()).into_response()
        };
        insert(&mut response, &HEADERS);
        response.headers_mut().insert(header::ETAG, tag.clone());
        response
    }

    /// Answers a request with the file as part of a page, with this content security policy.
    pub(crate) fn answer_as_page(&self, asked: &HeaderMap, policy: &'static str) -> Response {
        let mut response = self.answer(asked);
        insert(&mut response, &APART);
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        response
    }

    fn plain(&self) -> &EncodedFile {
        self.plain.get_or_init(|| EncodedFile::of(self.bytes.clone()))
    }

    fn packed(&self) -> Option<&EncodedFile> {
        let pack = || {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            packer.write_all(&self.bytes).ok()?;
            Some(EncodedFile::of(packer.finish().ok()?.into()))
        };
        self.packed.get_or_init(pack).as_ref()
    }
}

impl EncodedFile {
    fn of(bytes: Bytes) -> Self {
        let hash = Sha256::digest(&bytes);
        let tag = HeaderValue::from_str(&format!("\"{}\"", hex::encode(&hash[..12])))
            .unwrap_or(HeaderValue::from_static("\"\""));
        Self { bytes, tag }
    }
}

fn insert(response: &mut Response, headers: &[(&'static str, &'static str)]) {
    for (name, value) in headers {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// Tells whether a client accepts gzip.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let said = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    said.flat_map(|words| words.split(',')).any(|word| {
        let (name, quality) = word.split_once(';').unwrap_or((word, ""));
        name.trim().eq_ignore_ascii_case("gzip")
            && !matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}
