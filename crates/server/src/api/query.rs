//! The query of a request: its values, and that each of its parameters is known where it is sent.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use eyot::Error;
use serde::de::DeserializeOwned;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi as Document, RefOr};

use crate::problem::Refusal;

/// The query of a request.
pub(super) struct Params<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let Query(value) =
            Query::try_from_uri(&parts.uri).map_err(|rejection| wrong(&rejection.body_text()))?;
        Ok(Self(value))
    }
}

/// Refuses a query for what its parser says: `parameter: reason`, after words of its own.
fn wrong(said: &str) -> Refusal {
    let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(said);
    if let Some(name) = said.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return Error::invalid(name, "must be in the query").into();
    }
    match said.split_once(": ") {
        Some((name, reason)) => Error::invalid(name, in_plain_words(reason)).into(),
        None => Error::invalid("query", in_plain_words(said)).into(),
    }
}

/// Returns what the parser says of a value without the words of Rust.
fn in_plain_words(reason: &str) -> String {
    let plain = match reason {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "must be a whole number that is not negative"
        }
        "number too large to fit in target type" => "must be a smaller number",
        "provided string was not `true` or `false`" => "must be `true` or `false`",
        _ => return reason.replace("unknown variant", "has the unknown value"),
    };
    plain.to_owned()
}

/// The query parameters that each operation takes, by the API's document.
#[derive(Clone)]
pub(super) struct KnownParameters(Arc<HashMap<(Method, String), Vec<String>>>);

impl KnownParameters {
    /// Collects them from the document of the routes.
    pub fn of(document: &Document) -> Self {
        let mut known = HashMap::new();
        for (path, item) in &document.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
                (Method::PATCH, &item.patch),
            ];
            for (method, operation) in operations {
                if let Some(operation) = operation {
                    known.insert((method, path.clone()), in_query(operation));
                }
            }
        }
        Self(Arc::new(known))
    }

    /// Checks the query of a request to this path.
    fn check(&self, method: &Method, path: &str, uri: &Uri) -> Result<(), Refusal> {
        let method = if method == Method::HEAD { Method::GET } else { method.clone() };
        let Some(known) = self.0.get(&(method, path.to_owned())) else { return Ok(()) };
        let Ok(Query(sent)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else { return Ok(()) };
        let Some((name, _)) = sent.iter().find(|(name, _)| !known.contains(name)) else { return Ok(()) };
        let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let expected = match known.len() {
            0 => "this request takes no query".to_owned(),
            1 => format!("expected {list}"),
            _ => format!("expected one of {list}"),
        };
        Err(Error::invalid(name, format!("is not known here: {expected}")).into())
    }
}

fn in_query(operation: &Operation) -> Vec<String> {
    let parameters = operation.parameters.iter().flatten();
    let in_query = parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
        _ => None,
    });
    in_query.collect()
}

/// Refuses a request whose query has a parameter that its operation does not take: a name that is
/// misspelt must not pass for one that was left out.
pub(super) async fn refuse_unknown(
    State(known): State<KnownParameters>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if request.uri().query().is_some() {
        known.check(request.method(), path.as_str(), request.uri())?;
    }
    Ok(next.run(request).await)
}
