//! The calls of a server about snapshots, forks, commits, rollbacks and comparisons.

use eyot::wire::SnapshotList;
use eyot::{CompareOptions, Error, ErrorKind, FileChanges, Result, SnapshotInfo};
use eyot_engine::{
    CommitOptions, ComparedPoint, ForkOptions, Forks, ImageCommitted, RollbackDone, RollbackOptions,
    SnapshotOptions, SnapshotTaken,
};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::http::{SHOW_ENV, ServerClient};

type Query<'a> = Vec<(&'a str, &'a str)>;

/// Takes a snapshot of a sandbox, by name or id.
pub(super) async fn take(
    server: &ServerClient,
    pool: Option<&str>,
    sandbox: &str,
    options: &SnapshotOptions,
) -> Result<SnapshotTaken> {
    let query = [in_pool(pool), SHOW_ENV.to_vec()].concat();
    let path = ["v1", "sandboxes", sandbox, "snapshots"];
    answer(server, with_json(request(server, Method::POST, &path, &query)?, options)?).await
}

/// Gives a sandbox the files of a snapshot.
pub(super) async fn roll_back(
    server: &ServerClient,
    pool: Option<&str>,
    sandbox: &str,
    options: &RollbackOptions,
) -> Result<RollbackDone> {
    let path = ["v1", "sandboxes", sandbox, "rollback"];
    answer(server, with_json(request(server, Method::POST, &path, &in_pool(pool))?, options)?).await
}

/// Lists the snapshots of a pool.
pub(super) async fn list(server: &ServerClient, pool: Option<&str>, sizes: bool) -> Result<SnapshotList> {
    let sizes = [("sizes", if sizes { "true" } else { "false" })];
    let query = [in_pool(pool), SHOW_ENV.to_vec(), sizes.to_vec()].concat();
    answer(server, request(server, Method::GET, &["v1", "snapshots"], &query)?).await
}

/// Returns what is known of a snapshot, by name or id.
pub(super) async fn get(server: &ServerClient, pool: Option<&str>, snapshot: &str) -> Result<SnapshotInfo> {
    let query = [in_pool(pool), SHOW_ENV.to_vec()].concat();
    answer(server, request(server, Method::GET, &["v1", "snapshots", snapshot], &query)?).await
}

/// Removes a snapshot.
pub(super) async fn remove(server: &ServerClient, pool: Option<&str>, snapshot: &str) -> Result<()> {
    let request = request(server, Method::DELETE, &["v1", "snapshots", snapshot], &in_pool(pool))?;
    server.ask(request).await.map(drop)
}

/// Makes sandboxes of a snapshot or a sandbox.
pub(super) async fn fork(server: &ServerClient, pool: Option<&str>, options: &ForkOptions) -> Result<Forks> {
    answer(server, with_json(request(server, Method::POST, &["v1", "fork"], &in_pool(pool))?, options)?).await
}

/// Makes an image of a snapshot or a sandbox.
pub(super) async fn commit(
    server: &ServerClient,
    pool: Option<&str>,
    options: &CommitOptions,
) -> Result<ImageCommitted> {
    answer(server, with_json(request(server, Method::POST, &["v1", "commit"], &in_pool(pool))?, options)?)
        .await
}

/// Compares two sides; without the second, a sandbox with its last snapshot.
pub(super) async fn diff(
    server: &ServerClient,
    pool: Option<&str>,
    from: &ComparedPoint,
    to: Option<&ComparedPoint>,
    options: &CompareOptions,
) -> Result<FileChanges> {
    let (from, to) = (from.to_string(), to.map(ToString::to_string));
    let mut query = in_pool(pool);
    query.extend([("from", from.as_str()), ("path", options.path.as_str())]);
    query.extend(options.text.then_some(("text", "true")));
    query.extend(to.as_deref().map(|to| ("to", to)));
    answer(server, request(server, Method::GET, &["v1", "diff"], &query)?).await
}

fn in_pool(pool: Option<&str>) -> Query<'_> {
    pool.map(|pool| ("pool", pool)).into_iter().collect()
}

fn request(
    server: &ServerClient,
    method: Method,
    path: &[&str],
    query: &[(&str, &str)],
) -> Result<RequestBuilder> {
    Ok(server.request(method, server.url(path, query)?))
}

async fn answer<T: DeserializeOwned>(server: &ServerClient, request: RequestBuilder) -> Result<T> {
    server.json(server.ask(request).await?).await
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder> {
    let body = serde_json::to_vec(body)
        .map_err(|error| Error::new(ErrorKind::Internal, "write a request down").with_source(error))?;
    Ok(request.header("content-type", "application/json").body(body))
}
