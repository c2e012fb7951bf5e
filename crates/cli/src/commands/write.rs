//! `eyot write`: writes a file from stdin or from the arguments.

use eyot::{ByteStream, Bytes, WriteMode, WriteOptions};
use serde_json::json;

use crate::args::WriteArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::stdio::stdin_stream;

pub async fn run(args: WriteArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.awake(&args.name).await?;
    let options = WriteOptions { mode: mode(&args), permissions: args.mode, ..WriteOptions::default() };
    let content: ByteStream = match args.content {
        Some(text) => Box::pin(futures_util::stream::once(async { Ok(Bytes::from(text)) })),
        None => stdin_stream()?,
    };
    let size = sandbox.write_stream(&args.path, content, options).await?;
    if context.output.json {
        let path = sandbox.resolve_path(&args.path)?;
        context.output.value(&json!({ "path": path, "size": size }))?;
    }
    Ok(0)
}

fn mode(args: &WriteArgs) -> WriteMode {
    match (args.append, args.create_new) {
        (true, _) => WriteMode::Append,
        (_, true) => WriteMode::CreateNew,
        _ => WriteMode::Replace,
    }
}
