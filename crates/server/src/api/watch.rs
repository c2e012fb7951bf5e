//! Watches files, and reports changes as server-sent events.

use axum::Extension;
use axum::response::IntoResponse;
use eyot::WatchOptions;
use serde::Deserialize;
use utoipa::IntoParams;

use super::events_stream::events;
use super::extract::{Chosen, TheSandbox, Where};
use super::query::Params;
use super::stopping::Stopping;
use crate::problem::{Problems, Refusal};

/// The query of a watch.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WatchQuery {
    /// Absolute, or relative to the sandbox's working directory.
    path: String,
    /// Watches everything below a directory too; by default `true`.
    recursive: Option<bool>,
    /// Number of directories to watch at most, 1 to 100,000; by default 10,000.
    max_directories: Option<u32>,
}

/// Streams changes of a file, or of the names in a directory, from the moment that the answer
/// begins: events `change`.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/watch", tag = "files", params(TheSandbox, Where, WatchQuery),
    responses((status = 200, description = "What happens", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn watch(
    Extension(stopping): Extension<Stopping>,
    Chosen(sandbox): Chosen,
    Params(asked): Params<WatchQuery>,
) -> Result<impl IntoResponse, Refusal> {
    let usual = WatchOptions::default();
    let options = WatchOptions {
        recursive: asked.recursive.unwrap_or(usual.recursive),
        max_directories: asked.max_directories.unwrap_or(usual.max_directories),
    };
    let changes = sandbox.watch(&asked.path, options).await?;
    Ok(events("change", changes, |_| None, Some(stopping)))
}
