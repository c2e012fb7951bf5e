//! `eyot diff`: lists the files that differ between two snapshots or sandboxes.

use eyot::{ChangeKind, CompareOptions, FileChange};

use crate::args::DiffArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::for_stdout;

pub async fn run(args: DiffArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, from) = in_pool(&args.from, context).await?;
    let to = args.to.as_deref().map(|to| pool.name_inside(to));
    let options = CompareOptions { path: args.path, text: args.text };
    let compared = pool.compare(&from, to, &options).await;
    let found = compared.map_err(|error| context.explained(error, &args.from))?;
    if context.output.json {
        context.output.value(&found)?;
        return Ok(0);
    }
    let line = |change: &FileChange| {
        let letter = letter(change.change);
        match &change.text {
            Some(text) => text.lines().map(|line| format!("{}\n", for_stdout(line))).collect(),
            None => format!("{letter} {}\n", for_stdout(&change.path)),
        }
    };
    context.output.text(&found.changes.iter().map(line).collect::<String>())?;
    if found.truncated {
        let most = eyot::FileChanges::MAX;
        context
            .output
            .note(&format!("there are more than these {most}; --path DIR lists those of a directory"));
    }
    Ok(0)
}

/// Returns the letter that stands for a kind of change.
pub(super) fn letter(change: ChangeKind) -> char {
    match change {
        ChangeKind::Added => 'A',
        ChangeKind::Changed => 'C',
        ChangeKind::Removed => 'D',
    }
}
