//! Transcripts: the requests, events and outcomes of a scenario in one runtime, in a form that can be compared.
//!
//! Ids become their order of appearance. Times are left out, and so are the differences that every run has; docs/agents.md
//! lists them with their reasons. A field that is null is the same as one that is missing.

mod events;
mod names;
mod requests;

use eyot_agent::standin::StandIn;
use serde_json::{Value, json};

use events::{events_of, plain_result};
use names::ShortNames;
pub use requests::{mask_summary, without_own_limits, without_skills};
use requests::{request, sort_summaries};

/// Makes the transcript of a scenario from the requests and from the events and outcomes. `is_parallel`: what happens in one
/// session is compared apart from what happens in the others.
pub fn transcript(stand_in: &StandIn, mut played: Value, is_parallel: bool) -> Value {
    let mut requests: Vec<Value> = stand_in.requests().into_iter().map(request).collect();
    let mut events = played["events"].as_array().cloned().unwrap_or_default();
    let mut names = ShortNames::default();
    events.iter().filter(|event| event["type"] == "task_start").for_each(|task| names.add(&task["taskId"]));
    if is_parallel {
        events.sort_by_key(|event| names.shortened(event["session"].as_str().unwrap_or_default()));
        requests.sort_by_key(ToString::to_string);
    }
    sort_summaries(&mut requests);
    played["outcomes"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .for_each(|done| plain_result(&mut done["result"]));
    let events = events_of(events, is_parallel.then_some(&mut names));
    let mut whole = json!({"events": events, "outcomes": played["outcomes"], "requests": requests});
    names.shorten(&mut whole);
    whole
}

/// Merges blocks of events that are the same as the block before, and requests that are: a turn that was asked for again.
pub fn without_repetitions(transcript: &mut Value) {
    let events = transcript["events"].as_array().cloned().unwrap_or_default();
    let ends = |event: &Value| event["type"] == "operation_start" || event["type"] == "turn";
    let mut blocks: Vec<&[Value]> = events.chunk_by(|one, _| !ends(one)).collect();
    blocks.dedup();
    transcript["events"] = json!(blocks.concat());
    if let Some(requests) = transcript["requests"].as_array_mut() {
        requests.dedup();
    }
}
