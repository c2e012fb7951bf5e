//! The API: the sandboxes of an organization.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post, put};
use serde_json::{Value, json};

use super::KEY;
use super::machines::{Machines, refusal};

/// The sandboxes on a page of a list, where fewer are not asked for.
const PAGE: usize = 100;

type Org = State<Arc<Machines>>;

/// Returns the routes.
pub fn routes() -> Router<Arc<Machines>> {
    Router::new()
        .route("/api/sandbox", post(create).get(list))
        .route("/api/sandbox/{named}", get(find).delete(remove))
        .route("/api/sandbox/{named}/labels", put(set_labels))
        .route("/api/sandbox/{named}/toolbox-proxy-url", get(toolbox_url))
        .route("/api/sandbox/{named}/{change}", post(change))
        .layer(from_fn(authorised))
}

/// Lets only those pass who show the key.
pub async fn authorised(request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if shown != Some(&format!("Bearer {KEY}")) {
        return refusal(StatusCode::UNAUTHORIZED, "Invalid credentials");
    }
    next.run(request).await
}

async fn create(State(org): Org, Json(asked): Json<Value>) -> Result<Response, Response> {
    let machine = org.create(&asked)?;
    Ok(Json(org.described(&machine, false)).into_response())
}

async fn list(State(org): Org, Query(query): Query<HashMap<String, String>>) -> Result<Response, Response> {
    let wrong = |_| refusal(StatusCode::BAD_REQUEST, "labels must be JSON");
    let labels: BTreeMap<String, String> = query
        .get("labels")
        .map(|text| serde_json::from_str(text))
        .transpose()
        .map_err(wrong)?
        .unwrap_or_default();
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<usize>().ok());
    let (from, most) = (number("cursor").unwrap_or(0), number("limit").unwrap_or(PAGE).min(PAGE));
    let all: Vec<Value> = org
        .all()
        .iter()
        .filter(|machine| machine.has_labels(&labels))
        .map(|machine| org.described(machine, true))
        .collect();
    let next = (all.len() > from + most).then(|| (from + most).to_string());
    let items: Vec<Value> = all.into_iter().skip(from).take(most).collect();
    Ok(Json(json!({ "items": items, "nextCursor": next })).into_response())
}

async fn find(State(org): Org, Path(named): Path<String>) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&named)?;
    Ok(Json(org.described(&machine, false)).into_response())
}

async fn remove(State(org): Org, Path(named): Path<String>) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&named)?;
    org.change(&machine, "delete")?;
    Ok(Json(org.described(&machine, false)).into_response())
}

async fn set_labels(
    State(org): Org,
    Path(named): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&named)?;
    machine.set_labels(serde_json::from_value(asked["labels"].clone()).unwrap_or_default());
    Ok(Json(json!({ "labels": asked["labels"] })).into_response())
}

async fn toolbox_url(State(org): Org, Path(named): Path<String>) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&named)?;
    Ok(Json(json!({ "url": org.described(&machine, false)["toolboxProxyUrl"] })).into_response())
}

async fn change(
    State(org): Org,
    Path((named, change)): Path<(String, String)>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&named)?;
    match change.as_str() {
        "start" | "stop" => org.change(&machine, &change)?,
        "last-activity" => {}
        _ => return Err(refusal(StatusCode::NOT_FOUND, "Cannot POST")),
    }
    Ok(Json(org.described(&machine, false)).into_response())
}
