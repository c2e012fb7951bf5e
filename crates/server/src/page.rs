//! The page at `/`: the files that `cargo xtask web` has built from `web/`, embedded in the
//! program.
//!
//! They need no key, since they contain no data. The page gets its data from the API like any other
//! client, as the key that signed in ([`crate::api`]). It loads nothing from elsewhere, and its
//! policy tells browsers to refuse if it tried.

use std::borrow::Cow;
use std::io::Write;
use std::sync::OnceLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use eyot::{Error, ErrorKind};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::problem::Refusal;

/// A file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    /// The file as it is, made at the first request.
    plain: OnceLock<EncodedFile>,
    /// The file compressed by gzip, made at the first request; `None`: compression failed.
    packed: OnceLock<Option<EncodedFile>>,
}

/// The body that is sent for a file, and its entity tag.
struct EncodedFile {
    bytes: Cow<'static, [u8]>,
    tag: HeaderValue,
}

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../web-dist/", $name)),
            plain: OnceLock::new(),
            packed: OnceLock::new(),
        }
    };
}

static HTML: Asset = asset!("index.html", "text/html; charset=utf-8");

/// The files below `/assets/`.
static ASSETS: [Asset; 6] = [
    asset!("assets/page.js", "text/javascript; charset=utf-8"),
    asset!("assets/page.css", "text/css; charset=utf-8"),
    asset!("assets/terminal.js", "text/javascript; charset=utf-8"),
    asset!("assets/terminal.css", "text/css; charset=utf-8"),
    asset!("assets/icon.svg", "image/svg+xml"),
    // Of what the page is built with.
    asset!("assets/licenses.md", "text/plain; charset=utf-8"),
];

/// The content security policy: nothing from other servers, no inline scripts or styles, and no
/// framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers that are sent with every file.
const HEADERS: [(&str, &str); 8] = [
    ("vary", "accept-encoding"),
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Asked for again each time, and answered with 304 while it is the same.
    ("cache-control", "no-cache"),
];

/// Returns the routes of the page.
pub(crate) fn router() -> Router {
    Router::new().route("/", get(page)).route("/assets/{name}", get(below_assets))
}

async fn page(headers: HeaderMap) -> Response {
    HTML.answer(&headers)
}

async fn below_assets(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let is_it = |asset: &&Asset| asset.name.strip_prefix("assets/") == Some(name.as_str());
    match ASSETS.iter().find(is_it) {
        Some(asset) => asset.answer(&headers),
        None => Refusal::from(Error::new(ErrorKind::NotFound, "the page has no such file")).into_response(),
    }
}

impl Asset {
    fn answer(&'static self, asked: &HeaderMap) -> Response {
        let packed = if takes_gzip(asked) { self.packed() } else { None };
        let (EncodedFile { bytes, tag }, encoding) =
            packed.map_or_else(|| (self.plain(), "identity"), |packed| (packed, "gzip"));
        let seen = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = seen.flat_map(|tags| tags.split(',')).any(|seen| *tag == *seen.trim());
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let head = [(header::CONTENT_TYPE, self.kind), (header::CONTENT_ENCODING, encoding)];
            let bytes: &'static [u8] = bytes;
            (head, bytes).into_response()
        };
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert(header::ETAG, tag.clone());
        response
    }

    fn plain(&'static self) -> &'static EncodedFile {
        self.plain.get_or_init(|| EncodedFile::of(Cow::Borrowed(self.bytes)))
    }

    fn packed(&'static self) -> Option<&'static EncodedFile> {
        let pack = || {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            packer.write_all(self.bytes).ok()?;
            Some(EncodedFile::of(Cow::Owned(packer.finish().ok()?)))
        };
        self.packed.get_or_init(pack).as_ref()
    }
}

impl EncodedFile {
    fn of(bytes: Cow<'static, [u8]>) -> Self {
        let hash = Sha256::digest(&bytes);
        let tag = HeaderValue::from_str(&format!("\"{}\"", hex::encode(&hash[..12])))
            .unwrap_or(HeaderValue::from_static("\"\""));
        Self { bytes, tag }
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
