//! Snapshots of sandboxes: take, list, look up and remove them; fork, commit, roll back and compare.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use eyot::wire::SnapshotList;
use eyot::{
    CompareOptions, Error, ErrorKind, FileChanges, SandboxName, SandboxPath, SnapshotId, SnapshotInfo,
};
use eyot_engine::{
    CommitOptions, ComparedPoint, ForkOptions, Forks, ImageCommitted, RollbackDone, RollbackOptions,
    SnapshotOptions, SnapshotTaken,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::Caller;
use super::extract::{Asked, InPool, JsonBody, Named, ShowEnv, TheSandbox, with_pool};
use super::host_reach;
use super::query::Params;
use super::state::Api;
use crate::http::Peer;
use crate::problem::{Problems, Refusal};

/// The path parameter `{snapshot}`.
#[derive(IntoParams)]
#[into_params(names("snapshot"), parameter_in = Path)]
pub(super) struct TheSnapshot(
    /// The snapshot's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
    #[param(example = "good")]
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    String,
);

/// The query of a list of snapshots.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListSnapshots {
    /// The pool. By default the key's first pool.
    pool: Option<String>,
    /// Counts the sizes that are not known yet, which takes a walk through the files. By default `false`.
    #[serde(default)]
    sizes: bool,
    /// Includes the values of environment variables, which may be secret.
    show_env: Option<bool>,
}

/// The query of a comparison.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DiffQuery {
    /// The pool. By default the key's first pool.
    pool: Option<String>,
    /// The first side: a snapshot or, if there is none of that name, the present files of a sandbox; each by name or id.
    /// `base:` and a sandbox means the files below its present changes: those of its last snapshot, or those that it began with.
    #[param(example = "dev")]
    from: String,
    /// The second side, likewise. By default `from` names a sandbox, and the answer is what it has changed since its last
    /// snapshot.
    to: Option<String>,
    /// Only what lies here and below. By default `/`.
    path: Option<String>,
    /// Adds unified diffs of files that are text. By default `false`.
    #[serde(default)]
    text: bool,
}

/// Takes a snapshot of a sandbox: keeps its files as they are.
///
/// A sandbox that runs goes on, or is put to sleep for it and woken again where it can't. If commands run, it is refused (`409`)
/// unless `stop` says to end them.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/snapshots", tag = "snapshots", params(TheSandbox, Asked),
    request_body(content = SnapshotOptions, example = json!({ "name": "good", "stop": true })),
    responses((status = 201, body = SnapshotTaken), Problems))]
pub(super) async fn take(
    State(api): State<Api>,
    named: Named,
    JsonBody(options): JsonBody<SnapshotOptions>,
) -> Result<impl IntoResponse, Refusal> {
    let pool = named.pool(&api).await?;
    let provider = api.pool(&pool)?;
    let id = provider.id_of(&named.sandbox).await.map_err(|error| named.gone(error))?;
    let taken = provider.pool().snapshot(id.as_str(), options).await;
    // The handle may be one to an earlier life.
    api.let_go_of_handle(&id);
    let SnapshotTaken { snapshot, stopped } = taken?;
    let snapshot = snapshot.without_secrets(named.show_env);
    Ok((StatusCode::CREATED, Json(SnapshotTaken { snapshot, stopped })))
}

/// Gives a sandbox the files of a snapshot. What was changed since is lost.
///
/// A sandbox that runs is put to sleep for it, and woken again. If commands run, it is refused (`409`) unless `stop` says to end
/// them.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/rollback", tag = "snapshots", params(TheSandbox, InPool),
    request_body(content = RollbackOptions, example = json!({ "snapshot": "good" })),
    responses((status = 200, body = RollbackDone), Problems))]
pub(super) async fn roll_back(
    State(api): State<Api>,
    named: Named,
    JsonBody(options): JsonBody<RollbackOptions>,
) -> Result<Json<RollbackDone>, Refusal> {
    let pool = named.pool(&api).await?;
    let provider = api.pool(&pool)?;
    let id = provider.id_of(&named.sandbox).await.map_err(|error| named.gone(error))?;
    let done = provider.pool().roll_back(id.as_str(), &options).await;
    api.let_go_of_handle(&id);
    Ok(Json(done?))
}

/// Lists the snapshots of a pool, oldest first.
#[utoipa::path(get, path = "/v1/snapshots", tag = "snapshots", params(ListSnapshots),
    responses((status = 200, body = SnapshotList), Problems))]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(asked): Params<ListSnapshots>,
) -> Result<Json<SnapshotList>, Refusal> {
    let pool = api.sandbox_pool(&caller.pool(asked.pool.as_deref())?)?;
    let found = if asked.sizes { pool.snapshots_with_sizes().await? } else { pool.snapshots().await? };
    let show_env = asked.show_env.unwrap_or(false);
    let snapshots = found.into_iter().map(|info| info.without_secrets(show_env)).collect();
    Ok(Json(SnapshotList { snapshots }))
}

/// Returns what is known of a snapshot.
#[utoipa::path(get, path = "/v1/snapshots/{snapshot}", tag = "snapshots", params(TheSnapshot, ShowEnv),
    responses((status = 200, body = SnapshotInfo), Problems))]
pub(super) async fn get(
    State(api): State<Api>,
    caller: Caller,
    Path(snapshot): Path<String>,
    Params(ShowEnv { pool, show_env }): Params<ShowEnv>,
) -> Result<Json<SnapshotInfo>, Refusal> {
    let (pool, snapshot) = found_pool(&api, &caller, pool, snapshot).await?;
    let info = api.sandbox_pool(&pool)?.find_snapshot(&snapshot).await?;
    Ok(Json(info.without_secrets(show_env.unwrap_or(false))))
}

/// Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are.
#[utoipa::path(delete, path = "/v1/snapshots/{snapshot}", tag = "snapshots", params(TheSnapshot, InPool),
    responses((status = 204), Problems))]
pub(super) async fn remove(
    State(api): State<Api>,
    caller: Caller,
    Path(snapshot): Path<String>,
    Params(ShowEnv { pool, .. }): Params<ShowEnv>,
) -> Result<StatusCode, Refusal> {
    let (pool, snapshot) = found_pool(&api, &caller, pool, snapshot).await?;
    api.sandbox_pool(&pool)?.remove_snapshot(&snapshot).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes sandboxes that begin with the files of a snapshot, or with the present files of a sandbox.
///
/// They have its spec. If one can't be made, none stays.
#[utoipa::path(post, path = "/v1/fork", tag = "snapshots", params(InPool),
    request_body(content = ForkOptions, example = json!({ "from": "good", "count": 2 })),
    responses((status = 201, body = Forks), Problems))]
pub(super) async fn fork(
    State(api): State<Api>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Params(ShowEnv { pool, .. }): Params<ShowEnv>,
    JsonBody(options): JsonBody<ForkOptions>,
) -> Result<impl IntoResponse, Refusal> {
    let (pool, from) = found_pool(&api, &caller, pool, options.from.clone()).await?;
    let provider = api.pool(&pool)?;
    let source = provider.pool().fork_source(&from).await?;
    host_reach::refuse_spec(&api, peer.map(|Extension(peer)| peer), provider.pool(), &source.spec())?;
    let sandbox = source.sandbox().cloned();
    let forked = provider.fork(source, options).await;
    sandbox.inspect(|id| api.let_go_of_handle(id));
    Ok((StatusCode::CREATED, Json(forked?)))
}

/// Makes an image of a snapshot or of a sandbox as it is now, which sandboxes can be made from.
///
/// It is the image that the sandbox was made from, with its configuration, and one layer more. A sandbox made of anything else
/// is refused (`422`). Of a sandbox a snapshot is taken first, as for a fork. It ends when the connection does.
///
/// Only keys that `eyot serve --image-key` names may commit.
#[utoipa::path(post, path = "/v1/commit", tag = "snapshots", params(InPool),
    request_body(content = CommitOptions, example = json!({ "from": "good", "reference": "app:1" })),
    responses((status = 201, body = ImageCommitted), Problems))]
pub(super) async fn commit(
    State(api): State<Api>,
    caller: Caller,
    Params(ShowEnv { pool, .. }): Params<ShowEnv>,
    JsonBody(options): JsonBody<CommitOptions>,
) -> Result<impl IntoResponse, Refusal> {
    caller.refuse_unless_it_may_change_images(&api, "commit an image")?;
    let (pool, from) = found_pool(&api, &caller, pool, options.from.clone()).await?;
    let pool = api.sandbox_pool(&pool)?;
    let source = pool.commit_source(&from).await?;
    let sandbox = source.sandbox().cloned();
    let committed = pool.commit(source, options, Some(api.limits().max_image_bytes)).await;
    sandbox.inspect(|id| api.let_go_of_handle(id));
    let committed = committed.map_err(|error| Refusal::from(error).calling("image", "reference"))?;
    Ok((StatusCode::CREATED, Json(committed)))
}

/// Compares the files of two snapshots or sandboxes.
#[utoipa::path(get, path = "/v1/diff", tag = "snapshots", params(DiffQuery),
    responses((status = 200, body = FileChanges), Problems))]
pub(super) async fn diff(
    State(api): State<Api>,
    caller: Caller,
    Params(DiffQuery { pool, from, to, path, text }): Params<DiffQuery>,
) -> Result<Json<FileChanges>, Refusal> {
    let path = path.as_deref().map_or_else(|| Ok(SandboxPath::root()), SandboxPath::parse);
    let path = path.map_err(|error| Error::invalid("path", error.reason()))?;
    let (pool, from, to) = sides(&api, &caller, pool, (from, to)).await?;
    Ok(Json(api.sandbox_pool(&pool)?.compare(&from, &to, &CompareOptions { path, text }).await?))
}

/// Returns the sides of a comparison, and their pool.
async fn sides(
    api: &Api,
    caller: &Caller,
    pool: Option<String>,
    (from, to): (String, Option<String>),
) -> Result<(SandboxName, ComparedPoint, ComparedPoint), Refusal> {
    let (pool, from) = side(api, caller, pool, &from).await?;
    let Some(to) = to else {
        let ComparedPoint::Named(sandbox) = from else {
            return Err(Error::invalid("to", "must be there where `from` is a base").into());
        };
        return Ok((pool, ComparedPoint::BaseOf(sandbox.clone()), ComparedPoint::Sandbox(sandbox)));
    };
    let (_, to) = side(api, caller, Some(pool.to_string()), &to).await?;
    Ok((pool, from, to))
}

async fn side(
    api: &Api,
    caller: &Caller,
    pool: Option<String>,
    text: &str,
) -> Result<(SandboxName, ComparedPoint), Refusal> {
    Ok(match text.parse::<ComparedPoint>()? {
        ComparedPoint::BaseOf(named) => {
            let (pool, name) = found_pool(api, caller, pool, named).await?;
            (pool, ComparedPoint::BaseOf(name))
        }
        ComparedPoint::Named(named) | ComparedPoint::Sandbox(named) => {
            let (pool, name) = found_pool(api, caller, pool, named).await?;
            (pool, ComparedPoint::Named(name))
        }
    })
}

/// Returns the pool of what NAME, POOL/NAME or the id of a snapshot or sandbox means, and the name or id there.
async fn found_pool(
    api: &Api,
    caller: &Caller,
    pool: Option<String>,
    named: String,
) -> Result<(SandboxName, String), Refusal> {
    let (pool, name) = with_pool(named, pool)?;
    let Ok(id) = SnapshotId::parse(&name) else {
        return Ok((api.pool_of(caller, pool.as_deref(), &name).await?, name));
    };
    let asked = pool.as_deref().map(|pool| caller.pool(Some(pool))).transpose()?;
    let found = api.engine().provider().snapshots()?.find(&id).await?.and_then(|info| info.pool);
    let found = found.filter(|pool| caller.opens(pool) && asked.as_ref().is_none_or(|asked| asked == pool));
    let missing = || Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id}`"));
    Ok((found.ok_or_else(missing)?, name))
}
