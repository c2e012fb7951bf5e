//! Extractors: a request's JSON body, its bytes, and the sandbox that it names. They
//! refuse wrong input with a problem, like any other error.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use eyot::wire::LIFE;
use eyot::{ByteStream, Error, ErrorKind, Sandbox, SandboxInfo, SandboxName, SandboxProvider};
use futures_util::{StreamExt, TryStreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::access::Caller;
use super::query::Params;
use super::state::Api;
use crate::problem::Refusal;

/// The JSON body of a request.
pub(super) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Api> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Refusal> {
        let limit_ms = api.limits().json_timeout_ms;
        let read = timeout(Duration::from_millis(limit_ms), Bytes::from_request(request, api)).await;
        let read = read.map_err(|_| Refusal::slow(limit_ms))?;
        let most = api.limits().max_json_bytes;
        let bytes = read.map_err(|rejection| match rejection.status().as_u16() {
            413 => Refusal::from(
                Error::new(ErrorKind::TooLarge, format!("read the request: its body may have {most} bytes"))
                    .with_hint("whoever runs the server may allow more: `eyot serve --max-json-bytes`"),
            ),
            _ => Refusal::from(Error::new(
                ErrorKind::Invalid,
                format!("read the request: {}", rejection.body_text()),
            )),
        })?;
        // Whatever may be left out may be left out altogether; and a list is no object, though serde would take it for one.
        let bytes = if bytes.trim_ascii().is_empty() { Bytes::from_static(b"{}") } else { bytes };
        if bytes.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
            return Err(Error::invalid("body", "must be a JSON object, not a list").into());
        }
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            match error.inner().classify() {
                Category::Data if let Some(missing) = missing_field(&path, error.inner()) => {
                    Error::invalid(missing, "must be there").into()
                }
                Category::Data if path != "." => Error::invalid(&path, about(&path, error.inner())).into(),
                Category::Data => Refusal::from(Error::invalid("body", about("body", error.inner()))),
                Category::Syntax | Category::Eof | Category::Io => not_json(error.inner()),
            }
        })?;
        json.end().map_err(|error| not_json(&error))?;
        Ok(Self(value))
    }
}

/// Returns the field that an object at this path lacks, if that is the error.
fn missing_field(path: &str, error: &serde_json::Error) -> Option<String> {
    let text = error.to_string();
    let (name, _) = text.strip_prefix("missing field `")?.split_once('`')?;
    Some(if path == "." { name.to_owned() } else { format!("{path}.{name}") })
}

/// Returns a sentence about a field, which is named in front of it: without the field's name once
/// more, and without the place in the text, which nobody has written by hand.
fn about(path: &str, error: &serde_json::Error) -> String {
    let (text, last) = (error.to_string(), path.rsplit('.').next().unwrap_or(path));
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let name = format!("`{last}`");
    match (text.strip_prefix(&format!("unknown field {name}, ")), text.strip_prefix(&format!("{name} "))) {
        (Some(expected), _) => format!("is not known here: {expected}"),
        (None, Some(sentence)) => sentence.to_owned(),
        (None, None) => in_plain_words(text),
    }
}

/// Returns what the parser says without the words of Rust.
fn in_plain_words(text: &str) -> String {
    let text = text
        .replace("unknown variant", "has the unknown value")
        .replace("invalid type", "has the wrong type")
        .replace("invalid value", "has a wrong value")
        .replace(": sequence", ": a list")
        .replace(": map", ": an object");
    match text.split_once(", expected ") {
        Some((found, expected)) => format!("{found}, expected {}", plain_type(expected)),
        None => text,
    }
}

/// Returns a type of Rust's as a reader of JSON knows it.
fn plain_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

/// Refuses a body that is not JSON. No field can be named: the parser stopped before it knew one.
fn not_json(error: &serde_json::Error) -> Refusal {
    Error::invalid("body", format!("is not valid JSON: {error}")).into()
}

/// Returns the bytes of a request's body as they come.
pub(super) fn content(body: Body) -> ByteStream {
    let broken = |error: axum::Error| {
        Error::new(ErrorKind::Cancelled, "the request's body broke off, or nothing of it came for too long")
            .with_source(error)
    };
    body.into_data_stream().map_err(broken).boxed()
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Refusal> {
        let missing = || Error::new(ErrorKind::Internal, "nobody has looked who asks");
        parts.extensions.get::<Self>().cloned().ok_or_else(|| missing().into())
    }
}

/// The path parameter `{sandbox}`.
#[derive(IntoParams)]
#[into_params(names("sandbox"), parameter_in = Path)]
pub(super) struct TheSandbox(
    /// The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
    #[param(example = "dev")]
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    String,
);

/// The query parameter `pool`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct InPool {
    /// The pool in which a name is looked up. By default the key's first pool.
    #[allow(dead_code, reason = "`Asked` reads it; it stands here for the document")]
    pool: Option<String>,
}

/// The query parameters `pool` and `show_env`, for answers about a sandbox.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// The pool in which a name is looked up. By default the key's first pool.
    pool: Option<String>,
    /// Includes the values of environment variables, which may be secret.
    show_env: Option<bool>,
}

/// The query parameters `pool` and `show_env`, for requests that name no sandbox.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ShowEnv {
    /// The pool. By default the key's first pool. The body may name it instead.
    pub pool: Option<String>,
    /// Includes the values of environment variables, which may be secret.
    pub show_env: Option<bool>,
}

/// The query parameters `pool` and `beneath`.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Where {
    /// The pool in which a name is looked up. By default the key's first pool.
    #[allow(dead_code, reason = "`Asked` reads it; it stands here for the document")]
    pool: Option<String>,
    /// Confines every path of the request to this directory: neither `..` nor a symbolic link leads
    /// out of it.
    beneath: Option<String>,
}

/// The sandbox that a request names. It has not been looked up yet.
pub(super) struct Named {
    pub caller: Caller,
    pub pool: Option<String>,
    pub sandbox: String,
    /// Set if the answer is to include the values of environment variables.
    pub show_env: bool,
}

impl FromRequestParts<Api> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let caller = Caller::from_request_parts(parts, api).await?;
        let Params(Asked { pool, show_env }) = Params::from_request_parts(parts, api).await?;
        let Path(mut path) = Path::<HashMap<String, String>>::from_request_parts(parts, api)
            .await
            .map_err(|rejection| Refusal::from(Error::invalid("path", rejection.body_text())))?;
        let (pool, sandbox) = with_pool(path.remove("sandbox").unwrap_or_default(), pool)?;
        Ok(Self { caller, pool, sandbox, show_env: show_env.unwrap_or(false) })
    }
}

/// Splits POOL/NAME. A pool that the query names otherwise is refused.
pub(super) fn with_pool(named: String, pool: Option<String>) -> Result<(Option<String>, String), Refusal> {
    match (named.split_once('/'), pool) {
        (None, pool) => Ok((pool, named)),
        (Some((of_name, _)), Some(pool)) if of_name != pool => {
            Err(Error::invalid("pool", format!("is `{pool}`, and `{named}` is in the pool `{of_name}`"))
                .into())
        }
        (Some((pool, name)), _) => Ok((Some(pool.to_owned()), name.to_owned())),
    }
}

impl Named {
    /// Returns the sandbox's pool, if the caller may use it.
    pub async fn pool(&self, api: &Api) -> Result<SandboxName, Refusal> {
        api.pool_of(&self.caller, self.pool.as_deref(), &self.sandbox).await
    }

    /// Returns the sandbox as it is. `None`: it sleeps. This does not wake it.
    pub async fn as_it_is(&self, api: &Api) -> Result<Option<Sandbox>, Refusal> {
        api.sandbox_as_it_is(&self.caller, self.pool.as_deref(), &self.sandbox).await
    }

    /// Returns what is known of the sandbox. This does not wake it, and does not count as activity.
    pub async fn info(&self, api: &Api, pool: &SandboxName) -> Result<SandboxInfo, Refusal> {
        api.pool(pool)?.info(&self.sandbox).await.map_err(|error| self.gone(error))
    }

    /// Converts an error of an operation on the sandbox. A destroyed sandbox is reported like one
    /// that never existed.
    pub fn gone(&self, error: Error) -> Refusal {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Destroyed => Refusal::no_sandbox(&self.sandbox),
            _ => error.into(),
        }
    }
}

/// The sandbox that a request names, awake, and confined to `beneath` if the query has that.
pub(super) struct Chosen(pub Sandbox);

impl FromRequestParts<Api> for Chosen {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let named = Named::from_request_parts(parts, api).await?;
        let life = parts.headers.get(LIFE).and_then(|life| life.to_str().ok());
        let sandbox = api.sandbox(&named.caller, named.pool.as_deref(), &named.sandbox, life).await?;
        let Params(Where { beneath, .. }) = Params::from_request_parts(parts, api).await?;
        Ok(Self(match beneath {
            Some(directory) => sandbox.beneath(&directory)?,
            None => sandbox,
        }))
    }
}

/// The header `Last-Event-ID` with which a client resumes a stream: the number of the last event
/// that it received.
pub(super) struct LastEventId(pub Option<u64>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let Some(id) = parts.headers.get("last-event-id") else { return Ok(Self(None)) };
        let number = id.to_str().ok().and_then(|id| id.parse().ok());
        let wrong = || Error::invalid("Last-Event-ID", "must be the id of an event, which is a number");
        Ok(Self(Some(number.ok_or_else(wrong)?)))
    }
}

/// The number of items of a list, unless the request says.
const LISTED: u16 = 100;
/// The most that it may be.
const MAX_LISTED: u16 = 1_000;

/// Returns the number of items that a list may have, by the query parameter `limit`.
pub(super) fn list_limit<N: From<u16> + PartialOrd + Copy + Display>(limit: Option<N>) -> Result<N, Refusal> {
    let limit = limit.unwrap_or(LISTED.into());
    if limit < 1.into() || limit > MAX_LISTED.into() {
        return Err(Error::invalid("limit", format!("must be from 1 to {MAX_LISTED}, not {limit}")).into());
    }
    Ok(limit)
}

/// Returns the input that a body has, as text or as base64.
///
/// # Errors
/// `invalid`: it has both, or what is no base64.
pub(super) fn stdin_bytes(text: Option<String>, base64: Option<String>) -> eyot::Result<Option<Bytes>> {
    match (text, base64) {
        (text, None) => Ok(text.map(Bytes::from)),
        (None, Some(text)) => {
            let bytes =
                BASE64_STANDARD.decode(text).map_err(|error| Error::invalid("stdin_base64", error))?;
            Ok(Some(bytes.into()))
        }
        (Some(_), Some(_)) => Err(Error::invalid("stdin", "and `stdin_base64` can't both be there")),
    }
}
