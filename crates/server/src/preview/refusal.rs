//! Refusals of a preview: a problem for programs, a small page for people.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use eyot::wire::PREVIEW_TOKEN;
use eyot::{Error, ErrorKind};

use crate::problem::Refusal;

/// The reason why a preview is refused.
#[derive(Debug)]
pub(crate) struct Denial(Refusal);

impl Denial {
    /// Refuses because there is no such sandbox. Everybody may learn that: an id has 74 random bits
    /// beside its time, so nobody finds one by guessing.
    pub fn gone() -> Self {
        let error = Error::new(ErrorKind::Destroyed, "there is no such sandbox, or there is none any more");
        Self(error.into())
    }

    /// Refuses because no valid secret was sent. The answer does not say what is wrong with it.
    pub fn unauthorized() -> Self {
        let sentence = "this preview is private: an address with a token opens it once, in one browser, and this one \
                        was used, is too old or has no token";
        let hint = "for another address run `eyot browse NAME PORT`, or `eyot preview NAME PORT` for a server's; \
                    programs send the token that `--json` prints as `Eyot-Preview-Token`";
        let error = Error::new(ErrorKind::Permission, sentence).with_hint(hint);
        Self(Refusal::with_status(error, StatusCode::UNAUTHORIZED))
    }

    pub fn forbidden(reason: &str) -> Self {
        Self(Error::new(ErrorKind::Permission, reason).into())
    }

    pub fn invalid(reason: &'static str) -> Self {
        Self(Error::new(ErrorKind::Invalid, reason).into())
    }

    /// Refuses because too many requests are under way.
    pub fn full() -> Self {
        let reason = "as many requests as may be are under way to this sandbox; try again when one has ended";
        Self(Error::new(ErrorKind::Quota, reason).into())
    }

    /// Refuses because the server inside cannot be reached, or its answer cannot be read.
    pub fn bad_gateway(reason: String) -> Self {
        Self(Refusal::with_status(Error::new(ErrorKind::Unavailable, reason), StatusCode::BAD_GATEWAY))
    }

    pub fn too_late(reason: String) -> Self {
        Self(Error::new(ErrorKind::Timeout, reason).into())
    }

    /// Renders the refusal as a page or as a problem.
    pub fn render(self, wants_page: bool) -> Response {
        let problem = self.0.problem();
        let mut response = self.0.into_response();
        if wants_page {
            let page = page(&problem.title, &problem.detail, problem.hint.as_deref());
            *response.body_mut() = Body::from(page);
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            let nothing_else = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
            headers.insert(header::CONTENT_SECURITY_POLICY, nothing_else);
        }
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if problem.status == 401
            && let Ok(challenge) = HeaderValue::from_str(&format!("Eyot-Preview header=\"{PREVIEW_TOKEN}\""))
        {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        if refusal.is_no_sandbox() { Self::gone() } else { Self(refusal) }
    }
}

/// Tells whether a person reads the answer.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/html"))
}

fn page(title: &str, detail: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("<p>{}</p>", escaped(hint))).unwrap_or_default();
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em}}</style>\
         <h1>{title}</h1><p>{}</p>{hint}\n",
        escaped(detail),
        title = escaped(title),
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_text_as_text() {
        assert!(
            page("a & b", "<script>\"", Some("</p>"))
                .contains("<p>&lt;script&gt;&quot;</p><p>&lt;/p&gt;</p>")
        );
    }
}
