//! `eyot logs`: prints the output of a started process, each stream to our own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eyot::{LogChunk, LogQuery, LogRange, LogStream};
use serde_json::json;

use crate::args::LogsArgs;
use crate::context::{Context, with_process_hint};
use crate::errors::Failure;
use crate::output::{Output, escaped_json};
use crate::stdio::Sink;

pub async fn run(args: &LogsArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.sandbox(&args.name).await?;
    let mut log = sandbox
        .logs(args.process, query(args))
        .await
        .map_err(|error| with_process_hint(error, &args.name))?;
    announce(log.range, args, context.output)?;
    let (mut stdout, mut stderr) = (Sink::stdout()?, Sink::stderr()?);
    while let Some(chunk) = stdout.next_of(&mut log).await? {
        let mut chunk = chunk?;
        match (context.output.json, chunk.stream) {
            (true, _) => print_json(&chunk, context.output)?,
            (false, LogStream::Stdout) => stdout.write(&mut chunk.data).await?,
            (false, LogStream::Stderr) => stderr.write(&mut chunk.data).await?,
        }
    }
    Ok(0)
}

fn query(args: &LogsArgs) -> LogQuery {
    LogQuery {
        stream: args.stream.map(LogStream::from),
        offset: args.since_offset,
        tail_bytes: args.tail_bytes,
        tail_lines: args.tail,
        limit_bytes: args.limit,
        follow: args.follow,
    }
}

/// Tells a person if the beginning is missing, and a program which part of the log follows.
fn announce(range: LogRange, args: &LogsArgs, output: Output) -> Result<(), Failure> {
    if output.json {
        return output.text(&format!("{}\n", json!({ "range": range })));
    }
    let from_the_beginning = args.tail.is_none() && args.tail_bytes.is_none() && args.since_offset == 0;
    if from_the_beginning && range.dropped_bytes > 0 {
        output.note(&format!("the first {} bytes are no longer kept", range.dropped_bytes));
    }
    Ok(())
}

/// Prints one object a line, on a terminal too: a log is a sequence.
fn print_json(chunk: &LogChunk, output: Output) -> Result<(), Failure> {
    let LogChunk { stream, offset, stream_offset, data } = chunk;
    let mut object = json!({ "stream": stream, "offset": offset, "stream_offset": stream_offset });
    match std::str::from_utf8(data) {
        Ok(text) => object["data"] = text.into(),
        Err(_) => object["data_base64"] = STANDARD.encode(data).into(),
    }
    output.text(&format!("{}\n", escaped_json(&object.to_string())))
}
