//! `eyot transfer`: a file or a tree from one sandbox to another, all of it or nothing.

use eyot::{Transfer, transfer};

use crate::args::TransferArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::signals::Signals;

pub async fn run(args: TransferArgs, context: &Context) -> Result<u8, Failure> {
    let (from, to) = (context.sandbox(&args.from.name).await?, context.sandbox(&args.to.name).await?);
    let what = Transfer { from_path: args.from.path, to_path: args.to.path, recursive: args.recursive };
    let mut signals = Signals::listen()?;
    let copied = tokio::select! {
        copied = transfer(&from, &to, &what) => copied?,
        signal = signals.end() => return Err(Failure::Interrupted(signal)),
    };
    match context.output.json {
        true => context.output.value(&copied)?,
        false => {
            let files = if copied.files == 1 { "file" } else { "files" };
            context.output.text(&format!("{} {files}, {} bytes\n", copied.files, copied.bytes))?;
        }
    }
    Ok(0)
}
