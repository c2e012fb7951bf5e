//! `eyot diff`: lists the files that differ between two snapshots or sandboxes.

use eyot::ChangeKind;
use eyot_engine::ComparedPoint;

use crate::args::DiffArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::for_stdout;

pub async fn run(args: DiffArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, from) = in_pool(&args.from, context).await?;
    let sides = match args.to {
        None => (ComparedPoint::BaseOf(from.clone()), ComparedPoint::Sandbox(from)),
        Some(to) => {
            let to = to.strip_prefix(&format!("{}/", pool.name())).unwrap_or(&to).to_owned();
            (ComparedPoint::Named(from), ComparedPoint::Named(to))
        }
    };
    let compared = pool.compare(&sides.0, &sides.1, &args.path).await;
    let found = compared.map_err(|error| context.explained(error, &args.from))?;
    if context.output.json {
        context.output.value(&found)?;
        return Ok(0);
    }
    let line = |change: &eyot::FileChange| {
        let letter = match change.change {
            ChangeKind::Added => 'A',
            ChangeKind::Changed => 'C',
            ChangeKind::Removed => 'D',
        };
        format!("{letter} {}\n", for_stdout(&change.path))
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
