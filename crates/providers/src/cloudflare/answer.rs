//! Answers of the bridge: read within a bound, and the meaning of its refusals.

use std::time::Duration;

use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::e2b::vendor::{AnswerSource, clean_text, retry_after};

/// The longest answer that is read whole, in bytes: what a script of Eyot's prints, or a refusal.
const MAX_ANSWER_BYTES: usize = 256 << 10;
pub(super) const ANSWERS: AnswerSource = AnswerSource { name: "the bridge", max_bytes: MAX_ANSWER_BYTES };
/// The code of a refusal when no more containers may run.
const NO_ROOM: &str = "capacity_exceeded";

/// The body of a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BridgeRefusal {
    error: String,
    code: String,
}

/// Reads an answer whole. One past the limit is `unavailable`.
pub(super) async fn whole(response: Response) -> Result<Bytes> {
    ANSWERS.whole(response).await
}

/// Reads the JSON of an answer.
pub(super) async fn read<T: DeserializeOwned>(response: Response) -> Result<T> {
    ANSWERS.read(response).await
}

pub(super) fn unreadable() -> Error {
    ANSWERS.unreadable()
}

/// Makes the error of a call that did not reach the bridge, or whose answer did not come. Addresses are left out.
pub(super) fn unreachable(error: reqwest::Error) -> Error {
    ANSWERS.unreachable(error)
}

/// Makes the error of a refusal. Returns the bridge's code of it, too.
pub(super) async fn refused(response: Response) -> (Error, String) {
    let (status, asked) = (response.status(), retry_after(response.headers()));
    let body = whole(response).await.unwrap_or_default();
    let refusal: BridgeRefusal = serde_json::from_slice(&body).unwrap_or_default();
    (refusal_error(status, asked, &refusal), refusal.code)
}

fn refusal_error(status: StatusCode, asked: Option<Duration>, refusal: &BridgeRefusal) -> Error {
    let message = clean_text(&refusal.error);
    let said =
        |reason: &str| if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            // Its own words may say of the key what nobody is to read.
            Error::new(ErrorKind::Permission, "the bridge refused the key")
                .with_hint("CLOUDFLARE_SANDBOX_API_KEY must have the Worker's SANDBOX_API_KEY")
        }
        StatusCode::SERVICE_UNAVAILABLE if refusal.code == NO_ROOM => {
            Error::new(ErrorKind::Quota, said("Cloudflare runs no more containers of this Worker"))
                .with_hint("raise max_instances in the Worker's wrangler.jsonc, or remove sandboxes")
                .with_no_effect()
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let when = asked.map_or("later".to_owned(), |wait| format!("in {} s", wait.as_secs()));
            Error::new(
                ErrorKind::Unavailable,
                format!("the bridge takes no more calls now; try again {when}"),
            )
            .with_no_effect()
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            Error::new(ErrorKind::TooLarge, said("the bridge takes no body that large"))
        }
        _ if status.is_redirection() => Error::new(
            ErrorKind::Unavailable,
            "the bridge sends its callers elsewhere, and the key goes nowhere else",
        )
        .with_hint("the option `url` must have the Worker's own address"),
        _ if status.is_client_error() => Error::new(ErrorKind::Invalid, said("the bridge refused the call")),
        _ => Error::new(ErrorKind::Unavailable, said(&format!("the bridge failed ({})", status.as_u16()))),
    }
}
