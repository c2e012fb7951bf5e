//! `wait_for_port`: until something listens on one of the ports that the options name.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list_ports::address;
use super::options::{DEFAULT_WAIT_MS, WorkspaceToolsOptions};
use super::policy_error;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Wait until a pre-authorized sandbox TCP port is accepting connections.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    /// Pre-authorized TCP port inside the sandbox container.
    #[schemars(extend("minimum" = 1, "maximum" = 65_535))]
    container_port: u16,
    /// Maximum time to wait for the port to accept connections.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 300_000))]
    timeout_ms: Option<i64>,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("wait_for_port", DESCRIPTION, move |context: ToolContext, asked: Args| {
        wait(context, asked, options.clone())
    })
    .map(ToolDef::read_only)
}

async fn wait(context: ToolContext, asked: Args, options: Arc<WorkspaceToolsOptions>) -> Result<ToolOutput> {
    let port = asked.container_port;
    let policy = &options.process;
    let asked_ms = asked.timeout_ms.and_then(|timeout| u64::try_from(timeout).ok());
    let timeout = asked_ms.or(policy.default_wait_timeout_ms).unwrap_or(DEFAULT_WAIT_MS);
    let most = policy.max_wait_timeout_ms;
    if timeout > most {
        return Err(policy_error(format!(
            "Port wait timeout exceeds sandbox tool policy ({timeout} > {most})."
        )));
    }
    if !options.ports.contains(&port) {
        let message = format!("Sandbox port is not published: {port}/tcp");
        return Err(Error::new(ErrorKind::Invalid, message).with_hint("list_ports says which are"));
    }
    let address = address(&context, port).await?;
    context.sandbox(None).await?.wait_for_port(port, timeout).await?;
    Ok(ToolOutput::text(format!("ready: {port}/tcp -> {address}")))
}
