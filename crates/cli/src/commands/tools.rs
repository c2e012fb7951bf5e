//! `eyot tools`: prints a toolset as a model sees it.

use crate::args::{GlobalArgs, ToolsArgs};
use crate::errors::Failure;
use crate::output::Output;
use crate::provider::default_row;
use crate::toolsets::toolsets;

pub fn run(args: &ToolsArgs, global: &GlobalArgs) -> Result<u8, Failure> {
    let output = Output::new(global);
    let capabilities = (global.provider.unwrap_or_else(default_row).capabilities)();
    let tools = toolsets(&[&args.toolset], args.workspace_options.as_ref(), &capabilities)?;
    match args.format.of_declarations() {
        Some(format) => output.value(&tools.schemas(format))?,
        None => output.text(&tools.prompt())?,
    }
    Ok(0)
}
