//! `eyot agent`: an agent works on a task, in a sandbox of its own, and its work is shown.

mod handler;
mod ls;
mod render;

use std::path::PathBuf;
use std::sync::Arc;

use eyot::SandboxName;
use eyot_agent::{
    AgentError, AgentStore, Agents, EngineStore, ModelErrorKind, RunFilter, RunHandle, RunRecord, RunStatus,
};
use eyot_engine::Engine;
use eyot_providers::registry::find;

use crate::args::{AgentArgs, AgentCommand, AgentWorkArgs};
use crate::context::Context;
use crate::errors::{Failure, USAGE};
use crate::signals::Signals;
use handler::{AGENT, AgentPlace, AgentTask};
use render::Renderer;

/// Exit code: the agent did not do it.
const NOT_DONE: u8 = 1;

pub async fn run(args: AgentArgs, context: &Context) -> Result<u8, Failure> {
    match args.command {
        Some(AgentCommand::Ls(args)) => ls::run(&args, context).await,
        None => work(args.work, context).await,
    }
}

async fn work(mut args: AgentWorkArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_server("an agent works in this host's own sandboxes")?;
    if args.spec.name.is_some() || args.spec.id.is_some() {
        let failure = Failure::usage("an agent's sandbox is `default` in the pool of its ID");
        return Err(failure.hint("leave --name and --id out; --continue ID uses a sandbox again"));
    }
    let before = match &args.go_on {
        Some(id) => Some(last_run(id, context).await?),
        None => None,
    };
    let known = before.as_ref().and_then(|before| AgentTask::of_payload(&before.payload).ok());
    let place = match &args.agent {
        Some(name) => Some(AgentPlace { folder: agents_folder()?, name: name.clone() }),
        None => known.as_ref().and_then(|known| known.agent.clone()),
    };
    let file = place.as_ref().map(AgentPlace::read).transpose();
    let file = file.map_err(|error| Failure::with_code(error, USAGE))?;
    args.model = args.model.or_else(|| file.as_ref()?.model.clone()).or(known.map(|known| known.model));
    args.spec.image = args.spec.image.or_else(|| file.as_ref()?.image.clone());
    let task = task(&args, place, before.as_ref())?;
    let context = &match file.as_ref().and_then(|file| file.provider.as_deref()) {
        Some(provider) => {
            context.by_default_over(find(provider).map_err(|error| Failure::with_code(error, USAGE))?)
        }
        None => context.clone(),
    };
    let spec = args.spec.to_spec(&context.config.defaults)?;
    let engine = context.engine_for(spec.image.as_deref()).await?;
    let id = match args.go_on {
        Some(id) => id,
        None => new_id()?,
    };
    let pool = engine.pool(context.config.pool(id.clone(), spec))?;
    let store: Arc<dyn AgentStore> = Arc::new(EngineStore::new(Arc::clone(engine.store())));
    let agents = Agents::new(store);
    handler::register(&agents, pool)?;
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let run = match (&before, task) {
        (_, Some(task)) => agents.run(AGENT, id.as_str(), task.to_payload()?).await?,
        (Some(before), None) => resume(&agents, before, &id).await?,
        (None, None) => return Err(no_task()),
    };
    let ended = show(run, &mut signals, context).await?;
    ended_as(ended, &id, context)
}

/// The folder of the agents that are files.
fn agents_folder() -> Result<PathBuf, Failure> {
    let folder = std::path::absolute("agents");
    folder.map_err(|error| Failure::host("find the folder `agents`", error))
}

/// The task of a new run; `None`: the run of before is gone on with.
fn task(
    args: &AgentWorkArgs,
    agent: Option<AgentPlace>,
    before: Option<&RunRecord>,
) -> Result<Option<AgentTask>, Failure> {
    let Some(text) = &args.task else {
        return match before {
            Some(before) if before.status == RunStatus::Active => Ok(None),
            Some(before) => {
                let failure = Failure::usage(format!("the last run of `{}` has ended", before.instance_id));
                Err(failure.hint("say what comes next: eyot agent --continue ID 'now do this'"))
            }
            None => Err(no_task()),
        };
    };
    if let Some(before) = before.filter(|before| before.status == RunStatus::Active) {
        let failure = Failure::usage(format!("the last run of `{}` has not ended", before.instance_id));
        return Err(failure.hint("go on with it first: eyot agent --continue ID, without a task"));
    }
    let Some(model) = args.model.clone() else {
        let failure = Failure::usage("there is no model");
        return Err(
            failure.hint("--model ollama/qwen3 for a local server, or --model anthropic/claude-haiku-4-5")
        );
    };
    eyot_agent::resolve_model(&model).map_err(|error| Failure::with_code(error, USAGE))?;
    Ok(Some(AgentTask::new(text, model, agent, args)))
}

fn no_task() -> Failure {
    Failure::usage("there is no task").hint("say it in words: eyot agent --model MODEL 'write a haiku'")
}

/// An ID that no agent had before: it begins with the time.
fn new_id() -> Result<SandboxName, Failure> {
    let random = uuid::Uuid::now_v7().simple().to_string();
    Ok(SandboxName::parse(&format!("agent-{}{}", &random[..12], &random[28..]))?)
}

/// The last run of an agent.
async fn last_run(id: &SandboxName, context: &Context) -> Result<RunRecord, Failure> {
    let engine: Engine = context.engine().await?;
    let store = EngineStore::new(Arc::clone(engine.store()));
    let filter = RunFilter { instance_id: Some(id.to_string()), limit: Some(1), ..RunFilter::default() };
    store
        .runs(filter)
        .await?
        .pop()
        .ok_or_else(|| Failure::usage(format!("there is no agent `{id}`")).hint("`eyot agent ls` lists them"))
}

async fn resume(agents: &Agents, before: &RunRecord, id: &SandboxName) -> Result<RunHandle, Failure> {
    agents.resume_run(&before.run_id).await?.ok_or_else(|| {
        let failure = Failure::usage(format!("the run of `{id}` goes on in another process"));
        failure.hint("wait for it, or end that process")
    })
}

/// Shows the work until it ends. A signal stops it.
async fn show(
    mut run: RunHandle,
    signals: &mut Signals,
    context: &Context,
) -> Result<(Result<(), AgentError>, Option<i32>), Failure> {
    let mut renderer = Renderer::new(context.output);
    let mut signal = None;
    loop {
        tokio::select! {
            biased;
            event = run.next_event() => match event {
                Some(event) => renderer.show(&event)?,
                None => break,
            },
            number = signals.end(), if signal.is_none() => {
                signal = Some(number);
                run.abort("it was stopped");
            }
        }
        if renderer.has_ended() {
            break;
        }
    }
    Ok((run.result().await.map(drop), signal))
}

fn ended_as(
    (ended, signal): (Result<(), AgentError>, Option<i32>),
    id: &SandboxName,
    context: &Context,
) -> Result<u8, Failure> {
    context.output.note(&format!("to go on: eyot agent --continue {id} 'TASK'"));
    match (ended, signal) {
        (_, Some(signal)) => Err(Failure::Interrupted(signal)),
        (Ok(()), None) => Ok(0),
        (Err(AgentError::Other(error)), None) => Err(error.into()),
        (Err(error), None) => Err(not_done(&error)),
    }
}

fn not_done(error: &AgentError) -> Failure {
    let failure =
        Failure::with_code(eyot::Error::new(eyot::ErrorKind::Unavailable, error.to_string()), NOT_DONE);
    match error {
        AgentError::Model { source, .. } if source.kind == ModelErrorKind::Unauthorized => {
            failure.hint("is the provider's key set and valid? ANTHROPIC_API_KEY, OPENAI_API_KEY")
        }
        _ => failure,
    }
}
