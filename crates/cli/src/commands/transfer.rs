//! `eyot transfer`: copies a file or a tree from one sandbox to another, completely or not at all. Each side names its
//! sandbox with its holder: a provider on this host, or a server.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Sandbox, SandboxName, SandboxOperationUnsupported};
use eyot_engine::{Transfer, TransferObserver, Transferred, check_source, transfer_observed};

use crate::args::{PlaceArg, SandboxHolder, TransferArgs};
use crate::context::Context;
use crate::copy::{ByteMeter, watch};
use crate::errors::{Failure, USAGE};
use crate::pools::Pool;
use crate::provider::ProviderRow;
use crate::signals::Signals;

pub async fn run(args: TransferArgs, context: &Context) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let meter = ByteMeter::default();
    let copied = tokio::select! {
        copied = watch(context.output, &meter, copy(args, &meter, context)) => copied?,
        signal = signals.end() => return Err(Failure::Interrupted(signal)),
    };
    if context.output.json {
        context.output.value(&copied)?
    } else {
        let files = if copied.files == 1 { "file" } else { "files" };
        context.output.text(&format!("{} {files}, {} bytes\n", copied.files, copied.bytes))?;
    }
    Ok(0)
}

async fn copy(args: TransferArgs, meter: &ByteMeter, context: &Context) -> Result<Transferred, Failure> {
    let TransferArgs { from, to, recursive, pool } = args;
    let what = Transfer { from_path: from.path.clone(), to_path: to.path.clone(), recursive };
    let counting = meter.clone();
    let observer: TransferObserver = Arc::new(move |bytes| counting.add(bytes));
    let copied = match pool {
        Some(pool) => in_pool(pool, (&from, &to), &what, observer, context).await,
        None => between((&from, &to), &what, observer, context).await,
    };
    copied.map_err(|failure| with_directory_hint(failure, &from, &to))
}

/// Copies between two sandboxes of a pool, of which the target is made if need be.
async fn in_pool(
    pool: SandboxName,
    (from, to): (&PlaceArg, &PlaceArg),
    what: &Transfer,
    observer: TransferObserver,
    context: &Context,
) -> Result<Transferred, Failure> {
    for side in [from, to] {
        if side.holder.is_some() || side.name.contains('/') {
            let message = format!("--pool names the pool of both sides, and {side} names another");
            return Err(Failure::usage(message).hint("leave --pool out, and write POOL/NAME on each side"));
        }
    }
    Ok(Pool::of(pool, context).await?.transfer(&from.name, &to.name, what, observer).await?)
}

/// Copies between two sandboxes that exist, wherever they are.
async fn between(
    (from, to): (&PlaceArg, &PlaceArg),
    what: &Transfer,
    observer: TransferObserver,
    context: &Context,
) -> Result<Transferred, Failure> {
    // Both sides are known to mean something before either is woken.
    let (source, target) = (context_of(from, context).await?, context_of(to, context).await?);
    let source = awake(from, &source).await?;
    check_source(&source, what).await.map_err(|error| on_side(error, from))?;
    let target = awake(to, &target).await?;
    transfer_observed(&source, &target, what, observer).await.map_err(|error| {
        let is_between = from.holder != to.holder;
        if is_between { error.context(format!("transfer {from} to {to}")).into() } else { error.into() }
    })
}

async fn awake(side: &PlaceArg, context: &Context) -> Result<Sandbox, Failure> {
    match context.awake(&side.name).await {
        Err(Failure::Error { error, exit_code }) => {
            let error = match side.holder {
                Some(SandboxHolder::Provider(row)) => of_provider(error, row, side, context).await,
                None if error.kind() == ErrorKind::NotFound && side.name.contains('/') => error.with_hint(
                    "a side is [PROVIDER/][POOL/]NAME:PATH: `eyot pool ls` and `eyot providers` list both",
                ),
                _ => error,
            };
            Err(Failure::with_code(with_holder(error, side), exit_code))
        }
        other => other,
    }
}

/// Says why a provider's sandbox can't be had where another provider made the one of that name: the
/// provider can't be used here, or it has none.
async fn of_provider(error: Error, row: &ProviderRow, side: &PlaceArg, context: &Context) -> Error {
    let maker = context.maker_of(&side.name).ok().flatten().filter(|maker| maker != row.name);
    let Some(maker) = maker else { return error };
    let check = context.provider_settings.check().await;
    if !check.usable {
        let unusable = Error::new(ErrorKind::Unavailable, check.why);
        return match check.fix {
            Some(fix) => unusable.with_hint(fix),
            None => unusable,
        };
    }
    let (name, wanted) = (&side.name, row.name);
    let message = format!("there is no sandbox `{name}` on {wanted}; {maker} has one of that name");
    Error::new(ErrorKind::NotFound, message).with_hint(format!(
        "`{maker}/{name}:PATH` is that one, and `eyot --provider {wanted} ls` lists the others"
    ))
}

fn on_side(error: Error, side: &PlaceArg) -> Failure {
    with_holder(error, side).into()
}

/// Adds the side to the sentence of an error where the side names its holder: two may have sandboxes of one name.
fn with_holder(error: Error, side: &PlaceArg) -> Error {
    if side.holder.is_some() { error.context(format!("transfer: {side}")) } else { error }
}

/// Returns the context of a side's sandbox.
async fn context_of(side: &PlaceArg, context: &Context) -> Result<Context, Failure> {
    let Some(holder) = side.holder else { return Ok(context.clone()) };
    refuse_two_meanings(side, holder, context).await?;
    match holder {
        SandboxHolder::Server if context.names_a_server() => Ok(context.clone()),
        SandboxHolder::Server => Err(Failure::usage(format!("{side} is a server's, and no server is named"))
            .hint("name it with `--server URL` or EYOT_SERVER")),
        SandboxHolder::Provider(row) if row.lives_with_its_process => served_by(row, side, context).await,
        SandboxHolder::Provider(row) => Ok(context.on_this_host(row)),
    }
}

/// Refuses `X/NAME` where X is a provider and there is a pool X as well.
async fn refuse_two_meanings(
    side: &PlaceArg,
    holder: SandboxHolder,
    context: &Context,
) -> Result<(), Failure> {
    let word = holder.word();
    if !side.may_mean_a_pool() || !context.has_pool(&SandboxName::parse(word)?).await? {
        return Ok(());
    }
    let name = &side.name;
    let of_pools = if context.names_a_server() { "server" } else { context.provider_settings.row.name };
    let message = format!("{side} has two meanings: `{word}` is a pool as well");
    Err(Failure::usage(message).hint(format!(
        "say `{of_pools}/{word}/{name}` for the sandbox of that pool, or `{word}/default/{name}`, with its pool"
    )))
}

/// Returns the context of the server, which must serve sandboxes of this provider: on this host they end with the
/// process that makes them, so a command finds none.
async fn served_by(row: &ProviderRow, side: &PlaceArg, context: &Context) -> Result<Context, Failure> {
    let name = row.name;
    let Some(server) = context.server()? else {
        let error = SandboxOperationUnsupported::new("use of a sandbox of an earlier command", name, &[]);
        let hint = format!(
            "its sandboxes end with the process that makes them: `eyot --provider {name} serve` keeps them, and \
             `--server URL` names that server for {side}"
        );
        return Err(Failure::with_code(Error::from(error).with_hint(hint), USAGE));
    };
    let provider = server.provider(None).await?;
    let served = eyot::SandboxProvider::name(provider.as_ref());
    if served == name {
        return Ok(context.clone());
    }
    let message = format!("{side} is of {name}, and the server has sandboxes of {served}");
    Err(Failure::usage(message).hint("`server/NAME:PATH` is a sandbox of the server, whatever its provider"))
}

/// Says what to write instead of a directory: of a source, and of the target of a file.
fn with_directory_hint(failure: Failure, from: &PlaceArg, to: &PlaceArg) -> Failure {
    match &failure {
        Failure::Error { error, .. } if error.kind() != ErrorKind::IsDirectory => failure,
        // The engine's hint names its own option.
        Failure::Error { error, .. } if error.hint().is_some() => {
            failure.hint("-r copies a directory with everything below it")
        }
        Failure::Error { .. } => {
            let folder = to.path.trim_end_matches('/');
            let name = from.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let below = if to.path.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            failure.hint(format!("the second path is the copy's own name, such as `{}:{below}`", to.name))
        }
        _ => failure,
    }
}
