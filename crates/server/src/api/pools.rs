//! Pools: list them, list and make their sandboxes, and copy files between these.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use eyot::wire::{MemberBody, PoolAnswer, PoolList, TransferBody};
use eyot::{SandboxName, SandboxProvider};
use eyot_engine::{PoolCreate, PoolCreated, Transfer, Transferred};

use super::access::Caller;
use super::extract::JsonBody;
use super::host_reach;
use super::state::Api;
use crate::problem::{Problems, Refusal};

/// Lists the pools that the key opens.
#[utoipa::path(get, path = "/v1/pools", tag = "pools",
    responses((status = 200, body = PoolList), Problems))]
pub(super) async fn list(State(api): State<Api>, caller: Caller) -> Result<Json<PoolList>, Refusal> {
    let pools = match caller.pools() {
        Some(pools) => pools.to_vec(),
        None => api.engine().pools().await?,
    };
    Ok(Json(PoolList { pools }))
}

fn named(caller: &Caller, pool: &str) -> Result<SandboxName, Refusal> {
    caller.pool(Some(pool))
}

/// Lists the sandboxes of a pool, by name.
///
/// This wakes none and does not count as activity.
#[utoipa::path(get, path = "/v1/pools/{pool}", tag = "pools", params(("pool" = String, Path, description = "The pool", example = "default")),
    responses((status = 200, body = PoolAnswer), Problems))]
pub(super) async fn get(
    State(api): State<Api>,
    caller: Caller,
    Path(pool): Path<String>,
) -> Result<Json<PoolAnswer>, Refusal> {
    let name = named(&caller, &pool)?;
    let sandboxes = api.pool(&name)?.pool().list().await?;
    Ok(Json(PoolAnswer { name, sandboxes }))
}

/// Destroys every sandbox of a pool, and the pool itself.
#[utoipa::path(delete, path = "/v1/pools/{pool}", tag = "pools", params(("pool" = String, Path, description = "The pool", example = "default")),
    responses((status = 204), Problems))]
pub(super) async fn close(
    State(api): State<Api>,
    caller: Caller,
    Path(pool): Path<String>,
) -> Result<StatusCode, Refusal> {
    let name = named(&caller, &pool)?;
    let provider = api.pool(&name)?;
    let gone = provider.list().await?;
    provider.pool().close().await?;
    gone.iter().for_each(|info| api.let_go(info.id.as_str()));
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a sandbox of a pool from the pool's template.
///
/// If it exists, it is woken, and the answer lists the differences between its spec and the
/// template.
#[utoipa::path(put, path = "/v1/pools/{pool}/sandboxes/{name}", tag = "pools", request_body(content = MemberBody, example = json!({ "sleep_after_ms": 600_000 })),
    params(("pool" = String, Path, description = "The pool", example = "default"), ("name" = String, Path, description = "Its name in the pool", example = "web")),
    responses((status = 200, body = PoolCreated), Problems))]
pub(super) async fn make(
    State(api): State<Api>,
    caller: Caller,
    Path((pool, name)): Path<(String, String)>,
    JsonBody(body): JsonBody<MemberBody>,
) -> Result<Json<PoolCreated>, Refusal> {
    let pool = named(&caller, &pool)?;
    let MemberBody { image, sleep_after_ms, services } = body;
    let provider = api.pool(&pool)?;
    host_reach::refuse_image(provider.pool(), image.as_deref())?;
    let create = PoolCreate { image, sleep_after_ms, spec: None, services };
    Ok(Json(provider.pool().create(&name, create).await?))
}

/// Copies a file or a tree from one sandbox of a pool to another, which is created if it does not
/// exist.
#[utoipa::path(post, path = "/v1/pools/{pool}/transfer", tag = "pools", 
    request_body(content = TransferBody, example = json!({
        "from": "dev", "to": "web", "from_path": "hello.txt", "to_path": "hello.txt"
    })),
    params(("pool" = String, Path, description = "The pool", example = "default")),
    responses((status = 200, body = Transferred), Problems))]
pub(super) async fn transfer(
    State(api): State<Api>,
    caller: Caller,
    Path(pool): Path<String>,
    JsonBody(body): JsonBody<TransferBody>,
) -> Result<Json<Transferred>, Refusal> {
    let name = named(&caller, &pool)?;
    let TransferBody { from, to, from_path, to_path, recursive } = body;
    let what = Transfer { from_path, to_path, recursive };
    Ok(Json(api.pool(&name)?.pool().transfer(&from, &to, &what).await?))
}
