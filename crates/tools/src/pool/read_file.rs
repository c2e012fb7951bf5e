//! `read_file`: a text file, or a part of it.

use eyot::{ByteRange, Error, ErrorKind, Result, Sandbox};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_FILE_BYTES, slice};
use crate::{MAX_TEXT_BYTES, ToolContext, ToolDef, ToolOutput, clip};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    path: String,
    /// Byte offset
    offset: Option<u64>,
    /// Max bytes to read
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    content: String,
    /// Bytes of the whole file
    size: u64,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = format!(
        "Read a file from the sandbox filesystem. It must be UTF-8; size is that of the whole file in bytes. Of more \
         than {} KiB the first and the last part are shown: read the rest with offset and limit.",
        MAX_TEXT_BYTES >> 10
    );
    Ok(ToolDef::typed("read_file", &description, run)?.returns::<Answer>().read_only().with_plain_numbers())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = context.sandbox(args.sandbox.as_deref()).await?;
    let path = &args.path;
    let stat = sandbox.stat(path).await?;
    if stat.is_directory {
        let message = format!("read file `{path}` in sandbox `{}`: is a directory", sandbox.name());
        return Err(Error::new(ErrorKind::IsDirectory, message).with_hint("`glob` lists what is in it"));
    }
    let (offset, limit) = (args.offset.unwrap_or(0), args.limit.unwrap_or(u64::MAX));
    let bytes = read(&sandbox, path, offset, limit).await?;
    let size = size(stat.size.unwrap_or(0), offset, limit, bytes.len() as u64);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let Some((text, skipped)) = slice::text(&bytes, offset == 0, limit) else {
        return Err(not_text(&sandbox, path, size));
    };
    let base = offset + skipped as u64;
    let content = clip(text, |left_out| {
        let next = (left_out.end - left_out.start).min(MAX_TEXT_BYTES as u64);
        format!("read on with `offset` {} and `limit` {next}", base + left_out.start)
    });
    Ok(ToolOutput::json(&Answer { content, size }))
}

/// The bytes asked for, and those after them that complete a character.
async fn read(sandbox: &Sandbox, path: &str, offset: u64, limit: u64) -> Result<Vec<u8>> {
    let limit = limit.min(MAX_FILE_BYTES + 1).saturating_add(slice::LOOK_AHEAD_BYTES);
    let mut stream = sandbox.read_stream(path, ByteRange { offset, limit: Some(limit) }).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() as u64 > MAX_FILE_BYTES + slice::LOOK_AHEAD_BYTES {
            return Err(too_large(sandbox, path));
        }
    }
    Ok(bytes)
}

/// The file's size. Some files (those of `/proc`) have more than they say: then what came counts.
fn size(stated: u64, offset: u64, limit: u64, came: u64) -> u64 {
    if came > 0 { stated.max(offset + came.min(limit)) } else { stated }
}

fn too_large(sandbox: &Sandbox, path: &str) -> Error {
    let message = format!(
        "read file `{path}` in sandbox `{}`: it has more than {MAX_FILE_BYTES} bytes to read",
        sandbox.name()
    );
    Error::new(ErrorKind::TooLarge, message).with_hint("read a part of it, with `offset` and `limit`")
}

fn not_text(sandbox: &Sandbox, path: &str, size: u64) -> Error {
    let message = format!(
        "read file `{path}` in sandbox `{}`: it is not UTF-8 text; it has {size} bytes",
        sandbox.name()
    );
    Error::new(ErrorKind::Invalid, message)
        .with_hint("look at it with `shell`: `file`, `xxd` or `base64`, say")
}
