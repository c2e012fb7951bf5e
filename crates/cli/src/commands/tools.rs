//! `eyot tools`: a toolset as a model is shown it.

use eyot::tools::toolset;

use crate::args::ToolsArgs;
use crate::errors::{Failure, USAGE};
use crate::output::Output;

pub fn run(args: &ToolsArgs, output: Output) -> Result<u8, Failure> {
    let tools = toolset(&args.toolset).map_err(|error| Failure::with_code(error, USAGE))?;
    match args.format.of_declarations() {
        Some(format) => output.value(&tools.schemas(format))?,
        None => output.text(&tools.prompt())?,
    }
    Ok(0)
}
