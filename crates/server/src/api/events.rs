//! The event log of the pools that a key opens.

use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use eyot::{Error, ErrorKind, SandboxName};
use eyot_engine::events::{Event, EventFilter, EventLog};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

use super::access::Caller;
use super::events_stream::events;
use super::extract::{LastEventId, with_pool};
use super::query::Params;
use super::state::Api;
use super::stopping::Stopping;
use crate::problem::{Problems, Refusal};

/// The most events that are read at once.
const BATCH: usize = 1000;

/// The query of the events.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Only events of this pool. By default those of every pool that the key opens.
    pool: Option<String>,
    /// Only events of this sandbox: NAME, POOL/NAME or its id. A name without a pool is one in
    /// `pool`, or in the key's first pool.
    sandbox: Option<String>,
    /// Number of the first event to send. By default the first that is kept. The header
    /// `Last-Event-ID` has the same use: the stream goes on behind the event of that number.
    from_seq: Option<u64>,
    /// Keeps the stream open and sends new events as they happen.
    #[serde(default)]
    follow: bool,
}

/// Streams the event log, oldest first: events `event`, each with its number as its id.
#[utoipa::path(get, path = "/v1/events", tag = "events", params(EventsQuery),
    responses((status = 200, description = "What happened", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn list(
    State(api): State<Api>,
    Extension(stopping): Extension<Stopping>,
    caller: Caller,
    Params(asked): Params<EventsQuery>,
    LastEventId(last_seen): LastEventId,
) -> Result<impl IntoResponse, Refusal> {
    let only = asked.pool.as_deref().map(|pool| caller.pool(Some(pool))).transpose()?;
    let sandbox = filter(&caller, &asked)?;
    let log = api.engine().events().cloned();
    let log = log.ok_or_else(|| Error::new(ErrorKind::Unsupported, "this server records no events"))?;
    let from_seq = last_seen.map(|seq| seq.saturating_add(1)).or(asked.from_seq).unwrap_or(1);
    let all = if asked.follow { log.follow(from_seq).boxed() } else { kept(log, from_seq) };
    let may_see = move |event: &Event| {
        let pool = event.pool.as_deref().and_then(|pool| SandboxName::parse(pool).ok());
        pool.is_some_and(|pool| caller.opens(&pool) && only.as_ref().is_none_or(|only| *only == pool))
            && sandbox.as_ref().is_none_or(|sandbox| sandbox.takes(event))
    };
    let seen = all.filter(move |event| std::future::ready(event.as_ref().map_or(true, &may_see)));
    Ok(events("event", seen, |event| Some(event.seq), asked.follow.then_some(stopping)))
}

/// Returns the filter by sandbox that a request asks for.
fn filter(caller: &Caller, asked: &EventsQuery) -> Result<Option<EventFilter>, Refusal> {
    let Some(named) = asked.sandbox.clone() else { return Ok(None) };
    let (pool, name) = with_pool(named, asked.pool.clone())?;
    Ok(Some(EventFilter::parse(&name, &caller.pool(pool.as_deref())?)?))
}

/// Reads the events that are in the log now.
fn kept(log: Arc<EventLog>, from_seq: u64) -> BoxStream<'static, eyot::Result<Event>> {
    let batches = futures_util::stream::unfold(Some((log, from_seq)), async |state| {
        let (log, from_seq) = state?;
        let reader = Arc::clone(&log);
        let read = tokio::task::spawn_blocking(move || reader.read(from_seq, BATCH)).await;
        let batch = read.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Internal, "read the event log").with_source(error))
        });
        let next = match &batch {
            Ok(batch) if batch.len() == BATCH => batch.last().map(|last| (log, last.seq + 1)),
            _ => None,
        };
        let items: Vec<eyot::Result<Event>> = match batch {
            Ok(batch) => batch.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        Some((futures_util::stream::iter(items), next))
    });
    batches.flatten().boxed()
}
