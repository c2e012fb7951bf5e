//! `eyot grep`: finds lines by pattern and prints `path:line:text`.

use eyot::{GrepOptions, GrepResult};

use crate::args::GrepArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::for_stdout;

/// The exit code if nothing matches.
const NO_MATCH: u8 = 1;

pub async fn run(args: GrepArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.awake(&args.name).await?;
    let options = GrepOptions {
        pattern: args.pattern,
        literal: args.fixed_strings,
        ignore_case: args.ignore_case,
        root: sandbox.resolve_path(&args.path)?.into(),
        include: args.include,
        max_matches: args.max,
        max_line_bytes: args.max_line_bytes,
    };
    let found = sandbox.grep(&options).await?;
    if context.output.json {
        context.output.value(&found)?
    } else {
        print(&found, args.max, context)?
    }
    Ok(if found.matches.is_empty() { NO_MATCH } else { 0 })
}

fn print(found: &GrepResult, max: u32, context: &Context) -> Result<(), Failure> {
    let mut lines = String::new();
    for matched in &found.matches {
        let cut = if matched.line_truncated { " […]" } else { "" };
        let (path, line) = (for_stdout(&matched.path), for_stdout(&matched.line));
        lines.push_str(&format!("{path}:{}:{line}{cut}\n", matched.line_number));
    }
    context.output.text(&lines)?;
    if found.truncated {
        context.output.note(&format!("there are more than {max} matches; --max shows more"));
    }
    Ok(())
}
