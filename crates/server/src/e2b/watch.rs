//! Watches of directories: as a stream, and as a list that a client asks for again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Result, Sandbox, WatchEvent, WatchEventKind, WatchOptions};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::connect::{Code, RpcError};
use crate::random_hex::random_hex;

/// The most events that are kept for a client that does not ask for them.
const MAX_KEPT_EVENTS: usize = 10_000;

/// The watches of one sandbox that clients ask for their events.
#[derive(Default)]
pub(super) struct KeptWatches(Mutex<BTreeMap<String, KeptWatch>>);

struct KeptWatch {
    kept: Arc<Mutex<Vec<Value>>>,
    task: AbortHandle,
}

impl Drop for KeptWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches a directory. The events are in envd's terms.
pub(super) async fn events(
    sandbox: &Sandbox,
    path: &str,
    recursive: bool,
) -> Result<BoxStream<'static, Result<Value>>> {
    let options = WatchOptions { recursive, ..WatchOptions::default() };
    let events = sandbox.watch(path, options).await?;
    let root = format!("{}/", path.trim_end_matches('/'));
    let values = events.flat_map(move |event| {
        let values: Vec<Result<Value>> = match event {
            Ok(event) => event_values(&root, &event).into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        stream::iter(values)
    });
    Ok(values.boxed())
}

/// Returns an event in envd's terms.
fn event_values(root: &str, event: &WatchEvent) -> Vec<Value> {
    let named = |path: &str, kind: &str| {
        let name = path.strip_prefix(root).unwrap_or_default();
        json!({ "name": name, "type": kind })
    };
    match &event.kind {
        WatchEventKind::Created => vec![named(&event.path, "EVENT_TYPE_CREATE")],
        WatchEventKind::Modified => vec![named(&event.path, "EVENT_TYPE_WRITE")],
        WatchEventKind::Removed => vec![named(&event.path, "EVENT_TYPE_REMOVE")],
        WatchEventKind::Renamed { from, .. } => {
            vec![named(from, "EVENT_TYPE_RENAME"), named(&event.path, "EVENT_TYPE_CREATE")]
        }
        _ => Vec::new(),
    }
}

/// Returns the messages of a stream of events.
pub(super) fn streamed(
    events: BoxStream<'static, Result<Value>>,
) -> impl Stream<Item = std::result::Result<Value, RpcError>> {
    let start = stream::once(async { Ok(json!({ "start": {} })) });
    start.chain(events.map(|event| Ok(json!({ "filesystem": event.map_err(RpcError::from)? }))))
}

impl KeptWatches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, KeptWatch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps events until a client asks for them. Returns the id of the watch.
    pub fn add(&self, mut events: BoxStream<'static, Result<Value>>) -> Result<String> {
        let id = random_hex::<8>()?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        let filled = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                keep(&mut filled.lock().unwrap_or_else(PoisonError::into_inner), event);
            }
        });
        self.lock().insert(id.clone(), KeptWatch { kept, task: task.abort_handle() });
        Ok(id)
    }

    /// Takes the events that have come.
    pub fn take_events(&self, id: &str) -> std::result::Result<Vec<Value>, RpcError> {
        let watchers = self.lock();
        let watcher = watchers.get(id).ok_or_else(|| missing(id))?;
        Ok(std::mem::take(&mut *watcher.kept.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub fn remove(&self, id: &str) -> std::result::Result<(), RpcError> {
        self.lock().remove(id).map(drop).ok_or_else(|| missing(id))
    }

    pub fn clear(&self) {
        self.lock().clear();
    }
}

/// Keeps an event, unless so many are kept that the client can't be reading them.
fn keep(kept: &mut Vec<Value>, event: Value) {
    if kept.len() < MAX_KEPT_EVENTS {
        kept.push(event);
    }
}

fn missing(id: &str) -> RpcError {
    RpcError::new(Code::NotFound, format!("watcher with id {id} not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_events_as_the_limit_are_kept_and_one_more_is_not() {
        let mut kept = vec![Value::Null; MAX_KEPT_EVENTS - 1];
        keep(&mut kept, Value::Null);
        assert_eq!(kept.len(), MAX_KEPT_EVENTS);
        keep(&mut kept, Value::Null);
        assert_eq!(kept.len(), MAX_KEPT_EVENTS);
    }
}
