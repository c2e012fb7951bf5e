//! Answers of Daytona: read within a bound, and the meaning of its refusals.

use eyot::{Error, ErrorKind, Result};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::e2b::vendor::{AnswerSource, clean_text, retry_after};

/// The longest answer that is read whole, in bytes. A page of a list has the labels of a hundred sandboxes.
const MAX_ANSWER_BYTES: usize = 16 << 20;
pub(super) const ANSWERS: AnswerSource = AnswerSource { name: "Daytona", max_bytes: MAX_ANSWER_BYTES };

/// The body of a refusal: of the API's, or of the toolbox'.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DaytonaRefusal {
    /// A text, or a list of texts.
    message: Value,
    error: Value,
}

impl DaytonaRefusal {
    fn words(&self) -> String {
        let of = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "),
            _ => String::new(),
        };
        let message = of(&self.message);
        clean_text(&if message.is_empty() { of(&self.error) } else { message })
    }
}

/// Reads the JSON of an answer.
pub(super) async fn read<T: DeserializeOwned>(response: Response) -> Result<T> {
    ANSWERS.read(response).await
}

pub(super) fn unreadable() -> Error {
    ANSWERS.unreadable()
}

/// Makes the error of a call that did not reach Daytona, or whose answer did not come. Addresses are left out.
pub(super) fn unreachable(error: reqwest::Error) -> Error {
    ANSWERS.unreachable(error)
}

/// Makes the error of a refusal.
pub(super) async fn refused(response: Response) -> Error {
    let (status, asked) = (response.status(), retry_after(response.headers()));
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        // Its own words may say of the key what nobody is to read.
        return Error::new(ErrorKind::Permission, "Daytona refused the key").with_hint(
            "DAYTONA_API_KEY must have a key that may do this, in an organization with room for it",
        );
    }
    if status.is_redirection() {
        return Error::new(
            ErrorKind::Unavailable,
            "Daytona sends its callers elsewhere, and the key goes nowhere else",
        )
        .with_hint("DAYTONA_API_URL must be the API's own address");
    }
    let body = ANSWERS.whole(response).await.unwrap_or_default();
    let message = serde_json::from_slice::<DaytonaRefusal>(&body).unwrap_or_default().words();
    let said =
        |reason: &str| if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    match status {
        StatusCode::NOT_FOUND => Error::new(ErrorKind::NotFound, said("Daytona does not have it")),
        StatusCode::TOO_MANY_REQUESTS => {
            let when = asked.map_or("later".to_owned(), |wait| format!("in {} s", wait.as_secs()));
            Error::new(ErrorKind::Unavailable, said("Daytona limits the rate of requests"))
                .with_no_effect()
                .with_hint(format!("try again {when}"))
        }
        StatusCode::CONFLICT => Error::new(ErrorKind::Conflict, said("Daytona refused it")),
        StatusCode::REQUEST_TIMEOUT => {
            Error::new(ErrorKind::Unavailable, said("Daytona took too long for it"))
        }
        status if status.is_server_error() => {
            Error::new(ErrorKind::Unavailable, said(&format!("Daytona answered {}", status.as_u16())))
        }
        _ => Error::new(ErrorKind::Invalid, said("Daytona refused it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_refusal_are_a_text_or_a_list() {
        let words = |body: &str| serde_json::from_str::<DaytonaRefusal>(body).unwrap_or_default().words();
        assert_eq!(words(r#"{"message":"no","error":"Bad Request"}"#), "no");
        assert_eq!(words(r#"{"message":["a","b"]}"#), "a; b");
        assert_eq!(words(r#"{"error":"x\u001b[31m"}"#), "x[31m");
        assert_eq!(words("nothing"), "");
    }
}
