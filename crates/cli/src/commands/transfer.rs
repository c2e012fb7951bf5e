//! `eyot transfer`: copies a file or a tree from one sandbox to another, completely or not at all.

use eyot::{Error, ErrorKind};
use eyot_engine::{Transfer, Transferred, transfer};

use crate::args::TransferArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::pools::Pool;
use crate::signals::Signals;

pub async fn run(args: TransferArgs, context: &Context) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let copied = tokio::select! {
        copied = copy(args, context) => copied?,
        signal = signals.end() => return Err(Failure::Interrupted(signal)),
    };
    if context.output.json {
        context.output.value(&copied)?
    } else {
        let files = if copied.files == 1 { "file" } else { "files" };
        context.output.text(&format!("{} {files}, {} bytes\n", copied.files, copied.bytes))?;
    }
    Ok(0)
}

async fn copy(args: TransferArgs, context: &Context) -> Result<Transferred, Failure> {
    let TransferArgs { from, to, recursive, pool } = args;
    let what = Transfer { from_path: from.path, to_path: to.path, recursive };
    let copied = match pool {
        Some(pool) => Pool::of(pool, context).await?.transfer(&from.name, &to.name, &what).await,
        None => {
            let (from, to) = (context.awake(&from.name).await?, context.awake(&to.name).await?);
            transfer(&from, &to, &what).await
        }
    };
    Ok(copied.map_err(|error| with_recursive_hint(error, recursive))?)
}

/// Names our option for a directory that was not to be copied whole.
fn with_recursive_hint(error: Error, is_recursive: bool) -> Error {
    if error.kind() == ErrorKind::IsDirectory && !is_recursive {
        return error.with_hint("-r copies a directory with everything below it");
    }
    error
}
