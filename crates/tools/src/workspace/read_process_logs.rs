//! `read_process_logs`: what a started process wrote last.

use std::sync::Arc;

use eyot::{Error, ErrorKind, LogQuery, LogStream, ProcessId, Result, Sandbox};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::WorkspaceToolsOptions;
use super::{answer, policy_error};
use crate::clip::continuation_bytes;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Read recent stdout and stderr from a managed sandbox process.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    /// Managed process identifier.
    #[schemars(length(min = 1))]
    process_id: String,
    /// Maximum trailing bytes to return from each output stream.
    #[schemars(extend("minimum" = 0, "maximum" = 1_048_576))]
    tail_bytes: Option<i64>,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("read_process_logs", DESCRIPTION, move |context: ToolContext, asked: Args| {
        let most = options.process.max_log_bytes;
        async move {
            let tail_bytes = asked.tail_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(most);
            if tail_bytes > most {
                let message =
                    format!("Process log request exceeds sandbox tool policy ({tail_bytes} > {most}).");
                return Err(policy_error(message));
            }
            let sandbox = context.sandbox(None).await?;
            logs(&sandbox, &asked.process_id, tail_bytes).await.map(ToolOutput::text)
        }
    })
    .map(ToolDef::read_only)
}

async fn logs(sandbox: &Sandbox, id: &str, tail_bytes: u64) -> Result<String> {
    let process = parse_process_id(id)?;
    let stdout =
        tail(sandbox, process, LogStream::Stdout, tail_bytes).await.map_err(or_unknown_process(id))?;
    let stderr =
        tail(sandbox, process, LogStream::Stderr, tail_bytes).await.map_err(or_unknown_process(id))?;
    let text = answer::joined([
        answer::output("stdout", &stdout.text),
        answer::output("stderr", &stderr.text),
        answer::flag("output_truncated", stdout.is_cut || stderr.is_cut),
    ]);
    Ok(if text.is_empty() { "No process output.".to_owned() } else { text })
}

/// A process by its id.
pub(super) fn parse_process_id(id: &str) -> Result<ProcessId> {
    id.parse().map_err(|_: Error| unknown_process(id))
}

/// That there is no process of this id, where that is what an error says.
pub(super) fn or_unknown_process(id: &str) -> impl Fn(Error) -> Error {
    move |error| match error.kind() {
        ErrorKind::NotFound => unknown_process(id),
        _ => error,
    }
}

fn unknown_process(id: &str) -> Error {
    let message = format!("Unknown sandbox process: {id}");
    Error::new(ErrorKind::NotFound, message).with_hint("list_processes says which there are")
}

/// The end of a stream.
struct LogTail {
    text: String,
    is_cut: bool,
}

async fn tail(sandbox: &Sandbox, process: ProcessId, stream: LogStream, tail_bytes: u64) -> Result<LogTail> {
    let query = LogQuery { stream: Some(stream), tail_bytes: Some(tail_bytes), ..LogQuery::default() };
    let mut log = sandbox.logs(process, query).await?;
    let total = log.range.total_bytes;
    let mut bytes = Vec::new();
    while let Some(chunk) = log.next().await {
        bytes.extend_from_slice(&chunk?.data);
    }
    let is_cut = total > bytes.len() as u64;
    let begun = if is_cut { continuation_bytes(&bytes) } else { 0 };
    Ok(LogTail { text: String::from_utf8_lossy(&bytes[begun..]).into_owned(), is_cut })
}
