//! `eyot watch`: prints changes of files, one line for each event.

use eyot::{WatchEvent, WatchEventKind, WatchOptions};

use crate::args::WatchArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::{json_line, printable};
use crate::stdio::Sink;

pub async fn run(args: &WatchArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.awake(&args.name).await?;
    let options = WatchOptions { recursive: !args.no_recursive, max_directories: args.max_directories };
    let mut events = sandbox.watch(&args.path, options).await?;
    let place = sandbox.resolve_path(&args.path)?;
    context.output.note(&format!("watching {place}; Ctrl-C ends it"));
    let mut stdout = Sink::stdout()?;
    while let Some(event) = stdout.next_of(&mut events).await? {
        let event = event?;
        let line = if context.output.json { json(&event)? } else { line(&event) };
        stdout.write(&mut format!("{line}\n").into()).await?;
    }
    Ok(0)
}

/// Renders one object a line, on a terminal too: events are a sequence.
fn json(event: &WatchEvent) -> Result<String, Failure> {
    json_line(event)
}

/// Renders an event as one line, with control characters escaped even in a pipe.
fn line(event: &WatchEvent) -> String {
    let slash = if event.is_directory && !event.path.ends_with('/') { "/" } else { "" };
    let path = format!("{}{slash}", printable(&event.path));
    match &event.kind {
        WatchEventKind::Created => format!("created {path}"),
        WatchEventKind::Modified => format!("modified {path}"),
        WatchEventKind::Removed => format!("removed {path}"),
        WatchEventKind::Renamed { from, .. } => format!("renamed {}{slash} -> {path}", printable(from)),
        WatchEventKind::Overflow => format!("overflow {path}"),
        other => format!("{other:?} {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_the_names_are() {
        let kind = WatchEventKind::Renamed { from: "/w/a\nb".to_owned(), from_bytes: None };
        let event =
            WatchEvent { kind, path: "/w/\u{1b}[2J".to_owned(), path_bytes: None, is_directory: true };
        assert_eq!(line(&event), "renamed /w/a\\nb/ -> /w/\\u{1b}[2J/");
        let event = WatchEvent { kind: WatchEventKind::Overflow, path: "/".to_owned(), ..event };
        assert_eq!(line(&event), "overflow /");
    }
}
