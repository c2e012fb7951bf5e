//! The tools that a provider brings, as a toolset: they take the place of the default list.

use std::sync::Arc;

use eyot::{Error, ErrorKind, ProviderTool, ProviderToolAnswer, ProviderTools, Result, SandboxProvider};
use serde_json::Value;

use super::clip::clip;
use super::context::ToolContext;
use super::definition::ToolDef;
use super::output::ToolOutput;
use super::pool;
use super::registry::{toolset, toolset_names};
use super::set::{Toolset, quoted};

/// The name of the toolset that a provider brings.
pub const PROVIDER_TOOLSET: &str = "provider";

/// The tools that a model is shown where none are named: those that the provider brings, else the toolset `pool`. Tools
/// of the caller's own are appended with [`Toolset::with`]. An error is the provider's: it declares what can't be a tool.
pub fn default_tools(provider: &dyn SandboxProvider) -> Result<Toolset> {
    match provider.tools() {
        Some(brought) => declared(provider.name(), &brought),
        None => pool::toolset(),
    }
}

/// The toolset of this name over a provider: `provider` is what it brings. `not_found`, with the names that there are.
pub fn toolset_over(provider: &dyn SandboxProvider, name: &str) -> Result<Toolset> {
    match (name, provider.tools()) {
        (PROVIDER_TOOLSET, Some(brought)) => declared(provider.name(), &brought),
        (PROVIDER_TOOLSET, None) => {
            let message = format!("there is no toolset `{name}`: {} brings no tools", provider.name());
            let hint = format!("there are: {}", quoted(&toolset_names()));
            Err(Error::new(ErrorKind::NotFound, message).with_hint(hint))
        }
        _ => toolset(name),
    }
}

fn declared(provider: &str, brought: &Arc<dyn ProviderTools>) -> Result<Toolset> {
    let tools = brought.declare().into_iter().map(|tool| definition(brought, tool));
    let tools = tools.collect::<Result<Vec<_>>>().and_then(|tools| Toolset::new(PROVIDER_TOOLSET, tools));
    tools.map_err(|error| error.context(format!("declare the tools of {provider}")))
}

fn definition(brought: &Arc<dyn ProviderTools>, tool: ProviderTool) -> Result<ToolDef> {
    let ProviderTool { name, description, input_schema, read_only } = tool;
    let names_sandboxes = input_schema.pointer("/properties/sandbox").is_some();
    let (brought, called) = (Arc::clone(brought), name.clone());
    let run = move |context: ToolContext, arguments: Value| {
        let (brought, called) = (Arc::clone(&brought), called.clone());
        async move {
            let named = arguments.get("sandbox").and_then(Value::as_str).filter(|_| names_sandboxes);
            let sandbox = context.sandbox(named).await?;
            Ok(output(brought.call(&sandbox, &called, arguments.clone()).await?))
        }
    };
    let tool = ToolDef::new(&name, &description, input_schema, run)?;
    Ok(if read_only { tool.read_only() } else { tool })
}

fn output(answer: ProviderToolAnswer) -> ToolOutput {
    let ProviderToolAnswer { text, structured, is_error } = answer;
    let text = clip(&text, |_| "ask for less at once".to_owned());
    ToolOutput { structured, is_error, ..ToolOutput::text(text) }
}
