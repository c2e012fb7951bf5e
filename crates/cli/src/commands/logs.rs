//! `eyot logs`: what a started process wrote, each stream to our own.

use eyot::{LogChunk, LogQuery, LogStream};
use futures_util::StreamExt;
use serde_json::json;

use crate::args::LogsArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::Output;
use crate::stdio::Sink;

pub async fn run(args: &LogsArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.sandbox(&args.name).await?;
    let query =
        LogQuery { stream: stream(args), offset: args.offset, tail_bytes: args.tail, follow: args.follow };
    let mut chunks = sandbox.logs(args.process, query).await?;
    let (mut stdout, mut stderr) = (Sink::stdout()?, Sink::stderr()?);
    while let Some(chunk) = chunks.next().await {
        let mut chunk = chunk?;
        match (context.output.json, chunk.stream) {
            (true, _) => print_json(&chunk, context.output)?,
            (false, LogStream::Stdout) => stdout.write(&mut chunk.data).await?,
            (false, LogStream::Stderr) => stderr.write(&mut chunk.data).await?,
        }
    }
    Ok(0)
}

fn stream(args: &LogsArgs) -> Option<LogStream> {
    match (args.stdout, args.stderr) {
        (true, _) => Some(LogStream::Stdout),
        (_, true) => Some(LogStream::Stderr),
        _ => None,
    }
}

/// One object a line, also on a terminal: a log is a sequence.
fn print_json(chunk: &LogChunk, output: Output) -> Result<(), Failure> {
    let data = String::from_utf8_lossy(&chunk.data);
    output.text(&format!("{}\n", json!({ "stream": chunk.stream, "offset": chunk.offset, "data": data })))
}
