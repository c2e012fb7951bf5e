//! `eyot events`: prints, follows and verifies the event log.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use eyot::{Outcome, SandboxName};
use eyot_engine::DEFAULT_SANDBOX;
use eyot_engine::events::{BrokenChain, Event, EventFilter, EventKind, EventLog, EventLogOptions};
use eyot_engine::store::Store;
use eyot_providers::remote::RemoteServer;
use futures_util::{Stream, StreamExt};

use crate::args::EventsArgs;
use crate::context::Context;
use crate::durations::{humane, moment};
use crate::errors::{Failure, USAGE};
use crate::output::{Output, json_line, printable};
use crate::stdio::Sink;

/// Exit code: the log was changed.
const BROKEN: u8 = 1;
/// The number of events that are read at once.
const PAGE: usize = 256;
/// The note that a person reads while following.
const FOLLOWING: &str = "following the events; Ctrl-C ends it";

pub async fn run(args: &EventsArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(server) = context.server()? {
        return of_server(args, &server, context).await.map(|()| 0);
    }
    if let Some(store) = context.shared_store()? {
        return of_log(args, &EventLog::in_database(store), context).await;
    }
    let folder = context.state_folder()?.join("events");
    // To look at what is not there makes nothing; to wait for it does.
    let is_there = folder.try_exists().map_err(|error| Failure::host("open the event log", error))?;
    let database = context.state_folder()?.join("eyot.db");
    // A log that was removed is known to the store.
    let is_known = args.verify && !Store::is_missing(&database);
    if !is_there && !args.follow && !is_known {
        context.output.note("nothing has happened yet");
        return Ok(0);
    }
    if args.verify || args.new_log {
        return of_log(args, &open_anchored(folder, &database, context.output)?, context).await;
    }
    of_log(args, &EventLog::open(folder, EventLogOptions::default())?, context).await
}

/// Does with a log of this host, or of a database, what the arguments say.
async fn of_log(args: &EventsArgs, log: &Arc<EventLog>, context: &Context) -> Result<u8, Failure> {
    let output = context.output;
    match () {
        () if args.verify => verify(log, output)?,
        () if args.new_log => begin_anew(log, output)?,
        () if args.follow => follow(args, log, output).await?,
        () => print(args, log, output).await?,
    }
    Ok(0)
}

/// Opens the log with its anchor in the store, if there is a store.
fn open_anchored(folder: PathBuf, database: &Path, output: Output) -> Result<Arc<EventLog>, Failure> {
    if Store::is_missing(database) {
        let log = EventLog::open(folder, EventLogOptions::default())?;
        output.note("`eyot.db` is missing: without it nothing tells whether this log is an older copy");
        return Ok(log);
    }
    Ok(EventLog::open_anchored(folder, EventLogOptions::default(), Store::open(database)?)?)
}

fn begin_anew(log: &EventLog, output: Output) -> Result<(), Failure> {
    let aside = log.begin_anew()?;
    output.text(&format!("the old log is kept in {}\n", printable(&aside.to_string_lossy())))
}

/// Prints the events of a server's pools.
async fn of_server(args: &EventsArgs, server: &RemoteServer, context: &Context) -> Result<(), Failure> {
    if args.verify {
        return context.refuse_server("a log is checked on the host where it lies");
    }
    let events = server.events(args.from, args.follow, args.wanted_sandbox()).await?;
    if args.follow {
        context.output.note(FOLLOWING);
    }
    print_events(args, None, events, context.output).await
}

fn verify(log: &EventLog, output: Output) -> Result<(), Failure> {
    let verified = log.verify().map_err(|error| {
        let source =
            std::error::Error::source(&error).and_then(|source| source.downcast_ref::<BrokenChain>());
        match source.map(|broken| broken.seq) {
            None => Failure::from(error),
            Some(seq) => Failure::with_code(error, BROKEN).hint(format!(
                "events before {seq} are intact; to keep this log and begin a new one: eyot events --new-log"
            )),
        }
    })?;
    let (events, first, last) = (verified.events, verified.first_seq, verified.last_seq);
    match (output.json, events) {
        (true, _) => {
            output.value(&serde_json::json!({ "events": events, "first_seq": first, "last_seq": last }))
        }
        (false, 0) => output.text("no events\n"),
        (false, _) => output.text(&format!("Log verified: events {first}–{last}\n")),
    }
}

/// Prints the events that are in the log now.
async fn print(args: &EventsArgs, log: &EventLog, output: Output) -> Result<(), Failure> {
    let filter = filter(args)?;
    let limit = args.limit.unwrap_or(u64::MAX);
    let (mut from, mut left) = (args.from, limit);
    let mut stdout = Sink::stdout()?;
    while left > 0 {
        let page = log.read(from, PAGE)?;
        let mut lines = String::new();
        for event in page.iter().filter(|event| filter.as_ref().is_none_or(|filter| filter.takes(event))) {
            if left == 0 {
                break;
            }
            left -= 1;
            lines.push_str(&line(event, output)?);
        }
        stdout.write(&mut lines.into()).await?;
        match page.last() {
            Some(last) if page.len() == PAGE => from = last.seq + 1,
            _ => break,
        }
    }
    if left == limit {
        note_none(args, output);
    }
    Ok(())
}

/// Says that no event was found: a name may be misspelt.
fn note_none(args: &EventsArgs, output: Output) {
    if let Some(named) = args.wanted_sandbox() {
        let from = if args.from > 1 { format!(" from {} on", args.from) } else { String::new() };
        output.note(&format!("there is no event of `{}`{from}", printable(named)));
    }
}

/// Prints the events that are in the log now, and then new ones.
async fn follow(args: &EventsArgs, log: &Arc<EventLog>, output: Output) -> Result<(), Failure> {
    output.note(FOLLOWING);
    print_events(args, filter(args)?, log.follow(args.from), output).await
}

/// Prints the wanted ones of these events, each as it comes.
async fn print_events(
    args: &EventsArgs,
    filter: Option<EventFilter>,
    events: impl Stream<Item = eyot::Result<Event>>,
    output: Output,
) -> Result<(), Failure> {
    let limit = usize::try_from(args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let is_wanted = |event: &Event| filter.as_ref().is_none_or(|filter| filter.takes(event));
    let wanted = events.filter(|event| std::future::ready(event.as_ref().map_or(true, is_wanted)));
    let mut wanted = pin!(wanted.take(limit));
    let mut stdout = Sink::stdout()?;
    let mut is_empty = true;
    while let Some(event) = stdout.next_of(&mut wanted).await? {
        stdout.write(&mut line(&event?, output)?.into()).await?;
        is_empty = false;
    }
    if is_empty {
        note_none(args, output);
    }
    Ok(())
}

/// Returns the filter by sandbox that the arguments ask for. A name without a pool is one in the
/// pool `default`.
fn filter(args: &EventsArgs) -> Result<Option<EventFilter>, Failure> {
    let pool = SandboxName::parse(DEFAULT_SANDBOX)?;
    let filter = args.wanted_sandbox().map(|named| EventFilter::parse(named, &pool)).transpose();
    filter.map_err(|error| Failure::with_code(error, USAGE))
}

fn line(event: &Event, output: Output) -> Result<String, Failure> {
    let line = if output.json {
        json_line(event)?
    } else {
        // Control characters are spelt out, whoever reads it: an event is one line.
        printable(&text(event))
    };
    Ok(line + "\n")
}

/// Renders an event: `12  2026-11-20 18:29:13  p/box  exec_ended  make: exit code 2 in 1s (it
/// exited with code 2)`
fn text(event: &Event) -> String {
    let Event { seq, kind, reason, .. } = event;
    let details = details(kind);
    let space = if details.is_empty() { "" } else { " " };
    format!("{seq}  {}  {}  {}  {details}{space}({reason})", moment(event.time_ms), whose(event), kind.name())
}

fn whose(event: &Event) -> String {
    let sandbox = event.sandbox.as_ref().or(event.sandbox_id.as_ref());
    match (&event.pool, sandbox) {
        (Some(pool), Some(sandbox)) => format!("{pool}/{sandbox}"),
        (Some(pool), None) => format!("{pool}/"),
        (None, Some(sandbox)) => sandbox.clone(),
        (None, None) => "-".to_owned(),
    }
}

fn details(kind: &EventKind) -> String {
    match kind {
        EventKind::ExecStarted { command } => command.clone(),
        EventKind::ExecEnded { command, outcome, duration_ms, .. } => {
            format!("{command}: {} in {}", came_to(*outcome), humane(*duration_ms))
        }
        EventKind::FileWritten { path, size } => format!("{path}: {size} bytes"),
        EventKind::Transferred { from, from_path, to_path, files, bytes } => {
            format!("{from}:{from_path} -> {to_path}: {files} files, {bytes} bytes")
        }
        EventKind::PortOpened { port, url } => format!("{port} at {url}"),
        EventKind::EgressDecided { verdict, host, port, .. } => {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("{} {host}{port}", format!("{verdict:?}").to_lowercase())
        }
        EventKind::Reconciled { what } => what.clone(),
        _ => String::new(),
    }
}

fn came_to(outcome: Outcome) -> String {
    match outcome {
        Outcome::Exited(code) => format!("exit code {code}"),
        Outcome::Signaled(signal) => format!("signal {signal}"),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::OutOfMemory => "out of memory".to_owned(),
    }
}
