//! The routes of the bridge.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eyot::PtySize;
use serde_json::{Value, json};

use super::container::{CommandOutput, StandInContainer};
use super::containers::Containers;
use super::shell_words::{in_workspace, quoted};
use super::terminal;

/// The most bytes of a file that is written.
const MAX_WRITE_BYTES: usize = 32 << 20;

/// A bridge with its key.
pub struct StandInBridge {
    pub containers: Containers,
    pub key: String,
}

type Bridge = State<Arc<StandInBridge>>;

/// Returns the routes.
pub fn routes(bridge: Arc<StandInBridge>) -> Router {
    let sandbox = Router::new()
        .route("/v1/sandbox/{id}/exec", post(exec))
        .route("/v1/sandbox/{id}/file/{*path}", get(read_file).put(write_file))
        .route("/v1/sandbox/{id}/running", get(running))
        .route("/v1/sandbox/{id}/pty", get(pty))
        .route("/v1/sandbox/{id}/session", post(begin_session))
        .route("/v1/sandbox/{id}/session/{session}", delete(end_session))
        .route("/v1/sandbox/{id}/persist", post(persist))
        .route("/v1/sandbox/{id}/hydrate", post(hydrate))
        .route("/v1/sandbox/{id}", delete(remove))
        .route("/v1/sandbox", post(new_sandbox))
        .route("/v1/pool/stats", get(stats))
        .layer(DefaultBodyLimit::max(2 * MAX_WRITE_BYTES))
        .layer(from_fn_with_state(Arc::clone(&bridge), authorised));
    sandbox.route("/health", get(|| async { Json(json!({"ok": true})) })).with_state(bridge)
}

fn refusal(status: StatusCode, code: &str, error: impl Into<String>) -> Response {
    (status, Json(json!({ "error": error.into(), "code": code }))).into_response()
}

fn failed(code: &str, error: &eyot::Error) -> Response {
    refusal(StatusCode::BAD_GATEWAY, code, error.to_string())
}

async fn authorised(State(bridge): Bridge, request: Request, next: Next) -> Response {
    let id = request.uri().path().strip_prefix("/v1/sandbox/").and_then(|rest| rest.split('/').next());
    let is_id = |id: &str| {
        (1..=128).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte))
    };
    if id.is_some_and(|id| !is_id(id)) {
        return refusal(StatusCode::BAD_REQUEST, "invalid_request", "Invalid sandbox ID format");
    }
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if shown != Some(&format!("Bearer {}", bridge.key)) {
        return refusal(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized");
    }
    next.run(request).await
}

async fn container(bridge: &StandInBridge, id: &str) -> Result<Arc<StandInContainer>, Response> {
    match bridge.containers.of(id).await {
        Ok(Some(container)) => Ok(container),
        Ok(None) => {
            let most = bridge.containers.most;
            let message = format!("instance limit reached: {most} of {most} containers in use");
            Err(refusal(StatusCode::SERVICE_UNAVAILABLE, "capacity_exceeded", message))
        }
        Err(error) => Err(failed("pool_error", &error)),
    }
}

async fn new_sandbox() -> Response {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let random = uuid::Uuid::new_v4();
    let digits = random.as_bytes().iter().map(|byte| char::from(DIGITS[usize::from(byte % 32)]));
    Json(json!({ "id": digits.collect::<String>() })).into_response()
}

fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

async fn exec(State(bridge): Bridge, Path(id): Path<String>, body: Bytes) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    let invalid = |error: &str| refusal(StatusCode::BAD_REQUEST, "invalid_request", error);
    let asked: Value = serde_json::from_slice(&body).map_err(|_| invalid("Invalid JSON body"))?;
    let argv: Vec<String> = serde_json::from_value(asked["argv"].clone()).unwrap_or_default();
    if argv.is_empty() {
        return Err(invalid("argv must be a non-empty array"));
    }
    let cwd = in_workspace(asked["cwd"].as_str().unwrap_or("/workspace")).ok_or_else(|| {
        refusal(StatusCode::FORBIDDEN, "invalid_request", "cwd must resolve to a location within /workspace")
    })?;
    let line = argv.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ");
    let output = container.run(line, cwd, asked["timeout_ms"].as_u64());
    let events = futures_util::stream::unfold(output, |mut output| async move {
        let event = match output.recv().await? {
            CommandOutput::Stdout(text) => event("stdout", &STANDARD.encode(text)),
            CommandOutput::Stderr(text) => event("stderr", &STANDARD.encode(text)),
            CommandOutput::Exit(code) => event("exit", &json!({ "exit_code": code }).to_string()),
            CommandOutput::Failed(error) => {
                event("error", &json!({ "error": error, "code": "exec_error" }).to_string())
            }
        };
        Some((Ok::<_, std::io::Error>(event), output))
    });
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response())
}

fn workspace_path(path: &str) -> Result<String, Response> {
    in_workspace(&format!("/{path}")).ok_or_else(|| {
        refusal(StatusCode::FORBIDDEN, "invalid_request", "path must resolve to a location within /workspace")
    })
}

async fn read_file(
    State(bridge): Bridge,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    let path = workspace_path(&path)?;
    match container.sandbox.read(&path).await {
        Ok(bytes) => Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response()),
        Err(error) if error.kind() == eyot::ErrorKind::NotFound => {
            Err(refusal(StatusCode::NOT_FOUND, "workspace_read_not_found", format!("File not found: {path}")))
        }
        Err(error) => Err(failed("exec_transport_error", &error)),
    }
}

async fn write_file(
    State(bridge): Bridge,
    Path((id, path)): Path<(String, String)>,
    content: Bytes,
) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    let path = workspace_path(&path)?;
    if content.len() > MAX_WRITE_BYTES {
        return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "payload too large"));
    }
    container
        .sandbox
        .write(&path, content)
        .await
        .map_err(|error| failed("workspace_archive_write_error", &error))?;
    Ok(Json(json!({ "ok": true })).into_response())
}

async fn running(State(bridge): Bridge, Path(id): Path<String>) -> Result<Response, Response> {
    container(&bridge, &id).await?;
    Ok(Json(json!({ "running": true })).into_response())
}

async fn begin_session(
    State(bridge): Bridge,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let named = asked["id"].as_str().map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
    if !container.begin_session(&named) {
        // The vendor's program has one session of a name.
        let message = format!("session create failed: Session '{named}' already exists");
        return Err(refusal(StatusCode::BAD_GATEWAY, "session_error", message));
    }
    Ok(Json(json!({ "id": named })).into_response())
}

async fn end_session(
    State(bridge): Bridge,
    Path((id, session)): Path<(String, String)>,
) -> Result<Response, Response> {
    if !container(&bridge, &id).await?.end_session(&session).await {
        let message = format!("session delete failed: Session '{session}' not found");
        return Err(refusal(StatusCode::BAD_GATEWAY, "session_error", message));
    }
    Ok(Json(json!({ "success": true, "sessionId": session })).into_response())
}

/// Packs the workspace: `tar` runs inside, as it does at the vendor's.
async fn persist(State(bridge): Bridge, Path(id): Path<String>) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    let packed = container.sandbox.exec("tar cf - -C /workspace .", eyot::ExecOptions::default()).await;
    let packed = packed.map_err(|error| failed("workspace_archive_read_error", &error))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], packed.stdout).into_response())
}

async fn hydrate(
    State(bridge): Bridge,
    Path(id): Path<String>,
    content: Bytes,
) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    if content.is_empty() {
        return Err(refusal(StatusCode::BAD_REQUEST, "invalid_request", "Empty tar payload"));
    }
    let options = eyot::ExecOptions { stdin: eyot::Stdin::Bytes(content), ..eyot::ExecOptions::default() };
    let unpacked = container.sandbox.exec("tar xf - -C /workspace", options).await;
    match unpacked {
        Ok(done) if done.success() => Ok(Json(json!({ "ok": true })).into_response()),
        Ok(done) => Err(refusal(
            StatusCode::BAD_GATEWAY,
            "workspace_archive_write_error",
            format!("tar extract failed: {}", done.stderr_text()),
        )),
        Err(error) => Err(failed("workspace_archive_write_error", &error)),
    }
}

async fn remove(State(bridge): Bridge, Path(id): Path<String>) -> Response {
    // As well as it goes.
    drop(bridge.containers.end(&id).await);
    StatusCode::NO_CONTENT.into_response()
}

async fn stats(State(bridge): Bridge) -> Response {
    let assigned = bridge.containers.ids().await.len();
    let config = json!({ "warmTarget": 0, "refreshInterval": 10000 });
    let told =
        json!({ "warm": 0, "assigned": assigned, "total": assigned, "config": config, "maxInstances": null });
    Json(told).into_response()
}

async fn pty(
    State(bridge): Bridge,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
) -> Result<Response, Response> {
    let container = container(&bridge, &id).await?;
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
    let upgrade = upgrade
        .map_err(|_| refusal(StatusCode::BAD_REQUEST, "invalid_request", "WebSocket upgrade required"))?;
    let number = |name: &str, usual: u16| query.get(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let size = PtySize { rows: number("rows", 24), cols: number("cols", 80) };
    let session = query.get("session").cloned().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    Ok(terminal::serve(upgrade, container, session, query.get("shell").cloned(), size))
}
