//! The stream of a run: its events, and the calls that wait for its caller.

use std::collections::HashSet;
use std::convert::Infallible;

use axum::Extension;
use axum::response::sse::{Event, Sse};
use eyot::Result;
use eyot_agent::{AgentEvent, Agents, ClientToolCall};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::watch;

use super::*;
use crate::api::events_stream::{event, keep_alive};

/// Streams a run. Each event of the run is an event of its type, under its number. A call of one of the caller's own tools is an
/// event `tool_request`, without a number; one that waits when the stream begins comes first. The stream ends behind `run_end`.
/// After a break it goes on behind the event that `Last-Event-ID` names.
#[utoipa::path(get, path = "/v1/runs/{run}/stream", tag = "agents",
    params(TheRun, ("last-event-id" = Option<u64>, Header, description = "The number of the last event that came")),
    responses((status = 200, description = "The events of the run", content_type = "text/event-stream"),
        Problems))]
pub(in crate::api) async fn stream(
    State(api): State<Api>,
    Extension(stopping): Extension<Stopping>,
    caller: Caller,
    Path(run): Path<String>,
    LastEventId(last_seen): LastEventId,
) -> Result<impl IntoResponse, Refusal> {
    api.run_of(&caller, &run).await?;
    let agents = api.agents_or_refuse()?.clone();
    let from = last_seen.map_or(0, |last| last.saturating_add(1));
    let events = agents.follow(&run, from).await?;
    let calls = CallRequests { changes: agents.client_tool_changes(), agents, run, told: HashSet::new() };
    Ok(Sse::new(stopping.ends(both(events, calls).map(Ok::<_, Infallible>))).keep_alive(keep_alive()))
}

/// The calls of a run that begin to wait.
struct CallRequests {
    agents: Agents,
    run: String,
    changes: watch::Receiver<u64>,
    /// The calls that were told, of those that wait.
    told: HashSet<String>,
}

impl CallRequests {
    /// Returns the calls that wait and were not told.
    fn news(&mut self) -> Vec<ClientToolCall> {
        self.changes.mark_unchanged();
        let waiting = self.agents.client_tool_calls(&self.run);
        let news = waiting.iter().filter(|call| !self.told.contains(&call.id)).cloned().collect();
        self.told = waiting.into_iter().map(|call| call.id).collect();
        news
    }
}

/// Merges the events of a run with the calls that wait. It ends with the events.
fn both(
    events: BoxStream<'static, Result<AgentEvent>>,
    mut calls: CallRequests,
) -> BoxStream<'static, Event> {
    let first = calls.news();
    let later = stream::unfold(Some((events, calls)), async |state| {
        let (mut events, mut calls) = state?;
        tokio::select! {
            biased;
            told = events.next() => match told? {
                Ok(told) => Some((vec![of_run(&told)], Some((events, calls)))),
                Err(error) => {
                    let problem = event("problem", &Refusal::from(error).problem(), None);
                    Some((vec![problem], None))
                }
            },
            _ = calls.changes.changed() => {
                let news = calls.news().iter().map(request).collect();
                Some((news, Some((events, calls))))
            }
        }
    });
    let first: Vec<Event> = first.iter().map(request).collect();
    stream::iter(first).chain(later.flat_map(stream::iter)).boxed()
}

fn of_run(told: &AgentEvent) -> Event {
    event(told.kind.name(), told, Some(told.event_index))
}

fn request(call: &ClientToolCall) -> Event {
    event("tool_request", call, None)
}
