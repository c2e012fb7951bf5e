//! Tools that the caller of a run answers itself: a call waits here until the caller posts its result.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use eyot_tools::{ToolDef, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::message::timestamp_ms;

/// The time in which a caller answers a call of its tools, in milliseconds, unless the run says.
pub const DEFAULT_CLIENT_TOOL_TIMEOUT_MS: u64 = 300_000;
/// The longest that it may be.
pub const MAX_CLIENT_TOOL_TIMEOUT_MS: u64 = 3_600_000;
/// The most tools of one run's caller.
pub const MAX_CLIENT_TOOLS: usize = 128;

/// A tool that the caller of a run answers itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "router", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    /// The name: at most 64 letters, digits, `_` and `-`. No tool of the agent has it.
    pub name: String,
    /// The description that the model is shown.
    pub description: String,
    /// The JSON Schema of the arguments; its `type` is `object`.
    #[cfg_attr(feature = "router", schema(value_type = Object))]
    pub parameters: Value,
}

/// A call of a caller's tool that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "router", derive(utoipa::ToSchema))]
pub struct ClientToolCall {
    /// The id of the call, as in the event `tool_start`.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, which fit the tool's schema as far as it is checked.
    #[cfg_attr(feature = "router", schema(value_type = Object))]
    pub arguments: Value,
    /// The time after which the call has failed, in milliseconds since 1970 (UTC).
    pub deadline_ms: u64,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "router", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ClientToolAnswer {
    /// The text for the model.
    pub content: String,
    /// The call failed, and the text says why.
    #[serde(default)]
    pub is_error: bool,
}

/// The calls that wait for their callers. Clones share them.
#[derive(Clone)]
pub(crate) struct WaitingCalls {
    calls: Arc<Mutex<BTreeMap<(String, String), WaitingCall>>>,
    changes: watch::Sender<u64>,
}

struct WaitingCall {
    number: u64,
    call: ClientToolCall,
    answer: oneshot::Sender<ClientToolAnswer>,
}

/// A call that waits. Dropped, it waits no more.
struct CallPlace {
    calls: WaitingCalls,
    key: (String, String),
    number: u64,
}

/// The numbers of calls, which tell one from a later one with the same id.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl ClientTool {
    /// Checks tools and a timeout as a caller gives them.
    pub(crate) fn check(tools: &[Self], timeout_ms: Option<u64>) -> Result<()> {
        if tools.len() > MAX_CLIENT_TOOLS {
            return Err(Error::invalid("tools", format!("must be at most {MAX_CLIENT_TOOLS}")));
        }
        if timeout_ms.is_some_and(|ms| !(1..=MAX_CLIENT_TOOL_TIMEOUT_MS).contains(&ms)) {
            let range = format!("must be from 1 to {MAX_CLIENT_TOOL_TIMEOUT_MS}");
            return Err(Error::invalid("tool_timeout_ms", range));
        }
        for (number, tool) in tools.iter().enumerate() {
            if tools[..number].iter().any(|before| before.name == tool.name) {
                return Err(Error::invalid("tools", format!("has `{}` twice", tool.name)));
            }
            tool.to_def(&WaitingCalls::default(), "", 1).map_err(|error| error.context("tools"))?;
        }
        Ok(())
    }

    /// Returns the tool as the agent has it: a call waits for the caller of the run.
    pub(crate) fn to_def(&self, calls: &WaitingCalls, run: &str, timeout_ms: u64) -> Result<ToolDef> {
        let (calls, run, tool) = (calls.clone(), run.to_owned(), self.name.clone());
        ToolDef::new(&self.name, &self.description, self.parameters.clone(), move |context, arguments| {
            let (calls, run, tool) = (calls.clone(), run.clone(), tool.clone());
            let id = context.call_id.unwrap_or_else(|| format!("call_{}", ulid::Ulid::generate()));
            let deadline_ms = timestamp_ms().saturating_add(timeout_ms);
            let call = ClientToolCall { id, tool, arguments, deadline_ms };
            async move { calls.wait(&run, call, timeout_ms).await }
        })
    }
}

impl Default for WaitingCalls {
    fn default() -> Self {
        Self { calls: Arc::default(), changes: watch::Sender::new(0) }
    }
}

impl WaitingCalls {
    /// Returns the waiting calls of a run.
    pub(crate) fn of_run(&self, run: &str) -> Vec<ClientToolCall> {
        let calls = self.lock();
        let from = (run.to_owned(), String::new());
        let of_run = calls.range(from..).take_while(|((of, _), _)| of == run);
        of_run.map(|(_, waiting)| waiting.call.clone()).collect()
    }

    /// Returns a receiver that changes when a call of any run begins or ends to wait.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Answers a call. `not_found`: no such call waits.
    pub(crate) fn answer(&self, run: &str, call: &str, answer: ClientToolAnswer) -> Result<()> {
        let waiting = self.lock().remove(&(run.to_owned(), call.to_owned()));
        match waiting.map(|waiting| waiting.answer.send(answer)) {
            Some(Ok(())) => Ok(()),
            _ => {
                let message = format!("no tool call `{call}` of run `{run}` waits");
                Err(Error::new(ErrorKind::NotFound, message)
                    .with_hint("it was answered, its deadline has passed, or the run went on without it"))
            }
        }
    }

    /// Waits for the answer to a call.
    async fn wait(self, run: &str, call: ClientToolCall, timeout_ms: u64) -> Result<ToolOutput> {
        let (tool, key) = (call.tool.clone(), (run.to_owned(), call.id.clone()));
        let (answer, answered) = oneshot::channel();
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        match self.lock().entry(key.clone()) {
            Entry::Vacant(place) => _ = place.insert(WaitingCall { number, call, answer }),
            Entry::Occupied(_) => {
                let message = format!("call `{tool}`: a call with the id `{}` waits already", key.1);
                return Err(Error::new(ErrorKind::Conflict, message));
            }
        }
        let _place = CallPlace { calls: self.clone(), key, number };
        self.changed();
        match tokio::time::timeout(Duration::from_millis(timeout_ms), answered).await {
            Ok(Ok(answer)) if answer.is_error => Ok(ToolOutput::error(answer.content)),
            Ok(Ok(answer)) => Ok(ToolOutput::text(answer.content)),
            Ok(Err(_)) => Err(Error::new(ErrorKind::Cancelled, format!("the call of `{tool}` was given up"))),
            Err(_) => {
                let message = format!("call `{tool}`: its client did not answer within {timeout_ms} ms");
                Err(Error::new(ErrorKind::Timeout, message))
            }
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), WaitingCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(waiting) = self.calls.lock().entry(self.key.clone())
            && waiting.get().number == self.number
        {
            waiting.remove();
        }
        self.calls.changed();
    }
}
