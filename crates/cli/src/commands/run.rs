//! `eyot run`: runs one command in a sandbox that is destroyed whatever happens, even if we panic.

use std::panic::{AssertUnwindSafe, resume_unwind};

use eyot::{Command, ErrorKind, IdleAction, Lifecycle, Sandbox, SandboxProvider, SandboxSpec, WorkspaceSpec};
use eyot_engine::shown_name;
use futures_util::FutureExt;

use crate::args::{RunArgs, SpecArgs};
use crate::attach::{self, Attachment};
use crate::command_hint::{note_without_terminal, shell_word};
use crate::context::Context;
use crate::errors::{COMMAND_NOT_FOUND, Failure};
use crate::output::Output;
use crate::signals::Signals;

/// The time that a throw-away sandbox outlives a killed `eyot run`, in milliseconds.
const ORPHANED_AFTER_MS: u64 = 30_000;

/// Names that are images to Docker's users, and hardly a program's.
const USUAL_IMAGES: [&str; 12] = [
    "alpine",
    "busybox",
    "centos",
    "debian",
    "fedora",
    "golang",
    "hello-world",
    "nginx",
    "postgres",
    "redis",
    "rust",
    "ubuntu",
];

pub async fn run(args: RunArgs, context: &Context) -> Result<u8, Failure> {
    if args.keep {
        context.refuse_if_it_ends_with_us("run --keep")?;
    }
    context.refuse_docker_flags(&args.spec)?;
    let mut spec = args.spec.to_spec(&context.config.defaults)?;
    if !args.keep {
        end_when_orphaned(&mut spec.lifecycle);
    }
    let hint = args.spec.image.is_none().then(|| image_hint(&args.command)).flatten();
    note_without_terminal(&args.command, args.terminal, "eyot run -it", context.output);
    let attachment = Attachment {
        command: Command::argv(args.command),
        cwd: None,
        env: Default::default(),
        user: None,
        timeout_ms: None,
        max_output_bytes: None,
        terminal: args.terminal,
    };
    // From here on a signal must not leave a sandbox behind.
    let mut signals = Signals::listen()?;
    // One that nobody can name needs no entry in the store; the pool knows which workspace is meant.
    let is_persistent = matches!(spec.workspace, WorkspaceSpec::Persistent { .. });
    let is_found = args.keep || spec.name.is_some() || is_persistent;
    let provider = if is_found {
        context.provider_of_new(args.spec.pool(), spec.name.as_ref()).await?
    } else {
        context.provider().await?
    };
    let sandbox = create(provider.as_ref(), spec, &mut signals, context.output).await;
    let sandbox = sandbox.map_err(|failure| with_taken_hint(failure, &args.spec))?;
    super::create::note_unheld(&args.spec, &sandbox, context);
    super::create::note_unusable_mounts(&sandbox.info().spec.mounts, context);
    let ran = attach::run(&sandbox, attachment, &mut signals, context.output);
    let ran = AssertUnwindSafe(ran).catch_unwind().await;
    if args.keep {
        context.output.note(&format!("kept sandbox {}", args.spec.shown_name(&sandbox)));
    } else if let Err(error) = sandbox.destroy().await {
        return Err(error.context(format!("destroy sandbox `{}`", sandbox.name())).into());
    }
    let ran = ran.unwrap_or_else(|panic| resume_unwind(panic));
    ran.map_err(|failure| match hint {
        Some(hint) if failure.exit_code() == COMMAND_NOT_FOUND && !failure.has_hint() => failure.hint(hint),
        _ => failure,
    })
}

/// Makes a throw-away sandbox end by itself soon after this process was killed: it is idle from
/// then on. While its command runs it is not, so no idle timeout of the caller's is cut short.
fn end_when_orphaned(lifecycle: &mut Lifecycle) {
    let asked = lifecycle.idle_timeout_ms.unwrap_or(ORPHANED_AFTER_MS);
    lifecycle.idle_timeout_ms = Some(asked.min(ORPHANED_AFTER_MS));
    lifecycle.on_idle = IdleAction::Destroy;
}

/// Says how an image is named, if the first word may be one. Docker's users name an image first, and
/// then the command: a program here, and its arguments.
fn image_hint(command: &[String]) -> Option<String> {
    let (first, rest) = command.split_first()?;
    let is_tagged = first.contains(':') || (first.contains('/') && !first.starts_with(['/', '.']));
    if !(is_tagged || USUAL_IMAGES.contains(&first.as_str())) || first.contains(char::is_whitespace) {
        return None;
    }
    let words: Vec<String> = rest.iter().map(|word| shell_word(word)).collect();
    let rest = if rest.is_empty() { "COMMAND".to_owned() } else { words.join(" ") };
    Some(format!("an image is named by an option: eyot run --image {first} -- {rest}"))
}

/// Says what can be done about a name that another sandbox has.
fn with_taken_hint(failure: Failure, asked: &SpecArgs) -> Failure {
    match (&failure, &asked.name) {
        (Failure::Error { error, .. }, Some(name))
            if error.kind() == ErrorKind::AlreadyExists && !failure.has_hint() =>
        {
            let pool = name.pool.as_ref();
            let named = pool.map_or_else(|| name.name.to_string(), |pool| shown_name(pool, &name.name));
            failure.hint(format!(
                "`eyot exec {named} -- COMMAND` runs it in the sandbox that is there, and `eyot rm {named}` destroys that"
            ))
        }
        _ => failure,
    }
}

/// Creates the sandbox. After a signal the create still runs to its end, so that there is something
/// to destroy. A second signal stops that too, and removes whatever has the id.
async fn create(
    provider: &dyn SandboxProvider,
    mut spec: SandboxSpec,
    signals: &mut Signals,
    output: Output,
) -> Result<Sandbox, Failure> {
    let id = spec.id.get_or_insert_with(eyot::SandboxId::generate).clone();
    let mut making = Box::pin(output.explain_a_wait(super::create::WAIT, Sandbox::create(provider, spec)));
    let signal = tokio::select! {
        made = &mut making => return Ok(made?),
        signal = signals.end() => signal,
    };
    let made = tokio::select! {
        made = &mut making => made.map(|sandbox| sandbox.id().clone()),
        _ = signals.end() => Ok(id),
    };
    drop(making);
    if let Ok(id) = made
        && let Err(error) = provider.remove(id.as_str()).await
    {
        tracing::warn!(%error, "an interrupted sandbox was not removed");
    }
    Err(Failure::Interrupted(signal))
}
