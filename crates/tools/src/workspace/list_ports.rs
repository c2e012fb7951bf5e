//! `list_ports`: where the ports that the options name can be reached from this host.

use std::sync::Arc;

use eyot::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::WorkspaceToolsOptions;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "List pre-authorized sandbox preview ports. Servers must bind to 0.0.0.0 on a listed container \
                           port.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("list_ports", DESCRIPTION, move |context: ToolContext, Args {}| {
        let options = options.clone();
        async move {
            let mut lines = Vec::new();
            for port in &options.ports {
                lines.push(format!("{port}/tcp\t{}", address(&context, *port).await?));
            }
            Ok(ToolOutput::text(if lines.is_empty() {
                "No sandbox ports are published.".to_owned()
            } else {
                lines.join("\n")
            }))
        }
    })
}

/// Returns the address at which a port can be reached, such as `127.0.0.1:32768`; from now on, if
/// it could not yet.
pub(super) async fn address(context: &ToolContext, port: u16) -> Result<String> {
    let url = context.pool.browse(context.name(None), port).await?.url;
    Ok(url.trim_start_matches("http://").trim_end_matches('/').to_owned())
}
