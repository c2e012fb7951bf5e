//! The service `filesystem.Filesystem` of envd.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use eyot::{CreateDirOptions, RemoveOptions};
use serde::Deserialize;
use serde_json::json;

use super::connect::{self, Code, Envelopes, RpcError};
use super::gateway::{GatewayEntry, no_files_of};
use super::process::absolute;
use super::{E2bApi, entry, watch};

type Answer = Result<Response, RpcError>;

/// Returns the routes.
pub(super) fn routes() -> Router<E2bApi> {
    Router::new()
        .route("/filesystem.Filesystem/Stat", post(stat))
        .route("/filesystem.Filesystem/ListDir", post(list))
        .route("/filesystem.Filesystem/MakeDir", post(make))
        .route("/filesystem.Filesystem/Move", post(rename))
        .route("/filesystem.Filesystem/Remove", post(remove))
        .route("/filesystem.Filesystem/WatchDir", post(watch_dir))
        .route("/filesystem.Filesystem/CreateWatcher", post(create_watcher))
        .route("/filesystem.Filesystem/GetWatcherEvents", post(watcher_events))
        .route("/filesystem.Filesystem/RemoveWatcher", post(remove_watcher))
}

#[derive(Deserialize)]
struct PathRequest {
    #[serde(default)]
    path: String,
    #[serde(default)]
    depth: u32,
    #[serde(default)]
    recursive: bool,
}

#[derive(Deserialize)]
struct MoveRequest {
    source: String,
    destination: String,
}

/// Refuses to act as somebody else.
fn check_user(entry: &GatewayEntry) -> Result<(), RpcError> {
    match &entry.user {
        None => Ok(()),
        Some(user) => Err(RpcError::new(Code::Unimplemented, no_files_of(user))),
    }
}

/// Returns the absolute path of a call that changes something: without one it would mean the user's home.
fn changed_path(path: &str) -> Result<String, RpcError> {
    if path.is_empty() {
        return Err(RpcError::new(Code::InvalidArgument, "the request names no path"));
    }
    Ok(absolute(path))
}

async fn stat(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let path = absolute(&connect::read::<PathRequest>(&body)?.path);
    let entry = entry::one(&entered.record.sandbox(), entered.user.as_ref(), &path).await?;
    Ok(connect::answer(json!({ "entry": entry })))
}

async fn list(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let PathRequest { path, depth, .. } = connect::read(&body)?;
    let (sandbox, path) = (entered.record.sandbox(), absolute(&path));
    let entries = entry::below(&sandbox, entered.user.as_ref(), &path, depth.max(1)).await?;
    Ok(connect::answer(json!({ "entries": entries })))
}

async fn make(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    check_user(&entered)?;
    let path = changed_path(&connect::read::<PathRequest>(&body)?.path)?;
    let sandbox = entered.record.sandbox();
    if sandbox.exists(&path).await? {
        return Err(if sandbox.stat(&path).await?.is_directory {
            RpcError::new(Code::AlreadyExists, format!("directory already exists: {path}"))
        } else {
            let message = format!("path already exists but it is not a directory: {path}");
            RpcError::new(Code::InvalidArgument, message)
        });
    }
    sandbox.create_dir(&path, CreateDirOptions { recursive: true }).await?;
    let entry = entry::one(&sandbox, entered.user.as_ref(), &path).await?;
    Ok(connect::answer(json!({ "entry": entry })))
}

async fn rename(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    check_user(&entered)?;
    let MoveRequest { source, destination } = connect::read(&body)?;
    let (source, destination) = (changed_path(&source)?, changed_path(&destination)?);
    let sandbox = entered.record.sandbox();
    let parent = sandbox.resolve_path(&destination)?.parent();
    sandbox.create_dir(parent.as_str(), CreateDirOptions { recursive: true }).await?;
    sandbox.rename(&source, &destination).await?;
    let entry = entry::one(&sandbox, entered.user.as_ref(), &destination).await?;
    Ok(connect::answer(json!({ "entry": entry })))
}

async fn remove(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    check_user(&entered)?;
    let path = changed_path(&connect::read::<PathRequest>(&body)?.path)?;
    let options = RemoveOptions { recursive: true, force: true };
    entered.record.sandbox().remove(&path, options).await?;
    Ok(connect::answer(json!({})))
}

async fn watch_dir(Extension(entered): Extension<GatewayEntry>, _headers: HeaderMap, body: Bytes) -> Answer {
    check_user(&entered)?;
    let PathRequest { path, recursive, .. } = connect::read(&Envelopes::only(&body)?)?;
    let path = absolute(&path);
    let events = watch::events(&entered.record.sandbox(), &path, recursive).await?;
    Ok(connect::stream(watch::streamed(events)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfWatcher {
    watcher_id: String,
}

async fn create_watcher(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    check_user(&entered)?;
    let PathRequest { path, recursive, .. } = connect::read(&body)?;
    let events = watch::events(&entered.record.sandbox(), &absolute(&path), recursive).await?;
    let watcher_id = entered.record.watchers.add(events)?;
    Ok(connect::answer(json!({ "watcherId": watcher_id })))
}

async fn watcher_events(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let OfWatcher { watcher_id } = connect::read(&body)?;
    let events = entered.record.watchers.take_events(&watcher_id)?;
    Ok(connect::answer(json!({ "events": events })))
}

async fn remove_watcher(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let OfWatcher { watcher_id } = connect::read(&body)?;
    entered.record.watchers.remove(&watcher_id)?;
    Ok(connect::answer(json!({})))
}
