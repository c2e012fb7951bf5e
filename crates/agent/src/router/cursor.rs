//! Cursors of lists, in Flue's form: base64url of JSON or of two texts. A cursor that is none is as if there were no cursor.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::event::{parse_rfc3339, rfc3339};

/// The place in a list of runs behind a run: its start and its id.
#[derive(Serialize, Deserialize)]
struct RunCursor {
    s: String,
    r: String,
}

/// Returns the cursor behind a run.
pub(super) fn of_run(started_ms: u64, id: &str) -> String {
    let cursor = RunCursor { s: rfc3339(started_ms), r: id.to_owned() };
    BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).unwrap_or_default())
}

/// Returns the start and the id of the run that a cursor is behind.
pub(super) fn run_of(cursor: &str) -> Option<(u64, String)> {
    let RunCursor { s, r } = serde_json::from_slice(&decoded(cursor)?).ok()?;
    Some((parse_rfc3339(&s)?, r))
}

/// Returns the cursor behind an instance.
pub(super) fn of_instance(agent: &str, instance: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{agent}\0{instance}"))
}

/// Returns the instance of this agent that a cursor is behind.
pub(super) fn instance_of(cursor: &str, agent: &str) -> Option<String> {
    let text = String::from_utf8(decoded(cursor)?).ok()?;
    let (of, instance) = text.split_once('\0')?;
    (of == agent).then(|| instance.to_owned())
}

fn decoded(cursor: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).ok()
}
