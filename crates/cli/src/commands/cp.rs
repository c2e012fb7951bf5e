//! `eyot cp`: copies files and trees into, out of and between sandboxes.

use std::os::unix::fs::FileTypeExt as _;

use eyot::{Error, ErrorKind, Sandbox};

use crate::args::{CpArgs, Side};
use crate::context::Context;
use crate::copy::{
    ByteMeter, CopyResult, Inside, across, inward, inward_stdin, outward, outward_stdout, watch,
};
use crate::errors::{FAILED, Failure};
use crate::output::Output;
use crate::signals::Signals;

pub async fn run(args: CpArgs, context: &Context) -> Result<u8, Failure> {
    let CpArgs { source, destination, max_bytes } = args;
    check(&source, &destination, context.output)?;
    let missing = |failure| name_the_sides(failure, &source, &destination);
    check_source(&source).map_err(missing)?;
    let (from, to) = (open(&source, context).await?, open(&destination, context).await?);
    let (from, to) = (inside(&source, from.as_ref()), inside(&destination, to.as_ref()));
    let meter = ByteMeter::default();
    let mut signals = Signals::listen()?;
    let work = copy((&source, from.as_ref()), (&destination, to.as_ref()), max_bytes, &meter);
    let copied = tokio::select! {
        copied = watch(context.output, &meter, work) => copied,
        signal = signals.end() => Err(Failure::Interrupted(signal)),
    };
    if copied.is_err()
        && let Some(to) = to
    {
        to.remove_incomplete().await;
    }
    let copied = copied.map_err(|failure| name_the_sides(failure, &source, &destination))?;
    report(&copied, context.output).map_err(|failure| name_the_sides(failure, &source, &destination))
}

/// Checks that one side is in a sandbox, and that a result has somewhere to go.
fn check(source: &Side, destination: &Side, output: Output) -> Result<(), Failure> {
    let is_inside = |side: &Side| matches!(side, Side::Sandbox { .. });
    if !is_inside(source) && !is_inside(destination) {
        return Err(
            Failure::usage("neither side is in a sandbox").hint("write NAME:PATH for a sandbox's file")
        );
    }
    if output.json && *destination == Side::Stdio {
        return Err(Failure::usage("stdout can't hold both the file and a result in JSON"));
    }
    Ok(())
}

/// Checks that what is copied from the host exists, before a sandbox is woken for it.
fn check_source(source: &Side) -> Result<(), Failure> {
    let Side::Host(path) = source else { return Ok(()) };
    let failed = |error: std::io::Error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let failure = Failure::host(format!("read `{}`", path.display()), error);
        let hint = "it is a path of this host; a file of a sandbox is NAME:PATH";
        if is_missing { failure.hint(hint) } else { failure }
    };
    let file = std::fs::metadata(path).map_err(failed)?;
    // What a shell makes of `<(command)` is a pipe, too.
    let is_the_shells = ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|of| path.starts_with(of));
    let kind = file.file_type();
    if is_the_shells || !(kind.is_fifo() || kind.is_socket()) {
        return Ok(());
    }
    let message = format!("read `{}`: it is a pipe or a socket", path.display());
    Err(Error::new(ErrorKind::Invalid, message)
        .with_hint("to copy what comes out of it: eyot cp - NAME:PATH < FILE")
        .into())
}

async fn open(side: &Side, context: &Context) -> Result<Option<Sandbox>, Failure> {
    match side {
        Side::Sandbox { name, .. } => context.awake(name).await.map(Some),
        Side::Host(_) | Side::Stdio => Ok(None),
    }
}

type OpenSide<'a> = (&'a Side, Option<&'a Inside<'a>>);

async fn copy(
    from: OpenSide<'_>,
    to: OpenSide<'_>,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    match (from.0, from.1, to.0, to.1) {
        (_, Some(from), _, Some(to)) => across(from, to, max_bytes, meter).await,
        (_, Some(from), Side::Stdio, _) => outward_stdout(from, max_bytes, meter).await,
        (_, Some(from), Side::Host(path), _) => outward(from, path, max_bytes, meter).await,
        (Side::Stdio, _, _, Some(to)) => inward_stdin(to, max_bytes, meter).await,
        (Side::Host(path), _, _, Some(to)) => inward(path, to, max_bytes, meter).await,
        _ => Err(Error::new(ErrorKind::Internal, "no side is in a sandbox").into()),
    }
}

fn inside<'a>(side: &'a Side, sandbox: Option<&'a Sandbox>) -> Option<Inside<'a>> {
    match (side, sandbox) {
        (Side::Sandbox { path, .. }, Some(sandbox)) => Some(Inside::new(sandbox, path)),
        _ => None,
    }
}

fn name_the_sides(failure: Failure, source: &Side, destination: &Side) -> Failure {
    match failure {
        Failure::Error { error, exit_code } => {
            Failure::with_code(error.context(format!("copy {source} to {destination}")), exit_code)
        }
        other => other,
    }
}

/// The most of the entries left out that are named, where somebody reads.
const NAMED: usize = 20;

/// Reports the copy. It fails if anything was left out, though everything else was copied.
fn report(copied: &CopyResult, output: Output) -> Result<u8, Failure> {
    if output.json {
        output.value(copied)?;
    } else {
        for skipped in copied.skipped.iter().take(NAMED) {
            output.complain(&Error::new(ErrorKind::Permission, format!("left out {skipped}")));
        }
    }
    let message = match copied.skipped.len() {
        0 => return Ok(0),
        1 => "one entry was left out; everything else was copied".to_owned(),
        many => format!("{many} entries were left out; everything else was copied"),
    };
    let left_out = Error::new(ErrorKind::Permission, message);
    let is_cut = !output.json && copied.skipped.len() > NAMED;
    let left_out =
        if is_cut { left_out.with_hint("with --json the answer names them all") } else { left_out };
    Err(Failure::with_code(left_out, FAILED))
}
