//! `eyot apply`: writes what a sandbox has changed in a copy of a folder back into the folder.

use std::fmt::Write;

use eyot::{ApplyOptions, ApplyReport};

use super::diff::letter;
use crate::args::ApplyArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::for_stdout;

pub async fn run(args: ApplyArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, name) = in_pool(&args.sandbox, context).await?;
    let options = ApplyOptions { target: args.target, dry_run: args.dry_run };
    let applied = pool.apply(&name, &options, args.stop.stop).await;
    let report = applied.map_err(|error| context.explained(error, &args.sandbox))?;
    if context.output.json {
        context.output.value(&report)?;
    } else {
        context.output.text(&lines(&report))?;
        for path in &report.left_out {
            context
                .output
                .note(&format!("`{}` is left out: it is no file, directory or link", for_stdout(path)));
        }
        if report.changes.is_empty() {
            context.output.note("there is nothing to apply");
        }
    }
    // As an apply without the option would end.
    if report.conflicts.is_empty() { Ok(0) } else { Ok(CONFLICT) }
}

/// The exit code of a dry run with conflicts.
const CONFLICT: u8 = 1;

/// Lists the changes, and then what is in the way.
fn lines(report: &ApplyReport) -> String {
    let mut text = String::new();
    for change in &report.changes {
        text.push(letter(change.change));
        text.push(' ');
        text.push_str(&for_stdout(&change.path));
        text.push('\n');
    }
    for conflict in &report.conflicts {
        let (path, why) = (for_stdout(&conflict.path), conflict.reason.words());
        // Writing to a string does not fail.
        writeln!(text, "conflict {path}: {why}").unwrap_or_default();
    }
    text
}
