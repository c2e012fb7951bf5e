//! The agents of a server: the files of a folder, whose sandboxes are in the pools of their callers.

use std::path::PathBuf;
use std::sync::Arc;

use eyot::SandboxName;
use eyot_agent::{Agents, EngineStore, FileAgents};
use eyot_server::api::Api;

use crate::args::ServeArgs;
use crate::config::configure_models;
use crate::context::Context;
use crate::errors::Failure;

/// Returns the agents of a server that serves this API.
pub fn agents(args: &ServeArgs, api: &Api, context: &Context) -> Result<Agents, Failure> {
    let settings = &context.config.agents;
    configure_models(&context.config.models);
    let folder = folder(args, context)?;
    let provider = context.provider_settings.row.name;
    let settings_of_files = settings.of_files(provider, args.model.as_deref(), &context.config.pools);
    if let Some(model) = &settings_of_files.default_model {
        eyot_agent::resolve_model(model)?;
    }
    let pools = api.clone();
    let open = move |name: &str| pools.sandbox_pool(&SandboxName::parse(name)?);
    let files = FileAgents::new(folder, settings_of_files, open);
    for (name, error) in files.unfit()? {
        context.output.note(&format!("{name}.md can't be used: {error}"));
    }
    let store = Arc::new(EngineStore::new(Arc::clone(api.engine().store())));
    let agents = Agents::new(store).with_source(Arc::new(files));
    Ok(match settings.max_active_runs {
        Some(most) => agents.with_max_active_runs_per_pool(most),
        None => agents,
    })
}

/// Returns the folder of the agents' files. One that was named must be there.
fn folder(args: &ServeArgs, context: &Context) -> Result<PathBuf, Failure> {
    let Some(named) = args.agents.as_ref().or(context.config.agents.folder.as_ref()) else {
        return Ok(context.state_folder()?.join("agents"));
    };
    let failed = |error| {
        Failure::host(format!("read the agents of `{}`", named.display()), error)
            .hint("make the folder, with a file NAME.md for each agent, or leave --agents out")
    };
    let folder = std::fs::canonicalize(named).map_err(failed)?;
    std::fs::read_dir(&folder).map_err(failed)?;
    Ok(folder)
}

/// Goes on with the runs whose process is gone.
pub async fn resume(agents: &Agents) {
    match agents.resume().await {
        Ok(resumed) if resumed.is_empty() => {}
        Ok(resumed) => tracing::info!(runs = resumed.len(), "runs of agents go on"),
        Err(error) => tracing::error!(%error, "go on with the runs of agents"),
    }
}
