//! The commands. Each takes its arguments, drives a sandbox through the library, prints, and
//! returns our exit code.

mod adopt;
mod agent;
mod apply;
mod backup;
mod bench;
mod browse;
mod call;
mod commit;
mod completions;
mod cp;
mod create;
mod dial;
mod diff;
mod doctor;
mod events;
mod exec;
mod fork;
mod glob;
mod grep;
mod help;
mod image;
mod init;
mod inspect;
mod keys;
mod kill;
mod logs;
mod ls;
mod man;
mod mcp;
mod net;
mod pool;
mod preview;
mod providers;
mod ps;
mod read;
mod restore;
mod rm;
mod rollback;
mod run;
mod serve;
mod sh;
mod sleep;
mod snapshot;
mod start;
mod tools;
mod top;
mod transfer;
mod update;
mod verify;
mod version;
mod wait;
mod wake;
mod watch;
mod workspace;
mod write;

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Builder;

use crate::args::{Cli, CliCommand};
use crate::context::Context;
use crate::errors::Failure;
use crate::logging;
use crate::output::Output;
use crate::provider::{OptionValue, SLOTS, names_where};
use crate::provider_hint::with_provider_hint;

/// The time that work on other threads has to clean up after an interruption.
const CLEAN_UP: Duration = Duration::from_secs(2);

/// Runs the command that the arguments name.
pub fn run(cli: Cli) -> Result<u8, Failure> {
    match cli.command {
        CliCommand::Completions(args) => completions::run(&args, Output::new(&cli.global)),
        CliCommand::Man(args) => man::run(&args, Output::new(&cli.global)),
        CliCommand::Help(args) => help::run(&args),
        CliCommand::Version(_) => version::run(Output::new(&cli.global)),
        CliCommand::Tools(args) => tools::run(&args, &cli.global),
        CliCommand::Init(args) => init::run(&args, Output::new(&cli.global)),
        command => {
            let mut context = Context::load(&cli.global)?;
            set_slots(&command, &mut context)?;
            let is_server = matches!(command, CliCommand::Serve(_));
            logging::start(context.config.log.as_deref(), cli.global.verbose, is_server)?;
            let ran = match &command {
                CliCommand::Serve(_) => {
                    block_on(Builder::new_multi_thread(), with_sandboxes(command, &context))
                }
                // One thread is enough, and starts fastest.
                _ => block_on(Builder::new_current_thread(), with_sandboxes(command, &context)),
            };
            ran.map_err(|failure| with_provider_hint(failure, &context))
        }
    }
}

/// The slots of a server that is told no number. Its clients wait for creates all day.
const SLOTS_OF_A_SERVER: usize = 2;

/// Sets the number of half-made sandboxes that a command keeps. A number of the command's own wins
/// over the option of the provider.
fn set_slots(command: &CliCommand, context: &mut Context) -> Result<(), Failure> {
    let (asked, default) = match command {
        CliCommand::Serve(args) => (args.slots, SLOTS_OF_A_SERVER),
        CliCommand::Mcp(args) => (args.slots, 0),
        _ => return Ok(()),
    };
    let settings = &mut context.provider_settings;
    if settings.row.option(SLOTS).is_none() {
        return match asked {
            None | Some(0) => Ok(()),
            Some(_) => {
                let providers = names_where(|row| row.option(SLOTS).is_some());
                let failure = Failure::usage(format!("only the provider {providers} has slots"));
                Err(failure.hint("leave --slots out"))
            }
        };
    }
    let slots = asked.or((settings.options.get(SLOTS).is_none()).then_some(default));
    if let Some(slots) = slots {
        settings.set(SLOTS, OptionValue::Number(slots as u64))?;
    }
    if asked.is_some_and(|slots| slots > 0) && !rustix::process::geteuid().is_root() {
        context.output.note("only root has slots: each sandbox is made when it is asked for");
    }
    Ok(())
}

/// Returns the reason why a command is only about this host, if it is: it refuses a server.
fn of_this_host(command: &CliCommand) -> Option<&'static str> {
    Some(match command {
        CliCommand::Adopt(_) => "`adopt` notes what this host's state folder has",
        CliCommand::Doctor(_) => "`doctor` looks at this host",
        CliCommand::Providers(_) => "`providers` looks at this host",
        CliCommand::Verify(_) => "`verify` tries the sandboxes of this host",
        CliCommand::Bench(_) => "`bench` measures this host",
        CliCommand::Workspace(_) => "`workspace` lists what this host's state folder keeps",
        CliCommand::Serve(_) => "`serve` serves the sandboxes of this host",
        CliCommand::Keys(_) => "`keys` keeps the keys of this host's own server",
        CliCommand::Backup(_) => "`backup` writes down what this host has",
        CliCommand::Restore(_) => "`restore` makes a state folder of this host",
        _ => return None,
    })
}

async fn with_sandboxes(command: CliCommand, context: &Context) -> Result<u8, Failure> {
    if let Some(what) = of_this_host(&command) {
        context.refuse_server(what)?;
    }
    match command {
        CliCommand::Run(args) => Box::pin(run::run(args, context)).await,
        CliCommand::Create(args) => create::run(args, context).await,
        CliCommand::Ls(args) => ls::run(&args, context).await,
        CliCommand::Exec(args) => Box::pin(exec::run(args, context)).await,
        CliCommand::Sh(args) => Box::pin(sh::run(args, context)).await,
        CliCommand::Start(args) => start::run(args, context).await,
        CliCommand::Ps(args) => ps::run(&args, context).await,
        CliCommand::Top(args) => top::run(&args, context).await,
        CliCommand::Logs(args) => logs::run(&args, context).await,
        CliCommand::Kill(args) => kill::run(&args, context).await,
        CliCommand::Wait(args) => wait::run(&args, context).await,
        CliCommand::Cp(args) => Box::pin(cp::run(args, context)).await,
        CliCommand::Read(args) => read::run(&args, context).await,
        CliCommand::Write(args) => write::run(args, context).await,
        CliCommand::Glob(args) => glob::run(args, context).await,
        CliCommand::Grep(args) => grep::run(args, context).await,
        CliCommand::Watch(args) => watch::run(&args, context).await,
        CliCommand::Net(args) => net::run(&args, context).await,
        CliCommand::Events(args) => events::run(&args, context).await,
        CliCommand::Inspect(args) => inspect::run(&args, context).await,
        CliCommand::Sleep(args) => sleep::run(&args, context).await,
        CliCommand::Wake(args) => wake::run(&args, context).await,
        CliCommand::Adopt(args) => adopt::run(&args, context).await,
        CliCommand::Update(args) => update::run(&args, context).await,
        CliCommand::Rm(args) => rm::run(&args, context).await,
        CliCommand::Snapshot(args) => snapshot::run(args, context).await,
        CliCommand::Fork(args) => fork::run(args, context).await,
        CliCommand::Apply(args) => apply::run(args, context).await,
        CliCommand::Commit(args) => commit::run(args, context).await,
        CliCommand::Rollback(args) => rollback::run(args, context).await,
        CliCommand::Diff(args) => diff::run(args, context).await,
        CliCommand::Dial(args) => dial::run(&args, context).await,
        CliCommand::Transfer(args) => transfer::run(args, context).await,
        CliCommand::Preview(args) => preview::run(&args, context).await,
        CliCommand::Browse(args) => browse::run(&args, context).await,
        CliCommand::Call(args) => Box::pin(call::run(args, context)).await,
        CliCommand::Pool(args) => Box::pin(pool::run(args, context)).await,
        CliCommand::Image(args) => Box::pin(image::run(args, context)).await,
        CliCommand::Workspace(args) => workspace::run(args, context).await,
        CliCommand::Agent(args) => Box::pin(agent::run(args, context)).await,
        CliCommand::Serve(args) => Box::pin(serve::run(args, context)).await,
        CliCommand::Keys(args) => keys::run(args, context).await,
        CliCommand::Backup(args) => backup::run(&args, context).await,
        CliCommand::Restore(args) => restore::run(&args, context).await,
        CliCommand::Mcp(args) => Box::pin(mcp::run(args, context)).await,
        CliCommand::Bench(args) => Box::pin(bench::run(args, context)).await,
        CliCommand::Verify(args) => Box::pin(verify::run(&args, context)).await,
        CliCommand::Providers(_) => providers::run(context).await,
        CliCommand::Doctor(args) => doctor::run(&args, context).await,
        CliCommand::Completions(_)
        | CliCommand::Man(_)
        | CliCommand::Help(_)
        | CliCommand::Version(_)
        | CliCommand::Tools(_)
        | CliCommand::Init(_) => {
            unreachable!("they need no sandboxes")
        }
    }
}

fn block_on(mut builder: Builder, work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::host("start the event loop", error))?;
    let result = runtime.block_on(work);
    match result {
        Err(Failure::Interrupted(_)) => runtime.shutdown_timeout(CLEAN_UP),
        _ => runtime.shutdown_background(),
    }
    result
}
