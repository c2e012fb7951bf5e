//! `eyot call`: calls a tool as a model does.

use std::io::Read;

use eyot::{CancellationToken, SandboxName};
use eyot_engine::DEFAULT_SANDBOX;
use eyot_tools::{ToolContext, ToolOutput, Toolset, handle_tool_call};
use serde_json::Value;

use crate::args::CallArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::for_stdout;
use crate::pools::Pools;
use crate::signals::Signals;
use crate::toolsets::{served, toolsets_over};

/// Exit code: the answer is an error.
const IS_ERROR: u8 = 1;

pub async fn run(args: CallArgs, context: &Context) -> Result<u8, Failure> {
    let (names, options) = ([args.toolset.as_str()], args.workspace_options.as_ref());
    let input = Value::String(input(args.input)?);
    let (tools, pool) = match Pools::of(context).await? {
        Pools::Remote(server) => served(&server, args.pool.as_ref(), &names, options).await?,
        Pools::Local(engine) => {
            let tools = toolsets_over(engine.provider().as_ref(), &names, options)?;
            let pool = args.pool.map_or_else(|| SandboxName::parse(DEFAULT_SANDBOX), Ok)?;
            (tools, context.pool_of(&engine, pool)?)
        }
    };
    let (is_here, cancel) = (context.server()?.is_none(), CancellationToken::new());
    let called = ToolContext::new(pool).with_cancel(cancel.clone());
    let mut signals = Signals::listen()?;
    let (output, signal) = answer(&called, &tools, &args.tool, input, &mut signals).await;
    print(&output, context)?;
    match signal {
        Some(signal) => Err(Failure::Interrupted(signal)),
        None if output.is_error => Ok(IS_ERROR),
        None => {
            if args.tool == "browse" && is_here {
                context.output.note("the URL holds until this is ended with Ctrl-C");
                signals.end().await;
            }
            Ok(0)
        }
    }
}

fn input(argument: String) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| Failure::host("read the arguments from stdin", error))?;
    Ok(text)
}

/// Returns the answer, and the signal that cancelled the call, if one did.
async fn answer(
    called: &ToolContext,
    tools: &Toolset,
    tool: &str,
    input: Value,
    signals: &mut Signals,
) -> (ToolOutput, Option<i32>) {
    let mut call = std::pin::pin!(handle_tool_call(called, tools, tool, input));
    tokio::select! {
        output = &mut call => (output, None),
        signal = signals.end() => {
            called.cancel.cancel();
            (call.await, Some(signal))
        }
    }
}

fn print(output: &ToolOutput, context: &Context) -> Result<(), Failure> {
    if context.output.json {
        context.output.value(output)
    } else {
        context.output.text(&format!("{}\n", for_lines(&output.as_text())))
    }
}

/// Escapes what could drive a terminal, if stdout is one, and keeps the lines.
fn for_lines(text: &str) -> String {
    text.lines().map(for_stdout).collect::<Vec<_>>().join("\n")
}
