//! Bearer tokens. Loopback needs one too: every user and every program of the machine can reach it.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use eyot::{Error, Result};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::idle::let_in;
use crate::random_hex::random_hex;

/// The shortest token, in bytes.
const MIN_BYTES: usize = 16;

/// The tokens that let clients in. Each token is a client of its own: sessions that one has opened
/// do not exist for the others. Only hashes of the tokens are kept.
#[derive(Clone)]
pub struct Tokens {
    hashes: Vec<[u8; 32]>,
    is_generated: bool,
}

impl Tokens {
    /// Takes these tokens. Fails with `invalid` if there is none, or if one is shorter than 16
    /// characters or has characters that a header cannot carry.
    pub fn new<S: AsRef<str>>(tokens: &[S]) -> Result<Self> {
        let usable = |token: &S| {
            token.as_ref().len() >= MIN_BYTES && token.as_ref().bytes().all(|byte| byte.is_ascii_graphic())
        };
        if tokens.is_empty() || !tokens.iter().all(usable) {
            let reason = format!("must be at least {MIN_BYTES} letters, digits or signs, without spaces");
            return Err(Error::invalid("token", reason).with_hint("`openssl rand -hex 32` makes a good one"));
        }
        let hashes = tokens.iter().map(|token| hash(token.as_ref())).collect();
        Ok(Self { hashes, is_generated: false })
    }

    /// Generates a token with 256 random bits, and returns its text too.
    pub fn generate() -> Result<(Self, String)> {
        let token = random_hex::<32>()?;
        Ok((Self { is_generated: true, ..Self::new(&[&token])? }, token))
    }

    /// Tells whether the token was generated here.
    pub fn is_generated(&self) -> bool {
        self.is_generated
    }

    /// Returns the client whose token this is. This takes the same time for wrong and right tokens.
    fn client(&self, shown: &str) -> Option<Client> {
        let shown = hash(shown);
        let mut client = None;
        for (index, known) in self.hashes.iter().enumerate() {
            if bool::from(known.ct_eq(&shown)) {
                client = Some(Client::Token(index));
            }
        }
        client
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.hashes.len())
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A client that was let in, as sessions tell clients apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// The holder of a token: its index in the list.
    Token(usize),
    /// The holder of an API key: its id.
    Key(String),
    /// Any client: the server needs no key.
    Anybody,
}

/// Passes a request with a token on, without the token, so that no log can show it.
pub(crate) async fn require(State(tokens): State<Arc<Tokens>>, mut request: Request, next: Next) -> Response {
    let shown = bearer_token(request.headers());
    let Some(client) = shown.and_then(|token| tokens.client(token)) else {
        return unauthorized(shown.is_some());
    };
    let_in(request.extensions());
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert(client);
    next.run(request).await
}

/// Returns the bearer token of a request, if there is exactly one.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized(was_shown: bool) -> Response {
    let (challenge, sentence) = if was_shown {
        ("Bearer realm=\"eyot\", error=\"invalid_token\"", "the token is wrong")
    } else {
        ("Bearer realm=\"eyot\"", "send the token as `Authorization: Bearer TOKEN`")
    };
    let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))];
    (StatusCode::UNAUTHORIZED, challenge, format!("Unauthorized: {sentence}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn each_token_is_a_client_of_its_own_and_anything_else_is_nobody() {
        let tokens = Tokens::new(&["first-token-of-two", "other-token-of-two"]).unwrap();
        assert_eq!(tokens.client("first-token-of-two"), Some(Client::Token(0)));
        assert_eq!(tokens.client("other-token-of-two"), Some(Client::Token(1)));
        for wrong in ["", "first-token-of-tw", "first-token-of-two ", "FIRST-TOKEN-OF-TWO"] {
            assert_eq!(tokens.client(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_that_is_short_or_can_not_be_sent_is_refused() {
        assert!(Tokens::new::<&str>(&[]).is_err());
        for token in ["", "short", "with a space in the middle", "0123456789abcdef\u{e9}"] {
            assert!(Tokens::new(&[token]).is_err(), "{token}");
        }
    }

    #[test]
    fn a_generated_one_is_new_every_time_and_is_not_shown_by_debug() {
        let ((tokens, one), (_, other)) = (Tokens::generate().unwrap(), Tokens::generate().unwrap());
        assert!(one != other && one.len() == 64 && tokens.client(&one).is_some() && tokens.is_generated());
        assert!(!format!("{tokens:?}").contains(&one));
    }

    #[test]
    fn one_bearer_header_is_read_and_nothing_else() {
        assert_eq!(bearer_token(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer_token(&headers(&["bearer  abc"])), Some("abc"));
        for wrong in [&[][..], &["Basic abc"], &["Bearer"], &["abc"], &["Bearer abc", "Bearer abc"]] {
            assert_eq!(bearer_token(&headers(wrong)), None, "{wrong:?}");
        }
    }
}
