//! The program of the vendor's containers, as far as the bridge uses it: its calls over HTTP, and its terminals. The vendor's
//! own bridge runs over it in a test of its own.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, delete, get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eyot::PtySize;
use serde_json::{Value, json};

use super::container::{CommandOutput, StandInContainer};
use super::containers::Containers;
use super::terminal;

/// The largest body: a file of 32 MiB in base64.
const MAX_BODY_BYTES: usize = 64 << 20;

type Program = State<Arc<Containers>>;

/// Returns the routes: those of each container's port 3000, and the end of a container.
pub fn routes(containers: Arc<Containers>) -> Router {
    Router::new()
        .route("/containers/{id}", delete(end))
        .route("/containers/{id}/port/3000/", any(ping))
        .route("/containers/{id}/port/3000/api/ping", get(ping))
        .route("/containers/{id}/port/3000/api/version", get(version))
        .route("/containers/{id}/port/3000/api/execute", post(execute))
        .route("/containers/{id}/port/3000/api/execute/stream", post(execute_stream))
        .route("/containers/{id}/port/3000/api/write", post(write))
        .route("/containers/{id}/port/3000/api/session/create", post(begin_session))
        .route("/containers/{id}/port/3000/api/session/delete", post(end_session))
        .route("/containers/{id}/port/3000/ws/pty", get(pty))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(containers)
}

fn failed(error: impl ToString) -> Response {
    let body =
        json!({ "code": "UNKNOWN_ERROR", "message": error.to_string(), "context": {}, "httpStatus": 500 });
    (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
}

async fn container(containers: &Containers, id: &str) -> Result<Arc<StandInContainer>, Response> {
    let found = containers.of(id).await.map_err(failed)?;
    found.ok_or_else(|| failed("there is no room"))
}

async fn ping(State(containers): Program, Path(id): Path<String>) -> Result<Response, Response> {
    container(&containers, &id).await?;
    Ok(Json(json!({ "success": true, "message": "pong", "timestamp": "2026-01-01T00:00:00Z" }))
        .into_response())
}

async fn version() -> Response {
    Json(json!({ "success": true, "version": "0.12.10", "timestamp": "2026-01-01T00:00:00Z" }))
        .into_response()
}

async fn end(State(containers): Program, Path(id): Path<String>) -> Result<Response, Response> {
    containers.end(&id).await.map_err(failed)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn text(body: &Value, name: &str) -> Result<String, Response> {
    body[name].as_str().map(str::to_owned).ok_or_else(|| failed(format!("`{name}` is missing")))
}

fn started(
    container: &StandInContainer,
    body: &Value,
) -> Result<tokio::sync::mpsc::UnboundedReceiver<CommandOutput>, Response> {
    let cwd = body["cwd"].as_str().unwrap_or("/workspace").to_owned();
    Ok(container.run(text(body, "command")?, cwd, body["timeoutMs"].as_u64()))
}

async fn execute(
    State(containers): Program,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Result<Response, Response> {
    let mut output = started(&*container(&containers, &id).await?, &body)?;
    let (mut stdout, mut stderr) = (String::new(), String::new());
    while let Some(piece) = output.recv().await {
        match piece {
            CommandOutput::Stdout(text) => stdout.push_str(&text),
            CommandOutput::Stderr(text) => stderr.push_str(&text),
            CommandOutput::Failed(error) => return Err(failed(error)),
            CommandOutput::Exit(code) => {
                let done = json!({
                    "success": code == 0, "exitCode": code, "stdout": stdout, "stderr": stderr,
                    "command": body["command"], "timestamp": "2026-01-01T00:00:00Z",
                });
                return Ok(Json(done).into_response());
            }
        }
    }
    Err(failed("the container is gone"))
}

async fn execute_stream(
    State(containers): Program,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Result<Response, Response> {
    let output = started(&*container(&containers, &id).await?, &body)?;
    let event = |told: Value| Bytes::from(format!("data: {told}\n\n"));
    let first = event(json!({ "type": "start", "timestamp": "", "command": body["command"], "pid": 1 }));
    let rest = futures_util::stream::unfold(output, move |mut output| async move {
        let told = match output.recv().await? {
            CommandOutput::Stdout(text) => json!({ "type": "stdout", "timestamp": "", "data": text }),
            CommandOutput::Stderr(text) => json!({ "type": "stderr", "timestamp": "", "data": text }),
            CommandOutput::Exit(code) => json!({
                "type": "complete", "timestamp": "", "exitCode": code,
                "result": { "stdout": "", "stderr": "", "exitCode": code, "success": code == 0 },
            }),
            CommandOutput::Failed(error) => json!({ "type": "error", "timestamp": "", "error": error }),
        };
        Some((event(told), output))
    });
    let events = futures_util::StreamExt::chain(futures_util::stream::iter([first]), rest);
    let body = Body::from_stream(futures_util::StreamExt::map(events, Ok::<_, std::io::Error>));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

async fn write(
    State(containers): Program,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Result<Response, Response> {
    let container = container(&containers, &id).await?;
    let (path, content) = (text(&body, "path")?, text(&body, "content")?);
    let content = if body["encoding"] == "base64" {
        STANDARD.decode(content).map_err(failed)?
    } else {
        content.into_bytes()
    };
    container.sandbox.write(&path, content).await.map_err(failed)?;
    Ok(Json(json!({ "success": true, "path": path, "timestamp": "2026-01-01T00:00:00Z" })).into_response())
}

async fn begin_session(Json(body): Json<Value>) -> Response {
    Json(json!({ "success": true, "id": body["id"], "message": "made", "timestamp": "2026-01-01T00:00:00Z" }))
        .into_response()
}

async fn end_session(
    State(containers): Program,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Result<Response, Response> {
    let session = text(&body, "sessionId")?;
    container(&containers, &id).await?.end_session(&session).await;
    Ok(Json(json!({ "success": true, "sessionId": session, "timestamp": "2026-01-01T00:00:00Z" }))
        .into_response())
}

async fn pty(
    State(containers): Program,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Response> {
    let container = container(&containers, &id).await?;
    let number = |name: &str, usual: u16| query.get(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let size = PtySize { rows: number("rows", 24), cols: number("cols", 80) };
    let session = query.get("sessionId").cloned().ok_or_else(|| failed("sessionId is missing"))?;
    Ok(terminal::serve(upgrade, container, session, query.get("shell").cloned(), size))
}
