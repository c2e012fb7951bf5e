//! `eyot tools`: a toolset as a model is shown it.

use crate::args::ToolsArgs;
use crate::errors::Failure;
use crate::output::Output;
use crate::provider;
use crate::toolsets::toolsets;

pub fn run(args: &ToolsArgs, output: Output) -> Result<u8, Failure> {
    let capabilities = provider::capabilities();
    let tools = toolsets(&[&args.toolset], args.workspace_options.as_ref(), &capabilities)?;
    match args.format.of_declarations() {
        Some(format) => output.value(&tools.schemas(format))?,
        None => output.text(&tools.prompt())?,
    }
    Ok(0)
}
