//! `eyot mcp`: serves the tools to MCP clients, over stdin and stdout or by HTTP.

mod access;

use eyot::{CancellationToken, SandboxName, SandboxSpec};
use eyot_engine::{Engine, POOL_WORKDIR, PoolOptions};
use eyot_providers::remote::RemoteServer;
use eyot_server::api::ServeLimits;
use eyot_server::mcp::{McpServer, SessionPools, serve_http, serve_stdio};
use eyot_tools::PROVIDER_TOOLSET;
use futures_util::TryStreamExt;
use tokio_util::io::StreamReader;

use super::create::note_unusable_mounts;
use crate::args::{McpArgs, SpecArgs};
use crate::config::Config;
use crate::context::Context;
use crate::errors::Failure;
use crate::open_files::OpenFiles;
use crate::signals::Signals;
use crate::stdio;
use crate::terminal;
use crate::toolsets::{served, toolsets, toolsets_over};
use crate::usual_quotas::UsualQuotas;

pub async fn run(args: McpArgs, context: &Context) -> Result<u8, Failure> {
    let names: Vec<&str> = args.toolset.iter().map(String::as_str).collect();
    let server = match context.server()? {
        Some(server) => remote_server(&args, &names, &server, &context.config).await?,
        None => local_server(&args, &names, context).await?,
    };
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let stop = CancellationToken::new();
    if args.http.is_none() && terminal::stdin_is_terminal() {
        context.output.note("an MCP client speaks here on standard input; Ctrl-C ends it. `eyot mcp --help` shows how to name it to one");
    }
    let serving = serve(&args, &server, stop.clone(), context);
    let mut serving = std::pin::pin!(serving);
    let signal = tokio::select! {
        served = &mut serving => return served.map(|()| 0),
        signal = signals.end() => signal,
    };
    stop.cancel();
    tokio::select! {
        served = serving => served?,
        // Somebody can't wait; what is left then is removed by the next command that looks.
        _ = signals.end() => {}
    }
    Ok(Failure::Interrupted(signal).exit_code())
}

async fn local_server(args: &McpArgs, names: &[&str], context: &Context) -> Result<McpServer, Failure> {
    let capabilities = (context.provider_settings.row.capabilities)();
    // What is wrong is told before the state folder is made. What a provider brings is known when it is there.
    if !names.contains(&PROVIDER_TOOLSET) {
        toolsets(names, args.workspace_options.as_ref(), &capabilities)?;
    }
    let template = template(args, context)?;
    // Else each sandbox would be refused, when a model asks for one.
    template.mounts.iter().try_for_each(|mount| context.refuse_mount(mount))?;
    note_unusable_mounts(&template.mounts, context);
    // It makes the state folder, whose disk is the measure of a quota.
    let engine = context.engine_for(template.image.as_deref()).await?;
    let tools = toolsets_over(engine.provider().as_ref(), names, args.workspace_options.as_ref())?;
    let options = pool_options(args, template, context)?;
    let told = told_template(&options.template, context);
    Ok(McpServer::new(tools, pools(args.pool.as_ref(), engine, options)?)?.with_template(told))
}

/// Returns what a model is told of the template: a folder to which sandboxes can't write is a read-only one for it.
fn told_template(template: &SandboxSpec, context: &Context) -> SandboxSpec {
    let mut told = template.clone();
    for mount in &mut told.mounts {
        mount.writable &= context.why_not_usable(mount).is_none();
    }
    told
}

/// Makes the tools that a server answers. A pool per session cannot be made this way: only the
/// server itself can destroy it however the session ends.
async fn remote_server(
    args: &McpArgs,
    names: &[&str],
    server: &RemoteServer,
    config: &Config,
) -> Result<McpServer, Failure> {
    let Some(pool) = &args.pool else {
        let failure = Failure::usage("a session's own sandboxes can't be a server's");
        return Err(failure.hint("`--pool NAME` names a pool of the server, which stays"));
    };
    let asked = args.spec.0.to_spec(&config.defaults)?;
    if asked != SpecArgs::default().to_spec(&config.defaults)? {
        let failure = Failure::usage("what a server's sandboxes are made from is the server's to say");
        return Err(failure.hint("leave the sandbox options out"));
    }
    let (tools, pool) = served(server, Some(pool), names, args.workspace_options.as_ref()).await?;
    Ok(McpServer::new(tools, SessionPools::Shared(pool))?)
}

async fn serve(
    args: &McpArgs,
    server: &McpServer,
    stop: CancellationToken,
    context: &Context,
) -> Result<(), Failure> {
    let Some(address) = &args.http else {
        let stdin = stdio::stdin_stream().map_err(|error| Failure::host("read our standard input", error))?;
        let stdin = StreamReader::new(stdin.map_err(std::io::Error::other));
        return Ok(serve_stdio(server, stdin, tokio::io::stdout(), stop).await?);
    };
    let limits = shared_files(context)?;
    let mut entry = access::open(address, &args.access, context).await?;
    entry.options.limits = limits;
    Ok(serve_http(server, entry.listener, entry.options, stop).await?)
}

/// Returns the limits of clients, which leave the server enough files for its own work.
fn shared_files(context: &Context) -> Result<ServeLimits, Failure> {
    let wanted = ServeLimits::default();
    let limits = OpenFiles::raise()?.share(wanted.clone(), 1)?;
    if limits != wanted {
        let connections = limits.max_connections;
        context.output.note(&format!(
            "the limit of open files leaves {connections} connections; `ulimit -n` raises it"
        ));
    }
    Ok(limits)
}

fn pools(named: Option<&SandboxName>, engine: Engine, options: PoolOptions) -> Result<SessionPools, Failure> {
    if named.is_some() {
        return Ok(SessionPools::Shared(engine.pool(options)?));
    }
    let pools = SessionPools::per_session(move || {
        let name = SandboxName::parse(&format!("mcp-{}", uuid::Uuid::now_v7().simple()))?;
        engine.pool(PoolOptions { name, session: true, ..options.clone() })
    });
    Ok(pools)
}

/// Returns the spec of the sandboxes.
fn template(args: &McpArgs, context: &Context) -> Result<SandboxSpec, Failure> {
    if args.spec.0.name.is_some() || args.spec.0.id.is_some() {
        let failure = Failure::usage("`--name` and `--id` are one sandbox's, and a session has many");
        return Err(failure.hint("`--pool NAME` names a pool that stays"));
    }
    args.spec.0.to_spec_in(&context.config.defaults, Some(POOL_WORKDIR))
}

/// Returns the options of the clients' pools. Clients by HTTP may share the host, as those of a
/// server do.
fn pool_options(args: &McpArgs, template: SandboxSpec, context: &Context) -> Result<PoolOptions, Failure> {
    let name = args.pool.clone().unwrap_or_else(|| PoolOptions::default().name);
    match args.http {
        Some(_) => Ok(context.config.served_pool(name, template, &UsualQuotas::for_this_host(context)?)),
        None => Ok(context.config.pool(name, template)),
    }
}
