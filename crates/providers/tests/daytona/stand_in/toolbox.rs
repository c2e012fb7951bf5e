//! The toolbox of a sandbox: commands, and terminals.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use eyot::{Error, PtySize};
use serde_json::{Value, json};

use super::api::authorised;
use super::machine::{HOME, Machine, locked, run};
use super::machines::{Machines, refusal};
use super::terminal::{self, NewTerminal};

/// The time that a command has, in seconds, if none is asked for.
const USUAL_TIMEOUT_S: u64 = 10;
/// The protocol with which a client wants to be told the exit code.
const EXIT_PROTOCOL: &str = "X-Daytona-Pty-Exit-Control";

pub type Org = State<Arc<Machines>>;

/// Returns the routes.
pub fn routes() -> Router<Arc<Machines>> {
    Router::new()
        .route("/toolbox/{id}/process/execute", post(execute))
        .route("/toolbox/{id}/process/code-run", post(run_code))
        .route("/toolbox/{id}/process/pty", post(begin_terminal).get(list_terminals))
        .route("/toolbox/{id}/process/pty/create-connect", get(begin_and_connect))
        .route("/toolbox/{id}/process/pty/{name}", get(find_terminal).delete(end_terminal))
        .route("/toolbox/{id}/process/pty/{name}/connect", get(connect))
        .route("/toolbox/{id}/process/pty/{name}/resize", post(resize))
        .route("/toolbox/{id}/work-dir", get(home))
        .route("/toolbox/{id}/user-home-dir", get(home))
        .layer(from_fn(authorised))
}

pub fn failed(error: &Error) -> Response {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
}

pub fn map_of(asked: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(asked.clone()).unwrap_or_default()
}

async fn home() -> Response {
    Json(json!({ "dir": HOME })).into_response()
}

async fn execute(
    State(org): Org,
    Path(id): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let driver = machine.driver()?;
    let command = asked["command"].as_str().unwrap_or_default();
    if command.trim().is_empty() {
        return Err(refusal(StatusCode::BAD_REQUEST, "command is required"));
    }
    let cwd = asked["cwd"].as_str().unwrap_or(HOME);
    let timeout = Duration::from_secs(asked["timeout"].as_u64().unwrap_or(USUAL_TIMEOUT_S));
    let argv = ["sh", "-c", command];
    let running = run(&driver, &argv, cwd, machine.with_variables(map_of(&asked["envs"])), None);
    match tokio::time::timeout(timeout, running).await {
        Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "command execution timeout")),
        Ok(Err(error)) => Err(failed(&error)),
        Ok(Ok(output)) => {
            let result = String::from_utf8_lossy(&output.both);
            Ok(Json(json!({ "exitCode": output.code, "result": result })).into_response())
        }
    }
}

async fn run_code(
    State(org): Org,
    Path(id): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let code = asked["code"].as_str().unwrap_or_default();
    if asked["language"] != "python" {
        return Err(refusal(StatusCode::BAD_REQUEST, "the stand-in runs Python alone"));
    }
    let output = run(&driver, &["python3", "-c", code], HOME, map_of(&asked["envs"]), None).await;
    let output = output.map_err(|error| failed(&error))?;
    let result = String::from_utf8_lossy(&output.both);
    Ok(Json(json!({ "exitCode": output.code, "result": result, "artifacts": { "charts": [] } }))
        .into_response())
}

fn size(number: impl Fn(&str) -> Option<u64>) -> PtySize {
    let of =
        |name: &str, usual: u16| number(name).and_then(|number| u16::try_from(number).ok()).unwrap_or(usual);
    PtySize { rows: of("rows", 24), cols: of("cols", 80) }
}

async fn begin(machine: &Arc<Machine>, new: NewTerminal) -> Result<(), Response> {
    let driver = machine.driver()?;
    if locked(&machine.terminals).contains_key(&new.name) {
        return Err((
            StatusCode::CONFLICT,
            Json(json!({ "error": format!("PTY session with ID '{}' already exists", new.name) })),
        )
            .into_response());
    }
    terminal::begin(machine, &driver, new).await.map_err(|error| failed(&error))
}

async fn begin_terminal(
    State(org): Org,
    Path(id): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let name = asked["id"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(refusal(StatusCode::BAD_REQUEST, "session ID is required"));
    }
    let new = NewTerminal {
        name: name.clone(),
        cwd: asked["cwd"].as_str().unwrap_or(HOME).to_owned(),
        env: machine.with_variables(map_of(&asked["envs"])),
        size: size(|field| asked[field].as_u64()),
    };
    begin(&machine, new).await?;
    Ok((StatusCode::CREATED, Json(json!({ "sessionId": name }))).into_response())
}

async fn begin_and_connect(
    State(org): Org,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let new = NewTerminal {
        name: query.get("id").cloned().unwrap_or_default(),
        cwd: query.get("cwd").cloned().unwrap_or_else(|| HOME.to_owned()),
        env: machine.variables(),
        size: size(|field| query.get(field)?.parse().ok()),
    };
    let name = new.name.clone();
    begin(&machine, new).await?;
    connected(&machine, &name, upgrade)
}

fn connected(machine: &Machine, name: &str, upgrade: WebSocketUpgrade) -> Result<Response, Response> {
    let missing = || refusal(StatusCode::NOT_FOUND, "PTY session not found");
    let terminal = locked(&machine.terminals).get(name).cloned().ok_or_else(missing)?;
    let upgrade = upgrade.protocols([EXIT_PROTOCOL]);
    let tells_exit = upgrade.selected_protocol().is_some();
    Ok(upgrade.on_upgrade(async move |socket| terminal::carry(socket, &terminal, tells_exit).await))
}

async fn connect(
    State(org): Org,
    Path((id, name)): Path<(String, String)>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Response> {
    connected(&*org.find_or_refuse(&id)?, &name, upgrade)
}

fn told(name: &str) -> Value {
    json!({
        "id": name, "active": true, "cols": 80, "rows": 24, "cwd": HOME, "envs": {}, "lazyStart": false,
        "createdAt": "2026-01-01T00:00:00Z",
    })
}

async fn list_terminals(State(org): Org, Path(id): Path<String>) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let sessions: Vec<Value> = locked(&machine.terminals).keys().map(|name| told(name)).collect();
    Ok(Json(json!({ "sessions": sessions })).into_response())
}

async fn find_terminal(
    State(org): Org,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    if !locked(&machine.terminals).contains_key(&name) {
        return Err(refusal(StatusCode::NOT_FOUND, "PTY session not found"));
    }
    Ok(Json(told(&name)).into_response())
}

async fn end_terminal(
    State(org): Org,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let ended = locked(&machine.terminals).remove(&name);
    let Some(terminal) = ended else {
        return Err(refusal(StatusCode::NOT_FOUND, "PTY session not found"));
    };
    terminal.kill().await;
    Ok(Json(json!({ "message": "PTY session deleted" })).into_response())
}

async fn resize(
    State(org): Org,
    Path((id, name)): Path<(String, String)>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let terminal = locked(&machine.terminals).get(&name).cloned();
    let Some(terminal) = terminal else {
        return Err(refusal(StatusCode::GONE, "PTY session not found"));
    };
    terminal.resize(size(|field| asked[field].as_u64())).await;
    let mut told = told(&name);
    (told["cols"], told["rows"]) = (asked["cols"].clone(), asked["rows"].clone());
    Ok(Json(told).into_response())
}
