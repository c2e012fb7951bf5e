//! The page at `/docs/`: Swagger UI on the API's document.
//!
//! It needs no key, since it contains no data. Only the files that the page loads are served.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use eyot::{Error, ErrorKind};
use utoipa_swagger_ui::{Config, serve};

use super::{Api, Refusal};
use crate::static_file::StaticFile;

/// The path of the API's document.
const DOCUMENT: &str = "/v1/openapi.json";

/// The files of Swagger UI that its page loads, and the page.
const NAMES: [&str; 8] = [
    INDEX,
    "index.css",
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-initializer.js",
    "favicon-16x16.png",
    "favicon-32x32.png",
];
const INDEX: &str = "index.html";

/// The content security policy: nothing from other servers, no inline scripts, no inline styles but
/// that of Swagger UI's logo (the hash), and no framing. The style sheet draws its arrows as `data:`
/// images.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static FILES: LazyLock<BTreeMap<&'static str, StaticFile>> = LazyLock::new(|| {
    let config = Config::from(DOCUMENT)
        .persist_authorization(false)
        .doc_expansion("none")
        .filter(true)
        .validator_url("none");
    let config = Arc::new(config);
    let found = NAMES.into_iter().filter_map(|name| {
        let file = serve(name, Arc::clone(&config)).ok().flatten()?;
        Some((name, StaticFile::made(file.content_type, file.bytes.into_owned())))
    });
    found.collect()
});

/// Returns the routes of the page.
pub(super) fn router() -> Router<Api> {
    Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", get(async |headers: HeaderMap| answer(INDEX, &headers)))
        .route(
            "/docs/{name}",
            get(async |Path(name): Path<String>, headers: HeaderMap| answer(&name, &headers)),
        )
}

fn answer(name: &str, headers: &HeaderMap) -> Response {
    match FILES.get(name) {
        Some(file) => file.answer_as_page(headers, POLICY),
        None => {
            Refusal::from(Error::new(ErrorKind::NotFound, "there is nothing at this path")).into_response()
        }
    }
}
