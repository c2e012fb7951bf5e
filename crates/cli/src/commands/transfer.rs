//! `eyot transfer`: copies a file or a tree from one sandbox to another, completely or not at all.

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
    if let Some(pool) = pool {
        return Ok(Pool::of(pool, context).await?.transfer(&from.name, &to.name, &what).await?);
    }
    let (from, to) = (context.awake(&from.name).await?, context.awake(&to.name).await?);
    Ok(transfer(&from, &to, &what).await?)
}
