//! The REST calls: create, find, list, pause, resume and kill sandboxes, and set their time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use eyot::{NetworkMode, Sandbox, SandboxSpec};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::records::{NewSandboxRecord, SandboxRecord};
use super::refusal::E2bRefusal;
use super::{E2bApi, ENVD_VERSION, transition};
use crate::random_hex::random_hex;

/// The time that a sandbox has by default, in seconds.
const DEFAULT_TIMEOUT_S: u64 = 300;
/// The longest time that a sandbox may have, in seconds.
const MAX_TIMEOUT_S: u64 = 24 * 60 * 60;
/// The sandboxes on a page of a list, at most and by default.
const MAX_PAGE: usize = 100;

type Answer<T = Response> = Result<T, E2bRefusal>;

/// Returns the routes.
pub(super) fn routes() -> Router<E2bApi> {
    Router::new()
        .route("/sandboxes", get(list).post(create))
        .route("/v2/sandboxes", get(list).post(create))
        .route("/sandboxes/{id}", get(detail).delete(kill))
        .route("/sandboxes/{id}/timeout", post(set_timeout))
        .route("/sandboxes/{id}/pause", post(pause))
        .route("/sandboxes/{id}/resume", post(connect))
        .route("/sandboxes/{id}/connect", post(connect))
        .route("/v2/sandboxes/{id}/connect", post(connect))
}

/// Refuses a request without the key.
pub(super) async fn require_key(State(api): State<E2bApi>, request: Request, next: Next) -> Response {
    let key = request.headers().get("x-api-key").map(|key| key.as_bytes().to_vec()).unwrap_or_default();
    if bool::from(key.ct_eq(api.options.api_key.as_bytes())) {
        next.run(request).await
    } else {
        E2bRefusal::new(StatusCode::UNAUTHORIZED, "Invalid API key").into_response()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateBody {
    #[serde(rename = "templateID")]
    template: String,
    timeout: Option<u64>,
    #[serde(default)]
    auto_pause: bool,
    #[serde(rename = "allow_internet_access")]
    allow_internet_access: Option<bool>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    env_vars: BTreeMap<String, String>,
}

async fn create(State(api): State<E2bApi>, headers: HeaderMap, Json(new): Json<CreateBody>) -> Answer {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
    let _turn = match &key {
        Some(key) => Some(api.records.creates.take(key).await),
        None => None,
    };
    if let Some(record) = key.as_deref().and_then(|key| api.records.by_idempotency_key(key)) {
        return Ok((StatusCode::CREATED, Json(session(&api, &record))).into_response());
    }
    let timeout_s = checked_timeout(new.timeout)?;
    // Native sandboxes have a kernel's network or the way out through the proxy; the latter is like E2B's.
    let network =
        if new.allow_internet_access == Some(true) { NetworkMode::Egress } else { NetworkMode::None };
    let spec = SandboxSpec { network, ..SandboxSpec::default() };
    let access_token = random_hex::<16>()?;
    let sandbox = Sandbox::create(&*api.provider, spec).await?;
    let record = Arc::new(SandboxRecord::new(NewSandboxRecord {
        sandbox,
        template: new.template,
        metadata: new.metadata,
        variables: new.env_vars,
        access_token,
        allow_internet_access: new.allow_internet_access,
        auto_pause: new.auto_pause,
        idempotency_key: key,
        timeout_s,
    }));
    api.records.add(Arc::clone(&record));
    tokio::spawn(transition::end_in_time(api.clone(), Arc::clone(&record)));
    Ok((StatusCode::CREATED, Json(session(&api, &record))).into_response())
}

fn checked_timeout(timeout_s: Option<u64>) -> Answer<u64> {
    match timeout_s.unwrap_or(DEFAULT_TIMEOUT_S) {
        timeout_s if timeout_s <= MAX_TIMEOUT_S => Ok(timeout_s),
        _ => {
            let message = format!("Timeout cannot be greater than {} hours", MAX_TIMEOUT_S / 3600);
            Err(E2bRefusal::new(StatusCode::BAD_REQUEST, message))
        }
    }
}

/// Returns what a client needs to reach a sandbox.
fn session(api: &E2bApi, record: &SandboxRecord) -> Value {
    json!({
        "templateID": record.template,
        "sandboxID": record.id,
        "clientID": "eyot",
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": record.access_token,
        "domain": api.options.domain,
    })
}

fn time(api: &E2bApi, time: SystemTime) -> String {
    let skew = Duration::from_secs(api.options.clock_skew_s.unsigned_abs());
    let told = if api.options.clock_skew_s < 0 { time - skew } else { time + skew };
    humantime::format_rfc3339_micros(told).to_string()
}

/// Describes a sandbox. A limit that it does not have is 0.
fn listed(api: &E2bApi, record: &SandboxRecord) -> Value {
    let sandbox = record.sandbox();
    let limits = &sandbox.info().spec.limits;
    json!({
        "templateID": record.template,
        "sandboxID": record.id,
        "clientID": "eyot",
        "startedAt": time(api, record.started),
        "endAt": time(api, record.ends()),
        "cpuCount": limits.cpus.unwrap_or_default().ceil(),
        "memoryMB": limits.memory_mib.unwrap_or_default(),
        "diskSizeMB": limits.disk_mib.unwrap_or_default(),
        "state": if record.is_paused() { "paused" } else { "running" },
        "envdVersion": ENVD_VERSION,
        "metadata": record.metadata,
    })
}

async fn detail(State(api): State<E2bApi>, Path(id): Path<String>) -> Answer<Json<Value>> {
    let record = transition::find(&api, &id)?;
    let mut detail = listed(&api, &record);
    detail["envdAccessToken"] = json!(record.access_token);
    detail["domain"] = json!(api.options.domain);
    detail["allowInternetAccess"] = json!(record.allow_internet_access);
    Ok(Json(detail))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SandboxQuery {
    metadata: Option<String>,
    state: Option<String>,
    next_token: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
}

async fn list(State(api): State<E2bApi>, Query(query): Query<SandboxQuery>) -> Answer {
    let wanted = query.metadata.as_deref().map(pairs).unwrap_or_default();
    let states: Option<Vec<&str>> = query.state.as_deref().map(|states| states.split(',').collect());
    let fits = |record: &Arc<SandboxRecord>| {
        let state = if record.is_paused() { "paused" } else { "running" };
        states.as_ref().is_none_or(|states| states.contains(&state))
            && wanted.iter().all(|(key, value)| record.metadata.get(key) == Some(value))
    };
    let mut all: Vec<_> = api.records.list().into_iter().filter(fits).collect();
    if query.order.as_deref() == Some("asc") {
        all.reverse();
    }
    let wrong = |_| E2bRefusal::new(StatusCode::BAD_REQUEST, "Invalid next token");
    let from = query.next_token.as_deref().map_or(Ok(0), str::parse::<usize>).map_err(wrong)?;
    let (page, next) = page(all.len(), from, query.limit);
    let told: Vec<_> = all[page].iter().map(|record| listed(&api, record)).collect();
    let mut answer = Json(told).into_response();
    if let Some(next) = next {
        answer.headers_mut().insert("x-next-token", next.into());
    }
    Ok(answer)
}

/// Returns a page of a list, and where the next one begins.
fn page(total: usize, from: usize, limit: Option<usize>) -> (Range<usize>, Option<usize>) {
    let from = from.min(total);
    let to = total.min(from.saturating_add(limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE)));
    (from..to, Some(to).filter(|to| *to < total))
}

/// Reads the metadata of a query, whose names and values are encoded once more.
fn pairs(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decoded(&decoded(key)), decoded(&decoded(value)))).collect()
}

async fn kill(State(api): State<E2bApi>, Path(id): Path<String>) -> Answer<StatusCode> {
    transition::kill(&api, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct TimeoutBody {
    timeout: Option<u64>,
}

async fn set_timeout(
    State(api): State<E2bApi>,
    Path(id): Path<String>,
    Json(body): Json<TimeoutBody>,
) -> Answer<StatusCode> {
    let record = transition::find(&api, &id)?;
    record.set_timeout(checked_timeout(body.timeout)?, false);
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(State(api): State<E2bApi>, Path(id): Path<String>) -> Answer<StatusCode> {
    transition::pause(&api, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a sandbox more time, and wakes it if it is paused.
async fn connect(State(api): State<E2bApi>, Path(id): Path<String>, Json(body): Json<TimeoutBody>) -> Answer {
    let (record, is_woken) = transition::connect(&api, &id, checked_timeout(body.timeout)?).await?;
    let status = if is_woken { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(session(&api, &record))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_in_a_query_are_decoded_twice() {
        let pairs = pairs("a%2520b=c%252Fd&plain=e");
        assert_eq!(pairs, [("a b".to_owned(), "c/d".to_owned()), ("plain".to_owned(), "e".to_owned())]);
    }

    #[test]
    fn a_page_has_as_many_as_the_limit_and_the_next_one_begins_behind_it() {
        assert_eq!(page(MAX_PAGE, 0, None), (0..MAX_PAGE, None));
        assert_eq!(page(MAX_PAGE + 1, 0, Some(MAX_PAGE + 1)), (0..MAX_PAGE, Some(MAX_PAGE)));
        assert_eq!(page(5, 4, Some(0)), (4..5, None));
        assert_eq!(page(5, 9, None), (5..5, None));
    }

    #[test]
    fn the_longest_time_is_taken_and_a_second_more_is_refused() {
        assert_eq!(checked_timeout(Some(MAX_TIMEOUT_S)).unwrap(), MAX_TIMEOUT_S);
        assert!(checked_timeout(Some(MAX_TIMEOUT_S + 1)).is_err());
        assert_eq!(checked_timeout(None).unwrap(), DEFAULT_TIMEOUT_S);
    }
}
