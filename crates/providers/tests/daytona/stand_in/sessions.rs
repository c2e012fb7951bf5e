//! The toolbox of a sandbox: sessions, each with one shell that runs command after command.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use eyot::{Bytes, ExecutionControl, ExecutionInput, SandboxDriver};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::api::authorised;
use super::machine::{HOME, locked, run, start};
use super::machines::{Machines, refusal};
use super::toolbox::{Org, failed};

/// A session.
pub struct StandInSession {
    name: String,
    input: Mutex<Box<dyn ExecutionInput>>,
    control: Arc<dyn ExecutionControl>,
    commands: AtomicUsize,
}

/// Returns the routes.
pub fn routes() -> Router<Arc<Machines>> {
    Router::new()
        .route("/toolbox/{id}/process/session", post(begin))
        .route("/toolbox/{id}/process/session/{name}", get(find).delete(end))
        .route("/toolbox/{id}/process/session/{name}/exec", post(exec))
        .route("/toolbox/{id}/process/session/{name}/command/{command}", get(state))
        .route("/toolbox/{id}/process/session/{name}/command/{command}/logs", get(logs))
        .layer(from_fn(authorised))
}

fn missing() -> Response {
    refusal(StatusCode::NOT_FOUND, "session not found")
}

async fn begin(
    State(org): Org,
    Path(id): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let name = asked["sessionId"].as_str().ok_or_else(missing)?.to_owned();
    if locked(&machine.sessions).contains_key(&name) {
        return Err(refusal(StatusCode::CONFLICT, "session already exists"));
    }
    let driver = machine.driver()?;
    let execution = start(&driver, &["bash"], HOME, BTreeMap::new(), true).await;
    let execution = execution.map_err(|error| failed(&error))?;
    let session = StandInSession {
        name: name.clone(),
        input: Mutex::new(execution.input.ok_or_else(missing)?),
        control: execution.control,
        commands: AtomicUsize::new(0),
    };
    // Its own output goes to files.
    tokio::spawn(futures_util::StreamExt::for_each(execution.events, |_| async {}));
    locked(&machine.sessions).insert(name, Arc::new(session));
    Ok(StatusCode::CREATED.into_response())
}

async fn find(State(org): Org, Path((id, name)): Path<(String, String)>) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let session = locked(&machine.sessions).get(&name).cloned().ok_or_else(missing)?;
    Ok(Json(json!({ "sessionId": session.name, "commands": [] })).into_response())
}

async fn end(State(org): Org, Path((id, name)): Path<(String, String)>) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let session = locked(&machine.sessions).remove(&name);
    drop(session.ok_or_else(missing)?.control.kill().await);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn file(session: &str, command: &str, kind: &str) -> String {
    format!("/tmp/session-{session}-{command}.{kind}")
}

async fn text(driver: &Arc<dyn SandboxDriver>, path: &str) -> Option<String> {
    let read = run(driver, &["cat", path], HOME, BTreeMap::new(), None).await.ok()?;
    (read.code == 0).then(|| String::from_utf8_lossy(&read.stdout).into_owned())
}

async fn exec(
    State(org): Org,
    Path((id, name)): Path<(String, String)>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let machine = org.find_or_refuse(&id)?;
    let driver = machine.driver()?;
    let session = locked(&machine.sessions).get(&name).cloned().ok_or_else(missing)?;
    let command = session.commands.fetch_add(1, Ordering::Relaxed).to_string();
    let of = |kind: &str| file(&name, &command, kind);
    let (out, err, code) = (of("out"), of("err"), of("code"));
    let asked_for = asked["command"].as_str().unwrap_or_default();
    let line =
        format!("{{ {asked_for}\n}} >{out} 2>{err} </dev/null; echo $? >{code}.new; mv {code}.new {code}\n");
    session.input.lock().await.write(Bytes::from(line)).await.map_err(|error| failed(&error))?;
    if asked["runAsync"] == true || asked["async"] == true {
        return Ok((StatusCode::ACCEPTED, Json(json!({ "cmdId": command }))).into_response());
    }
    loop {
        if let Some(code) = text(&driver, &code).await {
            let (out, err) = (text(&driver, &out).await, text(&driver, &err).await);
            let (out, err) = (out.unwrap_or_default(), err.unwrap_or_default());
            let told = json!({
                "cmdId": command, "exitCode": code.trim().parse::<i32>().ok(), "output": format!("{out}{err}"),
                "stdout": out, "stderr": err,
            });
            return Ok(Json(told).into_response());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn state(
    State(org): Org,
    Path((id, name, command)): Path<(String, String, String)>,
) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let code = text(&driver, &file(&name, &command, "code")).await;
    let code: Option<i32> = code.and_then(|code| code.trim().parse().ok());
    let mut told = json!({ "id": command, "command": "" });
    if let Some(code) = code {
        told["exitCode"] = json!(code);
    }
    Ok(Json(told).into_response())
}

async fn logs(
    State(org): Org,
    Path((id, name, command)): Path<(String, String, String)>,
) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let of = async |kind: &str| text(&driver, &file(&name, &command, kind)).await.unwrap_or_default();
    let (out, err) = (of("out").await, of("err").await);
    Ok(Json(json!({ "output": format!("{out}{err}"), "stdout": out, "stderr": err })).into_response())
}
