//! Sandboxes: create, list, look up, put to sleep, wake and destroy them.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use eyot::wire::{
    CapabilitiesAnswer, CreateSandbox, LIFE, PatchSandbox, SandboxAnswer, SandboxList, UsageAnswer,
};
use eyot::{Capability, Error, Sandbox, SandboxId, SandboxInfo, SandboxName, SandboxProvider};
use eyot_engine::Changes;
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::Caller;
use super::extract::{Asked, Chosen, InPool, JsonBody, Named, ShowEnv, TheSandbox, list_limit};
use super::host_reach;
use super::query::Params;
use super::state::Api;
use crate::http::Peer;
use crate::problem::{Problems, Refusal};

/// The last second that RFC 3339 can write, as seconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// Converts what is known of a sandbox to the API's answer, without its secrets.
fn sandbox_answer(info: SandboxInfo, pool: &SandboxName, show_env: bool) -> SandboxAnswer {
    let SandboxInfo { id, name, provider, status, workdir, created_ms, mut spec, isolation, life, .. } = info;
    let mut env_names: Vec<String> = spec.env.keys().chain(spec.manifest.env.keys()).cloned().collect();
    env_names.sort();
    env_names.dedup();
    if !show_env {
        spec.env.clear();
        spec.manifest.env.clear();
    }
    spec.manifest.files.clear();
    let lifecycle = spec.lifecycle.clone();
    let ttl_ms = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy);
    SandboxAnswer {
        id,
        name,
        pool: pool.clone(),
        provider,
        status,
        life,
        workdir,
        created_ms,
        expires_at: ttl_ms.map(|ttl_ms| rfc3339(created_ms, ttl_ms)),
        idle_timeout_ms: lifecycle.idle_timeout_ms.filter(|_| lifecycle.auto_destroy),
        labels: spec.labels.clone(),
        spec,
        env_names,
        isolation,
    }
}

fn live(sandbox: &Sandbox, pool: &SandboxName, show_env: bool) -> SandboxAnswer {
    let info = SandboxInfo { isolation: sandbox.isolation().clone(), ..sandbox.info().clone() };
    sandbox_answer(info, pool, show_env)
}

fn rfc3339(created_ms: i64, ttl_ms: u64) -> String {
    let since_1970 =
        Duration::from_millis(u64::try_from(created_ms).unwrap_or_default().saturating_add(ttl_ms));
    let at = UNIX_EPOCH.checked_add(since_1970.min(Duration::from_secs(LAST_SECOND))).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_millis(at).to_string()
}

/// The query of a list of sandboxes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListSandboxes {
    /// The pool. By default the key's first pool.
    pool: Option<String>,
    /// Only sandboxes with this label, `key=value`, or `key` with any value. Separate several labels by
    /// commas; all must match.
    label: Option<String>,
    /// Continues a list: the `next_cursor` of the previous answer.
    cursor: Option<String>,
    /// Number of sandboxes to return at most, 1 to 1,000; by default 100.
    limit: Option<usize>,
}

/// Creates a sandbox.
#[utoipa::path(post, path = "/v1/sandboxes", tag = "sandboxes", params(ShowEnv), 
    request_body(content = CreateSandbox, example = json!({
        "spec": { "name": "dev", "network": "egress", "limits": { "memory_mib": 1024 } }, "get_or_create": true
    })),
    responses((status = 201, body = SandboxAnswer), (status = 200, description = "It was there already", body = SandboxAnswer),
        Problems))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Params(ShowEnv { pool: in_query, show_env }): Params<ShowEnv>,
    JsonBody(CreateSandbox { pool, spec, get_or_create }): JsonBody<CreateSandbox>,
) -> Result<Response, Refusal> {
    let pool = caller.pool(pool.or(in_query).as_deref())?;
    let provider = api.pool(&pool)?;
    host_reach::refuse_spec(&api, peer.map(|Extension(peer)| peer), provider.pool(), &spec)
        .map_err(Refusal::in_spec)?;
    let made = if get_or_create {
        provider.get_or_make(spec).await
    } else {
        provider.make(spec).await.map(|sandbox| (sandbox, true))
    };
    let (sandbox, is_new) = made.map_err(|error| Refusal::from(error).in_spec())?;
    let answer = live(&sandbox, &pool, show_env.unwrap_or(false));
    if is_new {
        // A client may choose an id; what an earlier sandbox of that id has granted is not for this one.
        api.grants().revoke_all(sandbox.id());
    }
    api.hold(pool, sandbox);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(answer)).into_response())
}

/// Lists the sandboxes of a pool.
#[utoipa::path(get, path = "/v1/sandboxes", tag = "sandboxes", params(ListSandboxes),
    responses((status = 200, body = SandboxList), Problems))]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(asked): Params<ListSandboxes>,
) -> Result<Json<SandboxList>, Refusal> {
    let pool = caller.pool(asked.pool.as_deref())?;
    let limit = list_limit(asked.limit)?;
    let labels = labels(asked.label.as_deref())?;
    if asked.cursor.as_deref().is_some_and(|cursor| SandboxId::parse(cursor).is_err()) {
        return Err(Error::invalid("cursor", "must be the `next_cursor` of a list").into());
    }
    let mut infos = api.pool(&pool)?.list().await?;
    infos.sort_by(|one, other| one.id.cmp(&other.id));
    infos.retain(|info| {
        asked.cursor.as_deref().is_none_or(|cursor| info.id.as_str() > cursor)
            && labels.iter().all(|(key, value)| {
                let found = info.spec.labels.get(key);
                found.is_some() && (value.is_none() || found == value.as_ref())
            })
    });
    let has_more = infos.len() > limit;
    infos.truncate(limit);
    let next_cursor = infos.last().filter(|_| has_more).map(|info| info.id.to_string());
    let sandboxes = infos.into_iter().map(|info| sandbox_answer(info, &pool, false)).collect();
    Ok(Json(SandboxList { sandboxes, next_cursor }))
}

/// Splits `key=value,key`. A key alone asks for any value.
fn labels(text: Option<&str>) -> Result<BTreeMap<String, Option<String>>, Refusal> {
    let pairs = text.into_iter().flat_map(|text| text.split(','));
    pairs
        .map(|pair| match pair.split_once('=') {
            _ if pair.is_empty() || pair.starts_with('=') => {
                Err(Error::invalid("label", format!("must look like key=value or key, not `{pair}`")).into())
            }
            Some((key, value)) => Ok((key.to_owned(), Some(value.to_owned()))),
            None => Ok((pair.to_owned(), None)),
        })
        .collect()
}

/// Returns a sandbox's record.
///
/// This does not wake it, and does not count as activity.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(TheSandbox, Asked),
    responses((status = 200, body = SandboxAnswer), Problems))]
pub(super) async fn get(State(api): State<Api>, named: Named) -> Result<Json<SandboxAnswer>, Refusal> {
    let pool = named.pool(&api).await?;
    Ok(Json(sandbox_answer(named.info(&api, &pool).await?, &pool, named.show_env)))
}

/// Changes a sandbox's labels, deadlines or egress rules.
///
/// Absent fields stay as they are; if one field is wrong, nothing is changed. A change of deadlines
/// or rules wakes the sandbox.
#[utoipa::path(patch, path = "/v1/sandboxes/{sandbox}", tag = "sandboxes", params(TheSandbox, Asked), 
    request_body(content = PatchSandbox, example = json!({ "labels": { "job": "42" }, "lifecycle": { "ttl_ms": 3_600_000 } })),
    responses((status = 200, body = SandboxAnswer), Problems))]
pub(super) async fn patch(
    State(api): State<Api>,
    named: Named,
    headers: HeaderMap,
    JsonBody(patch): JsonBody<PatchSandbox>,
) -> Result<Json<SandboxAnswer>, Refusal> {
    let pool = named.pool(&api).await?;
    if let Some(life) = headers.get(LIFE).and_then(|life| life.to_str().ok()) {
        // Whoever holds on to a life wakes nothing.
        api.sandbox(&named.caller, named.pool.as_deref(), &named.sandbox, Some(life)).await?;
    }
    let PatchSandbox { labels, lifecycle, egress } = patch;
    let now = named.info(&api, &pool).await?;
    let lifecycle = lifecycle.map(|lifecycle| lifecycle.applied(now.spec.lifecycle));
    if let Some(rules) = &egress {
        host_reach::refuse_rules(&api, rules)?;
    }
    let changes = Changes { labels, lifecycle, egress };
    let changed = api.pool(&pool)?.change(now.id.as_str(), changes).await;
    changed.map_err(|error| named.gone(error))?;
    // The handle knows what it was made from.
    api.let_go_of_handle(&now.id);
    Ok(Json(sandbox_answer(named.info(&api, &pool).await?, &pool, named.show_env)))
}

/// Opens a running sandbox: returns its record and its capabilities.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/open", tag = "sandboxes",
    params(TheSandbox, Asked),
    responses((status = 200, body = SandboxAnswer), Problems))]
pub(super) async fn open(State(api): State<Api>, named: Named) -> Result<Json<SandboxAnswer>, Refusal> {
    let pool = named.pool(&api).await?;
    let found = api.pool(&pool)?.find(&named.sandbox).await;
    answered(&api, pool, &named, found)
}

/// Wakes a sandbox.
///
/// Succeeds if it runs already.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/wake", tag = "sandboxes",
    params(TheSandbox, Asked),
    responses((status = 200, body = SandboxAnswer), Problems))]
pub(super) async fn wake(State(api): State<Api>, named: Named) -> Result<Json<SandboxAnswer>, Refusal> {
    let pool = named.pool(&api).await?;
    let found = api.pool(&pool)?.find_awake(&named.sandbox).await;
    answered(&api, pool, &named, found)
}

fn answered(
    api: &Api,
    pool: SandboxName,
    named: &Named,
    found: Result<Sandbox, Error>,
) -> Result<Json<SandboxAnswer>, Refusal> {
    let sandbox = found.map_err(|error| named.gone(error))?;
    let answer = live(&sandbox, &pool, named.show_env);
    api.hold(pool, sandbox);
    Ok(Json(answer))
}

/// Puts a sandbox to sleep: its processes end, its files stay, and the next use wakes it.
///
/// Succeeds if it sleeps already.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/sleep", tag = "sandboxes",
    params(TheSandbox, InPool),
    responses((status = 204), Problems))]
pub(super) async fn sleep(State(api): State<Api>, named: Named) -> Result<StatusCode, Refusal> {
    let pool = named.pool(&api).await?;
    let provider = api.pool(&pool)?;
    let id = provider.id_of(&named.sandbox).await.map_err(|error| named.gone(error))?;
    provider.sleep(id.as_str()).await.map_err(|error| named.gone(error))?;
    // The handle is one to a sandbox that runs.
    api.let_go_of_handle(&id);
    Ok(StatusCode::NO_CONTENT)
}

/// The query of a destroy.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DestroyQuery {
    /// Undoes a create that its client could not finish: a persistent workspace that existed before
    /// is kept, whatever the spec says. Only for a sandbox that runs; by default `false`.
    #[serde(default)]
    abandon: bool,
}

/// Destroys a sandbox: its processes, mounts and files.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(TheSandbox, InPool, DestroyQuery),
    responses((status = 204), Problems))]
pub(super) async fn destroy(
    State(api): State<Api>,
    named: Named,
    Params(DestroyQuery { abandon }): Params<DestroyQuery>,
) -> Result<StatusCode, Refusal> {
    let pool = named.pool(&api).await?;
    let provider = api.pool(&pool)?;
    let id = provider.id_of(&named.sandbox).await.map_err(|error| named.gone(error))?;
    let ended = if abandon {
        provider.find(id.as_str()).await.map_err(|error| named.gone(error))?.abandon().await
    } else {
        provider.remove(id.as_str()).await
    };
    ended.map_err(|error| named.gone(error))?;
    api.let_go(id.as_str());
    Ok(StatusCode::NO_CONTENT)
}

/// Returns what a sandbox uses now: memory, disk, processors.
///
/// This does not count as activity.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/usage", tag = "sandboxes",
    params(TheSandbox, InPool),
    responses((status = 200, body = UsageAnswer), Problems))]
pub(super) async fn usage(Chosen(sandbox): Chosen) -> Result<Json<UsageAnswer>, Refusal> {
    Ok(Json(UsageAnswer { usage: sandbox.usage().await? }))
}

/// Returns the capabilities of the server's provider.
#[utoipa::path(get, path = "/v1/capabilities", tag = "server",
    responses((status = 200, body = CapabilitiesAnswer), Problems))]
pub(super) async fn capabilities(
    State(api): State<Api>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
) -> Result<Json<CapabilitiesAnswer>, Refusal> {
    let provider = api.pool(&caller.pool(None)?)?;
    let has_folders = host_reach::may_name_folders(&api, peer.map(|Extension(peer)| peer));
    let has_images = caller.may_change_images(&api);
    Ok(Json(CapabilitiesAnswer {
        provider: provider.name().to_owned(),
        // What reaches the host is not for whoever asks by HTTP, but for the server's own user.
        capabilities: api
            .engine()
            .provider()
            .capabilities()
            .iter()
            .filter(|can| match can {
                Capability::Mounts | Capability::CowMounts => has_folders,
                Capability::Commit => has_images,
                can => *can != Capability::NetworkHost,
            })
            .collect(),
        isolation: provider.isolation().await?,
    }))
}
