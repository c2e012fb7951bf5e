//! The toolset `checkpoints`: a model keeps the files of a sandbox, goes back to them, and sees what it has changed. It stands
//! beside `pool`, whose tools and shapes are fixed, and is offered where it is asked for.

mod checkpoint;
mod diff;
mod restore;

use eyot::{Error, ErrorKind, Result};

use super::set::Toolset;
use crate::ToolContext;

/// The three of them.
pub(super) fn toolset() -> Result<Toolset> {
    Toolset::new("checkpoints", [checkpoint::tool()?, restore::tool()?, diff::tool()?])
}

/// Returns the name of the sandbox that a call means. Only those of a pool are kept: a sandbox that its session holds by a
/// handle would be another life for it afterwards.
fn sandbox_of<'a>(context: &'a ToolContext, named: Option<&'a str>) -> Result<&'a str> {
    if named.is_none() && context.handle.is_some() {
        let message = "this session's own sandbox has no checkpoints";
        return Err(Error::new(ErrorKind::Unsupported, message).with_hint("name a sandbox: `sandbox`"));
    }
    Ok(context.name(named))
}
