//! The toolbox of a sandbox: files.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use eyot::SandboxDriver;
use serde_json::{Value, json};

use super::api::authorised;
use super::machine::{CommandOutput, HOME, run};
use super::machines::{Machines, refusal};
use super::multipart::{self, BOUNDARY, Part};
use super::toolbox::{Org, failed};

/// The largest upload, in bytes.
const MAX_UPLOAD_BYTES: usize = 64 << 20;
/// Prints the facts about a file.
const FACTS: &str = "stat -c '%n|%F|%s|%f|%A|%Y|%U|%G' -- \"$@\" | sed 's,^.*/\\([^/|]*\\)|,\\1|,'";

/// Returns the routes.
pub fn routes() -> Router<Arc<Machines>> {
    Router::new()
        .route("/toolbox/{id}/files", get(list).delete(remove))
        .route("/toolbox/{id}/files/info", get(info))
        .route("/toolbox/{id}/files/folder", post(make_folder))
        .route("/toolbox/{id}/files/move", post(rename))
        .route("/toolbox/{id}/files/bulk-upload", post(upload))
        .route("/toolbox/{id}/files/bulk-download", post(download))
        .layer(DefaultBodyLimit::max(MAX_UPLOAD_BYTES))
        .layer(from_fn(authorised))
}

type Paths = Query<HashMap<String, String>>;

fn of<'a>(query: &'a HashMap<String, String>, name: &str) -> &'a str {
    query.get(name).map_or("", String::as_str)
}

/// Runs a script about files.
async fn script(
    driver: &Arc<dyn SandboxDriver>,
    text: &str,
    arguments: &[&str],
    input: Option<Bytes>,
) -> Result<CommandOutput, Response> {
    let argv = [&["sh", "-c", text, "sh"], arguments].concat();
    let output = run(driver, &argv, HOME, BTreeMap::new(), input).await.map_err(|error| failed(&error))?;
    if output.code == 0 {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.both).into_owned();
    let status = if said.contains("No such file") { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
    Err(refusal(status, &said))
}

fn facts(line: &str) -> Value {
    let fields: Vec<&str> = line.split('|').collect();
    let [name, kind, size, _, mode, modified, owner, group] = fields.as_slice() else { return Value::Null };
    json!({
        "name": name, "isDir": *kind == "directory", "size": size.parse::<u64>().unwrap_or(0), "mode": mode,
        "modTime": modified, "modifiedAt": "2026-01-01T00:00:00Z", "owner": owner, "group": group,
        "permissions": "0644",
    })
}

async fn list(State(org): Org, Path(id): Path<String>, Query(query): Paths) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let text = format!("cd -- \"$1\" && set -- $(ls -A) && [ $# = 0 ] || {FACTS}");
    let told = script(&driver, &text, &[of(&query, "path")], None).await?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    Ok(Json(told.lines().map(facts).collect::<Vec<_>>()).into_response())
}

async fn info(State(org): Org, Path(id): Path<String>, Query(query): Paths) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let told = script(
        &driver,
        &format!("[ -e \"$1\" ] || {{ echo No such file; exit 1; }}; {FACTS}"),
        &[of(&query, "path")],
        None,
    )
    .await?;
    Ok(Json(facts(String::from_utf8_lossy(&told.stdout).trim())).into_response())
}

async fn remove(State(org): Org, Path(id): Path<String>, Query(query): Paths) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let option = if of(&query, "recursive") == "true" { "-r" } else { "-d" };
    script(&driver, "rm \"$2\" -- \"$1\"", &[of(&query, "path"), option], None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn make_folder(
    State(org): Org,
    Path(id): Path<String>,
    Query(query): Paths,
) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    script(&driver, "mkdir -p -m \"$2\" -- \"$1\"", &[of(&query, "path"), of(&query, "mode")], None).await?;
    Ok(StatusCode::CREATED.into_response())
}

async fn rename(State(org): Org, Path(id): Path<String>, Query(query): Paths) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    script(&driver, "mv -- \"$1\" \"$2\"", &[of(&query, "source"), of(&query, "destination")], None).await?;
    Ok(StatusCode::OK.into_response())
}

async fn upload(
    State(org): Org,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let wrong = || refusal(StatusCode::BAD_REQUEST, "invalid multipart form");
    let parts = multipart::read(&headers, &body).ok_or_else(wrong)?;
    let text = |part: &Part| String::from_utf8_lossy(&part.content).into_owned();
    let mut paths = HashMap::new();
    for part in parts {
        let (file, field) = part.name.split_once('.').ok_or_else(wrong)?;
        match field {
            "path" => drop(paths.insert(file.to_owned(), text(&part))),
            _ => {
                let path = paths.get(file).ok_or_else(wrong)?.clone();
                let make = "mkdir -p -- \"$(dirname -- \"$1\")\" && cat >\"$1\"";
                script(&driver, make, &[&path], Some(part.content.into())).await?;
            }
        }
    }
    Ok(StatusCode::OK.into_response())
}

async fn download(
    State(org): Org,
    Path(id): Path<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Response> {
    let driver = org.find_or_refuse(&id)?.driver()?;
    let paths: Vec<String> = serde_json::from_value(asked["paths"].clone()).unwrap_or_default();
    let mut parts = Vec::new();
    for path in paths {
        let part = match script(&driver, "cat -- \"$1\"", &[&path], None).await {
            Ok(read) => Part { name: "file".to_owned(), file_name: path, content: read.stdout },
            Err(_) => {
                let said =
                    json!({ "message": "file not found", "statusCode": 404, "code": "FILE_NOT_FOUND" });
                Part { name: "error".to_owned(), file_name: path, content: said.to_string().into_bytes() }
            }
        };
        parts.push(part);
    }
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    Ok(([(header::CONTENT_TYPE, kind)], multipart::write(&parts)).into_response())
}
