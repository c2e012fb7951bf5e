//! `eyot glob`: finds files by pattern and prints one path a line.

use eyot::GlobOptions;

use crate::args::GlobArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::for_stdout;

pub async fn run(args: GlobArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.awake(&args.name).await?;
    let options = GlobOptions {
        pattern: args.pattern,
        root: sandbox.resolve_path(&args.root)?.into(),
        hidden: args.hidden,
        max_results: args.max,
    };
    let found = sandbox.glob(&options).await?;
    if context.output.json {
        context.output.value(&found)?;
        return Ok(0);
    }
    let lines: String = found.paths.iter().map(|path| format!("{}\n", for_stdout(path))).collect();
    context.output.text(&lines)?;
    if found.truncated {
        context.output.note(&format!("there are more than {} paths; --max shows more", options.max_results));
    }
    Ok(0)
}
