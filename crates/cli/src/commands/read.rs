//! `eyot read`: prints a file, or a part of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eyot::{ByteRange, ByteStream, Error, ErrorKind};
use futures_util::StreamExt;
use serde_json::json;

use crate::args::ReadArgs;
use crate::command_hint::shell_word;
use crate::context::Context;
use crate::errors::Failure;
use crate::stdio::Sink;

pub async fn run(args: &ReadArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.awake(&args.name).await?;
    let range = ByteRange { offset: args.offset, limit: args.limit };
    let content = sandbox.read_stream(&args.path, range).await;
    let mut content = content.map_err(|error| with_directory_hint(error, args))?;
    if context.output.json {
        let path = sandbox.resolve_path(&args.path)?;
        let mut value = json!({ "path": path, "offset": args.offset });
        describe(&mut value, collect(content).await?);
        context.output.value(&value)?;
        return Ok(0);
    }
    let mut stdout = Sink::stdout()?;
    while let Some(bytes) = content.next().await {
        stdout.write(&mut bytes?).await?;
    }
    Ok(0)
}

/// Says what to do with a directory.
fn with_directory_hint(error: Error, args: &ReadArgs) -> Error {
    let (name, path) = (&args.name, shell_word(&args.path));
    let place = shell_word(&format!("{name}:{}", args.path));
    match error.kind() {
        ErrorKind::IsDirectory => error.with_hint(format!(
            "`eyot cp {place} DIR` copies a directory, and `eyot exec {name} -- ls {path}` lists it"
        )),
        _ => error,
    }
}

async fn collect(mut content: ByteStream) -> Result<Vec<u8>, Failure> {
    let mut collected = Vec::new();
    while let Some(bytes) = content.next().await {
        collected.extend_from_slice(&bytes?);
    }
    Ok(collected)
}

fn describe(value: &mut serde_json::Value, content: Vec<u8>) {
    value["bytes"] = content.len().into();
    match String::from_utf8(content) {
        Ok(text) => value["content"] = text.into(),
        Err(error) => value["content_base64"] = STANDARD.encode(error.as_bytes()).into(),
    }
}
