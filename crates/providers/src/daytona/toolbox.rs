//! The toolbox of a sandbox: short scripts, the upload of a file, and the terminals. What it refuses says nothing of the
//! sandbox' files, so no error here is of a kind that could be taken for that.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eyot::{Error, ErrorKind, Result};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::answer::{ANSWERS, refused, unreachable};
use super::client::{DaytonaClient, Resend, with_json};
use super::options::below;
use crate::e2b::vendor::clean_text;
use crate::terminal_guest::{TerminalSocket, upgraded, websocket_request};

/// The time that a script may take, in seconds. Without one the vendor takes ten.
const SCRIPT_S: u64 = 50;
/// The size of a terminal that no one looks at.
const COLS: u16 = 200;
const ROWS: u16 = 24;

/// The toolbox of one sandbox.
#[derive(Debug, Clone)]
pub(super) struct DaytonaToolbox {
    pub client: DaytonaClient,
    pub address: Url,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptEnd {
    exit_code: Option<i64>,
    #[serde(default)]
    result: String,
}

impl DaytonaToolbox {
    fn request(&self, method: Method, parts: &[&str]) -> Result<RequestBuilder> {
        self.client.request(method, below(&self.address, parts))
    }

    async fn send(&self, make: impl Fn() -> Result<RequestBuilder>) -> Result<Response> {
        self.client.send(Resend::Safe, make).await.map_err(of_toolbox)
    }

    /// Runs a script with arguments, and returns what it has printed. It may be run twice.
    pub async fn run(&self, script: &str, arguments: &[&str]) -> Result<String> {
        let body = json!({ "command": command(script, arguments), "cwd": "/", "timeout": SCRIPT_S });
        let make = || Ok(with_json(self.request(Method::POST, &["process", "execute"])?, &body));
        let end: ScriptEnd = self.client.read_again(make).await.map_err(of_toolbox)?;
        match end.exit_code {
            Some(0) => Ok(end.result),
            Some(code) => {
                let said = clean_text(&end.result);
                let message = format!("a script of Eyot's ended with {code} in the sandbox: {said}");
                Err(Error::new(ErrorKind::Unavailable, message))
            }
            None => Err(ANSWERS.unreadable().with_source("it has no exit code")),
        }
    }

    /// Writes a file, whose path needs no escape.
    pub async fn upload(&self, path: &str, content: &[u8]) -> Result<()> {
        let boundary = format!("eyot-{}", Uuid::new_v4().simple());
        let part = |field: &str, more: &str| {
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"files[0].{field}\"{more}\r\n\r\n")
        };
        let file = "; filename=\"file\"\r\nContent-Type: application/octet-stream";
        let body = [
            part("path", "").as_bytes(),
            path.as_bytes(),
            b"\r\n",
            part("file", file).as_bytes(),
            content,
            format!("\r\n--{boundary}--\r\n").as_bytes(),
        ]
        .concat();
        let (body, kind) = (bytes::Bytes::from(body), format!("multipart/form-data; boundary={boundary}"));
        let make = || {
            let request = self.request(Method::POST, &["files", "bulk-upload"])?;
            Ok(request.header(CONTENT_TYPE, &kind).body(body.clone()))
        };
        self.send(make).await.map(drop)
    }

    /// Makes a terminal with a name of its own, and a shell on it.
    pub async fn begin_terminal(&self, name: &str) -> Result<()> {
        let body = json!({ "id": name, "cwd": "/", "cols": COLS, "rows": ROWS, "envs": {} });
        let make = || Ok(with_json(self.request(Method::POST, &["process", "pty"])?, &body));
        match self.client.send(Resend::Safe, make).await {
            // An earlier try has made it.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            begun => begun.map(drop).map_err(of_toolbox),
        }
    }

    /// Connects to a terminal.
    pub async fn connect_terminal(&self, name: &str) -> Result<TerminalSocket> {
        let (request, key) =
            websocket_request(self.request(Method::GET, &["process", "pty", name, "connect"])?);
        let response = request.send().await.map_err(unreachable)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(of_toolbox(refused(response).await));
        }
        upgraded(response, &key, ANSWERS).await
    }

    /// Ends a terminal, with the program on it. One that has ended is fine.
    pub async fn end_terminal(&self, name: &str) -> Result<()> {
        match self.client.send(Resend::Safe, || self.request(Method::DELETE, &["process", "pty", name])).await
        {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(of_toolbox(error)),
            _ => Ok(()),
        }
    }
}

fn of_toolbox(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid => {
            Error::new(ErrorKind::Unavailable, "the sandbox' toolbox refused the call").with_source(error)
        }
        _ => error,
    }
}

/// Returns the command that runs a script. The vendor's program splits a command at its quotes and has no shell for it; it is
/// in characters that mean the same with a shell and without one.
fn command(script: &str, arguments: &[&str]) -> String {
    let quoted = |argument: &&str| format!(" '{}'", argument.replace('\'', "'\\''"));
    let arguments: String = arguments.iter().map(quoted).collect();
    // What a tool says of an error would be taken for the script's answer.
    let whole = format!("exec 2>/dev/null\nset --{arguments}\n{script}");
    format!("sh -c \"echo '{}' | base64 -d | sh\"", STANDARD.encode(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gets_its_arguments_as_they_are() {
        let arguments = ["it's", "a \"b\" $c `d`\n", "\\", ""];
        let command = command("printf '<%s>' \"$@\"\n", &arguments);
        let ran = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "<it's><a \"b\" $c `d`\n><\\><>");
    }
}
