//! `eyot restore`: unpacks a backup into a state folder.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::args::RestoreArgs;
use crate::backup::{BackupManifest, TaskProgress, unpack};
use crate::context::Context;
use crate::copy::{ByteMeter, watch};
use crate::errors::Failure;
use crate::signals::Signals;

/// The time after which a blocked read of a pipe checks whether it was stopped.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub async fn run(args: &RestoreArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_database("a backup has files of a host")?;
    let state = std::path::absolute(context.state_folder()?)
        .map_err(|error| Failure::host("find the state folder", error))?;
    let progress = TaskProgress::default();
    let opened = if args.file == Path::new("-") {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(&args.file)
    };
    let opened =
        opened.map_err(|error| Failure::host(format!("open the backup `{}`", args.file.display()), error))?;
    let input = BackupInput { file: opened, progress: progress.clone() };
    let work = {
        let (state, progress) = (state.clone(), progress.clone());
        move || unpack(input, &state, &progress)
    };
    let manifest = attended(context, &progress, work).await?;
    let sandboxes = manifest.sandboxes.len();
    if let Some(original) = original(&manifest, &state) {
        context.output.note(&format!(
            "`{}` has sandboxes of the same ids: never use both folders on this machine",
            original.display()
        ));
    }
    if context.output.json {
        context.output.value(
            &json!({ "state": state, "sandboxes": sandboxes, "entries": progress.entries(), "bytes": progress.bytes() }),
        )?
    } else {
        context
            .output
            .note(&format!("`{}` is restored, with {sandboxes} sandboxes that sleep", state.display()))
    }
    Ok(0)
}

/// Returns the state folder that the backup was made of, if it exists on this machine too. The
/// kernel knows sandboxes by their ids, as control groups and as host users, so both cannot run
/// here.
fn original<'a>(manifest: &'a BackupManifest, state: &Path) -> Option<&'a Path> {
    let has = |id: &String| manifest.state.join("sandboxes").join(id).exists();
    (manifest.state != state && manifest.sandboxes.iter().any(has)).then_some(&manifest.state)
}

/// A backup that is read. It may be a pipe without a writer: reading ends when the work is stopped.
struct BackupInput {
    file: File,
    progress: TaskProgress,
}

impl Read for BackupInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.progress.check()?;
            let mut waited = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut waited, Some(&LOOK_AGAIN)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.file.read(into),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Does long work on a new thread, shows its progress to a person, and stops it at a signal. A
/// stopped work removes what it had made.
pub(super) async fn attended<T: Send + 'static>(
    context: &Context,
    progress: &TaskProgress,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let meter = ByteMeter::default();
    let mut working = spawn_blocking(work);
    let ended = async {
        let mut redraw = tokio::time::interval(std::time::Duration::from_millis(100));
        loop {
            tokio::select! {
                done = &mut working => return (done, None),
                signal = signals.end() => {
                    progress.stop();
                    tokio::select! {
                        done = &mut working => return (done, Some(signal)),
                        // It waits for somebody else, and somebody can't wait.
                        signal = signals.end() => return (Ok(Err(Failure::Interrupted(signal))), Some(signal)),
                    }
                }
                _ = redraw.tick() => meter.add(progress.bytes() - meter.bytes()),
            }
        }
    };
    match watch(context.output, &meter, ended).await {
        (Ok(Ok(done)), _) => Ok(done),
        (_, Some(signal)) => Err(Failure::Interrupted(signal)),
        (Ok(Err(failure)), None) => Err(failure),
        (Err(error), None) => Err(Failure::host("do the work", io::Error::other(error))),
    }
}
