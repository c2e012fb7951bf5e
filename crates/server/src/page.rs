//! The page at `/`: the files that `cargo xtask web` has built from `web/`, embedded in the
//! program.
//!
//! They need no key, since they contain no data. The page gets its data from the API like any other
//! client, as the key that signed in ([`crate::api`]). It loads nothing from elsewhere, and its
//! policy tells browsers to refuse if it tried.

use axum::Router;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use eyot::{Error, ErrorKind};

use crate::problem::Refusal;
use crate::static_file::StaticFile;

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        ($name, StaticFile::embedded($kind, include_bytes!(concat!("../web-dist/", $name))))
    };
}

static HTML: (&str, StaticFile) = asset!("index.html", "text/html; charset=utf-8");

/// The files below `/assets/`, by their paths.
static ASSETS: [(&str, StaticFile); 6] = [
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

/// Returns the routes of the page.
pub(crate) fn router() -> Router {
    Router::new().route("/", get(page)).route("/assets/{name}", get(below_assets))
}

async fn page(headers: HeaderMap) -> Response {
    HTML.1.answer_as_page(&headers, POLICY)
}

async fn below_assets(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let asset = ASSETS.iter().find(|(path, _)| path.strip_prefix("assets/") == Some(name.as_str()));
    match asset {
        Some((_, file)) => file.answer_as_page(&headers, POLICY),
        None => Refusal::from(Error::new(ErrorKind::NotFound, "the page has no such file")).into_response(),
    }
}
