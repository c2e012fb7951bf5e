//! `eyot agent`: runs an agent on a task in a sandbox of its own, and shows the work.

mod handler;
mod ls;
mod render;

use std::path::PathBuf;
use std::sync::Arc;

use eyot::SandboxName;
use eyot_agent::{
    AgentError, AgentEventKind, AgentFile, AgentStore, Agents, EngineStore, ModelErrorKind, RunFilter,
    RunHandle, RunRecord, RunRequest, RunStatus,
};
use eyot_engine::{DEFAULT_SANDBOX, Engine, SandboxPool};
use eyot_providers::registry::find;

use super::create::note_unusable_mounts;
use crate::args::{AgentArgs, AgentCommand, AgentWorkArgs, SpecArgs};
use crate::config::configure_models;
use crate::context::Context;
use crate::errors::{Failure, USAGE};
use crate::signals::Signals;
use handler::{AGENT, AgentFileRef, AgentTask};
use render::Renderer;

/// Words that are commands elsewhere, and hardly a task.
const COMMAND_WORDS: [&str; 9] = ["delete", "kill", "list", "logs", "ps", "remove", "rm", "show", "stop"];
/// The exit code if the agent did not finish its task.
const NOT_DONE: u8 = 1;

pub async fn run(args: AgentArgs, context: &Context) -> Result<u8, Failure> {
    match args.command {
        Some(AgentCommand::Ls(args)) => ls::run(&args, context).await,
        None => work(args.work, context).await,
    }
}

async fn work(mut args: AgentWorkArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_server("an agent works in this host's own sandboxes")?;
    refuse_what_is_no_work(&args)?;
    // Before a model is named.
    configure_models(&context.config.models);
    let before = match &args.go_on {
        Some(id) => Some(last_run(id, context).await?),
        None => None,
    };
    let known = before.as_ref().and_then(|before| AgentTask::of_payload(&before.payload).ok());
    let place = match &args.agent {
        Some(name) => Some(AgentFileRef { folder: agents_folder()?, name: name.clone() }),
        None => known.as_ref().and_then(|known| known.agent.clone()),
    };
    let file = place.as_ref().map(AgentFileRef::read).transpose();
    let file = file.map_err(|error| Failure::with_code(error, USAGE))?;
    let mut task = task(&args, place, file.as_ref(), before.as_ref(), known.as_ref())?;
    let provider = file.as_ref().and_then(|file| file.provider.clone());
    let provider = provider.or_else(|| known.as_ref()?.provider.clone());
    let context = &match provider {
        Some(provider) => {
            context.by_default_over(find(&provider).map_err(|error| Failure::with_code(error, USAGE))?)
        }
        None => context.clone(),
    };
    let image = file.as_ref().and_then(|file| file.image.clone());
    let usual = SpecArgs { image: image.clone(), ..SpecArgs::default() }.to_spec(&context.config.defaults)?;
    args.spec.image = args.spec.image.or(image);
    let spec = args.spec.to_spec(&context.config.defaults)?;
    note_unusable_mounts(&spec.mounts, context);
    let is_usual = spec == usual;
    let engine = context.engine_for(spec.image.as_deref()).await?;
    let id = match args.go_on {
        Some(id) => id,
        None => new_id()?,
    };
    let pool = engine.pool(context.config.pool(id.clone(), spec))?;
    if is_usual && known.as_ref().is_some_and(|known| known.has_own_spec) {
        find_sandbox(&pool, &id).await?;
    }
    if let Some(task) = &mut task {
        task.toolset(file.as_ref(), &pool).map_err(|error| Failure::with_code(error, USAGE))?;
        task.provider = Some(pool.provider().name().to_owned());
        task.has_own_spec |= !is_usual;
    }
    let store: Arc<dyn AgentStore> = Arc::new(EngineStore::new(Arc::clone(engine.store())));
    let agents = Agents::new(Arc::clone(&store));
    handler::register(&agents, pool.clone())?;
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let run = match (&before, task) {
        (_, Some(task)) => agents.begin(request(&id, &task)?).await?,
        (Some(before), None) => resume(&agents, before, &id).await?,
        (None, None) => return Err(no_task()),
    };
    context.output.note(&format!("agent {id} works in sandbox {id}/default"));
    let run_id = run.id().to_owned();
    let shown = show(run, &mut signals, context).await?;
    let has_ended = store.run(&run_id).await?.is_none_or(|run| run.status != RunStatus::Active);
    if has_ended && before.is_none() && shown.has_done_nothing() {
        remove_unused(&pool, context).await;
    } else {
        let rest = if has_ended { " 'TASK'" } else { "" };
        context.output.note(&format!("to continue: eyot agent --continue {id}{rest}"));
    }
    ended_as(shown)
}

/// Refuses names of the agent's sandbox, and words that are commands elsewhere.
fn refuse_what_is_no_work(args: &AgentWorkArgs) -> Result<(), Failure> {
    if args.spec.name.is_some() || args.spec.id.is_some() {
        let failure = Failure::usage("an agent always works in the sandbox `default` of its pool");
        return Err(failure.hint("leave out --name and --id; --continue ID reuses a sandbox"));
    }
    if let Some(word) = args.task.as_deref().filter(|task| COMMAND_WORDS.contains(task)) {
        let failure = Failure::usage(format!("`eyot agent` has no command `{word}`"));
        return Err(failure.hint(
            "`eyot agent ls` lists the runs, and `eyot pool rm ID` removes an agent's sandbox; a task has more words",
        ));
    }
    Ok(())
}

/// Removes the sandbox of an agent whose model never answered: there is nothing to continue, and each try would leave one.
async fn remove_unused(pool: &SandboxPool, context: &Context) {
    let removed = pool.remove(DEFAULT_SANDBOX).await;
    // Nor a pool that nobody asked for.
    if pool.list().await.is_ok_and(|rest| rest.is_empty())
        && let Err(error) = pool.close().await
    {
        tracing::warn!(%error, "the agent's empty pool stays");
    }
    match removed {
        Ok(()) => context.output.note("the model never answered; the sandbox is removed"),
        Err(error) if error.kind() == eyot::ErrorKind::NotFound => {
            context.output.note("nothing was done, and no sandbox is left");
        }
        Err(error) => context.output.note(&format!("the unused sandbox is not removed: {error}")),
    }
}

/// The run of a task. Its pool has the agent's own name.
fn request(id: &SandboxName, task: &AgentTask) -> Result<RunRequest, Failure> {
    Ok(RunRequest {
        agent: AGENT.to_owned(),
        instance_id: id.to_string(),
        pool: Some(id.to_string()),
        sandbox: Some(DEFAULT_SANDBOX.to_owned()),
        payload: task.to_payload()?,
        ..RunRequest::default()
    })
}

/// Finds the sandbox of an agent that made it with options of its own. One that is gone can't be made again as it was.
async fn find_sandbox(pool: &SandboxPool, id: &SandboxName) -> Result<(), Failure> {
    if pool.list().await?.iter().any(|entry| entry.name.as_str() == DEFAULT_SANDBOX) {
        return Ok(());
    }
    let failure = Failure::usage(format!("the sandbox of `{id}` is gone, and it had options of its own"));
    Err(failure.hint("give the options of its sandbox again, or begin anew: eyot agent 'TASK'"))
}

/// Returns the folder of agent files.
fn agents_folder() -> Result<PathBuf, Failure> {
    let folder = std::path::absolute("agents");
    folder.map_err(|error| Failure::host("find the folder `agents`", error))
}

/// Returns the task of a new run, or `None` if the previous run is to be resumed.
fn task(
    args: &AgentWorkArgs,
    agent: Option<AgentFileRef>,
    file: Option<&AgentFile>,
    before: Option<&RunRecord>,
    known: Option<&AgentTask>,
) -> Result<Option<AgentTask>, Failure> {
    let Some(text) = &args.task else {
        return match before {
            Some(before) if before.status == RunStatus::Active => refuse_flags(args).map(|()| None),
            Some(before) => {
                let failure = Failure::usage(format!("the last run of `{}` has ended", before.instance_id));
                Err(failure.hint("give the next task: eyot agent --continue ID 'now do this'"))
            }
            None => Err(no_task()),
        };
    };
    if let Some(before) = before.filter(|before| before.status == RunStatus::Active) {
        let failure = Failure::usage(format!("the last run of `{}` has not ended", before.instance_id));
        return Err(failure.hint("resume it first: eyot agent --continue ID, without a task"));
    }
    let model = args.model.clone().or_else(|| file?.model.clone()).or_else(|| Some(known?.model.clone()));
    let Some(model) = model else {
        let failure = Failure::usage("no model is given");
        return Err(failure
            .hint("use --model ollama/qwen3 for a local server, or --model anthropic/claude-haiku-4-5"));
    };
    eyot_agent::check_model(&model).map_err(|error| match error.kind() {
        eyot::ErrorKind::Permission => Failure::with_code(error, USAGE).hint(
            "`[models.PROVIDER]` of the configuration may have it as `api_key`, too (docs/configuration.md)",
        ),
        _ => Failure::with_code(error, USAGE),
    })?;
    Ok(Some(AgentTask::new(text, model, agent, args, known)))
}

/// A run that is gone on with is as it was.
fn refuse_flags(args: &AgentWorkArgs) -> Result<(), Failure> {
    let AgentWorkArgs { agent, model, tools, mcp, instructions, .. } = args;
    let given = [
        ("--agent", agent.is_some()),
        ("--model", model.is_some()),
        ("--tools", tools.is_some()),
        ("--mcp", !mcp.is_empty()),
        ("--instructions", instructions.is_some()),
        ("--max-turns", args.max_turns.is_some()),
        ("--max-tokens", args.max_tokens.is_some()),
        ("--max-cost", args.max_cost.is_some()),
        ("--max-time", args.max_time.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => {
            let failure = Failure::usage(format!("{flag} can't change a run that has not ended"));
            Err(failure.hint("let it end first: eyot agent --continue ID"))
        }
        None => Ok(()),
    }
}

fn no_task() -> Failure {
    Failure::usage("no task is given").hint("for example: eyot agent --model MODEL 'write a haiku'")
}

/// Returns an ID that no agent has had. It begins with the time.
fn new_id() -> Result<SandboxName, Failure> {
    let random = uuid::Uuid::now_v7().simple().to_string();
    Ok(SandboxName::parse(&format!("agent-{}{}", &random[..12], &random[28..]))?)
}

/// Returns the last run of an agent.
async fn last_run(id: &SandboxName, context: &Context) -> Result<RunRecord, Failure> {
    let engine: Engine = context.engine().await?;
    let store = EngineStore::new(Arc::clone(engine.store()));
    let filter = RunFilter {
        instance_id: Some(id.to_string()),
        agent_name: Some(AGENT.to_owned()),
        limit: Some(1),
        ..RunFilter::default()
    };
    store
        .runs(filter)
        .await?
        .pop()
        .ok_or_else(|| Failure::usage(format!("there is no agent `{id}`")).hint("`eyot agent ls` lists them"))
}

async fn resume(agents: &Agents, before: &RunRecord, id: &SandboxName) -> Result<RunHandle, Failure> {
    agents.resume_run(&before.run_id).await?.ok_or_else(|| {
        let failure = Failure::usage(format!("the run of `{id}` is still active in another process"));
        failure.hint("wait for it, or end that process")
    })
}

/// What is known of a run when it has been shown.
struct ShownRun {
    result: Result<(), AgentError>,
    /// The signal that stopped it.
    signal: Option<i32>,
    has_answered: bool,
}

impl ShownRun {
    /// Returns whether the run failed before the model said anything.
    fn has_done_nothing(&self) -> bool {
        !self.has_answered && matches!(self.result, Err(AgentError::Model { .. } | AgentError::Other(_)))
    }
}

/// Shows the work until it ends. A signal stops it, and so does an output that nobody reads; a second signal does not wait.
async fn show(mut run: RunHandle, signals: &mut Signals, context: &Context) -> Result<ShownRun, Failure> {
    let mut renderer = Renderer::new(context.output);
    let (mut signal, mut has_answered) = (None, false);
    loop {
        tokio::select! {
            biased;
            event = run.next_event() => {
                let Some(event) = event else { break };
                has_answered |= matches!(event.kind, AgentEventKind::Turn { is_error: false, .. });
                if let Err(error) = renderer.show(&event) {
                    run.abort("its output was closed");
                    run.result().await.ok();
                    return Err(error);
                }
            },
            number = signals.end() => match signal {
                None => {
                    signal = Some(number);
                    run.abort("the agent was stopped");
                }
                Some(_) => return Err(Failure::Interrupted(number)),
            }
        }
        if renderer.has_ended() {
            break;
        }
    }
    Ok(ShownRun { result: run.result().await.map(drop), signal, has_answered })
}

fn ended_as(shown: ShownRun) -> Result<u8, Failure> {
    match (shown.result, shown.signal) {
        (_, Some(signal)) => Err(Failure::Interrupted(signal)),
        (Ok(()), None) => Ok(0),
        (Err(AgentError::Other(error)), None) => Err(error.into()),
        (Err(error), None) => Err(not_done(&error)),
    }
}

fn not_done(error: &AgentError) -> Failure {
    let failure =
        Failure::with_code(eyot::Error::new(eyot::ErrorKind::Unavailable, error.to_string()), NOT_DONE);
    if let AgentError::Budget(_) = error {
        return failure.hint("a task that continues it has a budget of its own; `eyot agent --help` lists the options that set it");
    }
    let AgentError::Model { source, .. } = error else { return failure };
    match source.kind {
        // It names the variable itself.
        ModelErrorKind::Unauthorized if source.message.contains("has no key") => failure,
        ModelErrorKind::Unauthorized => failure.hint(
            "the key is in ANTHROPIC_API_KEY or OPENAI_API_KEY, or in `[models.PROVIDER]` of the configuration",
        ),
        ModelErrorKind::Unreachable => failure.hint(
            "is the model's server running there? `[models.PROVIDER]` of the configuration says where it is; so does ANTHROPIC_BASE_URL (anthropic), OPENAI_BASE_URL (openai) or OLLAMA_HOST (ollama)",
        ),
        _ => failure,
    }
}
