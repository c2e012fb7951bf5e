//! Containers that are made by the Engine's own API, as somebody else would make them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::check::{Check, docker, ensure};
use crate::proxy::engine_socket;

/// Makes a container of this name that is like the model, but with these labels. Without labels it
/// has the model's.
pub fn create_container(name: &str, model: &str, labels: &[(String, String)]) -> Check {
    let inspected: Value =
        serde_json::from_str(&docker(&["inspect", model])?).map_err(|error| error.to_string())?;
    let mut body = inspected[0]["Config"].clone();
    body["HostConfig"] = inspected[0]["HostConfig"].clone();
    if !labels.is_empty() {
        body["Labels"] = labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    }
    let answer = post(&format!("/containers/create?name={name}"), &body)?;
    ensure!(answer.starts_with("HTTP/1.1 201"), "make a container: {answer}");
    Ok(())
}

fn post(path: &str, body: &Value) -> Check<String> {
    let socket = engine_socket().ok_or("the Engine has no socket here")?;
    let mut stream = UnixStream::connect(socket)?;
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
