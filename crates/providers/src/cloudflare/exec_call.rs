//! A script in a sandbox, and what it prints. The bridge gives output as text, line by line, so these print a word.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eyot::{Error, ErrorKind, Result};
use serde_json::Value;

use super::answer::unreadable;
use super::bridge::BridgeClient;
use crate::e2b::vendor::clean_text;

/// The time that a script may take, in milliseconds.
const TIMEOUT_MS: u64 = 60_000;

/// Runs a script with arguments, and returns what it has printed.
pub(super) async fn run(client: &BridgeClient, id: &str, script: &str, arguments: &[&str]) -> Result<String> {
    let argv = [&["sh", "-c", script, "eyot"], arguments].concat();
    let events = client.exec(id, &argv, TIMEOUT_MS).await?;
    read(&events)
}

/// Reads the events of a program that has ended: its output, if it has ended well.
fn read(events: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(events).map_err(|error| unreadable().with_source(error))?;
    let mut output = String::new();
    // An event that is cut off has no empty line after it.
    let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    for event in whole.split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let data = field("data").unwrap_or_default();
        match field("event") {
            Some("stdout") => {
                let bytes = STANDARD.decode(data).map_err(|error| unreadable().with_source(error))?;
                output.push_str(&String::from_utf8_lossy(&bytes));
            }
            Some("exit") => return exited(data, &output).map(|()| output),
            Some("error") => return Err(failed(data)),
            _ => {}
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "the bridge's answer was cut off"))
}

fn exited(data: &str, output: &str) -> Result<()> {
    let exit: Value = serde_json::from_str(data).map_err(|error| unreadable().with_source(error))?;
    match exit["exit_code"].as_i64() {
        Some(0) => Ok(()),
        Some(code) => {
            let message =
                format!("a script of Eyot's ended with {code} in the sandbox: {}", clean_text(output));
            Err(Error::new(ErrorKind::Unavailable, message))
        }
        None => Err(unreadable().with_source("it has no exit code")),
    }
}

fn failed(data: &str) -> Error {
    let told: Value = serde_json::from_str(data).unwrap_or_default();
    let reason = clean_text(told["error"].as_str().unwrap_or_default());
    Error::new(ErrorKind::Unavailable, format!("the bridge could not run a script in the sandbox: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "event: stdout\ndata: b2sK\n\nevent: exit\ndata: {\"exit_code\":0}\n\n";

    #[test]
    fn only_an_end_that_is_told_is_one() {
        assert_eq!(read(WHOLE.as_bytes()).unwrap(), "ok\n");
        for length in 0..WHOLE.len() {
            assert_eq!(
                read(&WHOLE.as_bytes()[..length]).unwrap_err().kind(),
                ErrorKind::Unavailable,
                "{length}"
            );
        }
    }

    #[test]
    fn an_exit_code_and_an_error_are_errors() {
        let exit = WHOLE.replace(":0}", ":3}");
        assert!(read(exit.as_bytes()).unwrap_err().to_string().contains("ended with 3"));
        let error = "event: error\ndata: {\"error\":\"no shell\",\"code\":\"exec_error\"}\n\n";
        assert!(read(error.as_bytes()).unwrap_err().to_string().ends_with("no shell"));
    }
}
