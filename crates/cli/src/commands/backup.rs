//! `eyot backup`: writes the state folder into one file.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{Error, ErrorKind, SandboxStatus};
use eyot_engine::shown_name;
use eyot_engine::store::Store;
use eyot_native::{HeldSandboxes, hold_still};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::args::BackupArgs;
use crate::backup::{BackupManifest, Contents, TaskProgress, manifest, pack};
use crate::commands::restore::attended;
use crate::context::Context;
use crate::errors::Failure;
use crate::partial::partial_file;

pub async fn run(args: &BackupArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_database("a backup is of files of this host; `pg_dump` copies a database")?;
    let state = context.state_folder()?;
    let state = state
        .canonicalize()
        .map_err(|error| Failure::host(format!("back up the state folder `{}`", state.display()), error))?;
    let target = BackupTarget::of(&args.file)?;
    if args.sleep {
        put_to_sleep(context).await?;
    }
    let store = context.store().await?;
    let held = match hold_still(&state) {
        Err(error) if error.kind() == ErrorKind::Conflict => return Err(busy(error, context).await?),
        held => held?,
    };
    let progress = TaskProgress::default();
    let elsewhere: Vec<_> =
        store.all_sandboxes()?.into_iter().filter(|row| row.provider != "native").collect();
    let manifest = manifest(&state, &held.ids);
    let work = {
        let (manifest, progress) = (manifest.clone(), progress.clone());
        move || write(&state, &store, &manifest, held, target, &progress)
    };
    attended(context, &progress, work).await?;
    for row in elsewhere.iter().filter(|row| !row.has_ended_with_its_process()) {
        let name = shown_name(&row.pool, &row.name);
        context.output.note(&format!("sandbox `{name}` is {}'s, and not in the backup", row.provider));
    }
    let (sandboxes, entries, bytes) = (manifest.sandboxes.len(), progress.entries(), progress.bytes());
    if context.output.json && args.file != Path::new("-") {
        context.output.value(
            &json!({ "file": args.file, "sandboxes": sandboxes, "entries": entries, "bytes": bytes }),
        )?
    } else {
        context.output.note(&format!("{sandboxes} sandboxes and {entries} files are in the backup"))
    }
    Ok(0)
}

/// Names the sandboxes that run as `eyot ls` does. One that somebody is at work on may have stopped
/// running by now; then the error stays as it is.
async fn busy(error: Error, context: &Context) -> Result<Failure, Failure> {
    let names = context.names()?;
    let all = context.provider().await?.list().await?;
    let running = all.iter().filter(|info| info.status == SandboxStatus::Running);
    let running: Vec<String> = running.map(|info| names.shown(info)).collect();
    let error = match running.as_slice() {
        [] => error,
        running => Error::new(ErrorKind::Conflict, format!("these sandboxes run: {}", running.join(", "))),
    };
    let hint = "`eyot backup --sleep` puts them to sleep, `eyot sleep NAME` one of them; then try again";
    Ok(error.context("back up").with_hint(hint).into())
}

/// The prefix of the file's name until it is complete. A random part follows.
const PARTIAL: &str = ".eyot-backup-";

/// The destination of a backup.
enum BackupTarget {
    Stdout,
    /// A file, which has another name until it is complete.
    File(NamedTempFile, PathBuf),
}

impl BackupTarget {
    fn of(file: &Path) -> Result<Self, Failure> {
        if file == Path::new("-") {
            return if io::stdout().is_terminal() {
                Err(Failure::usage("a backup is nothing to look at")
                    .hint("name a file, or pipe it elsewhere"))
            } else {
                Ok(Self::Stdout)
            };
        }
        if file.symlink_metadata().is_ok() {
            return Err(there_already(file));
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = partial_file(folder, PARTIAL);
        let made = made.map_err(|error| Failure::host(format!("write `{}`", file.display()), error))?;
        Ok(Self::File(made, file.to_owned()))
    }
}

fn there_already(file: &Path) -> Failure {
    let (what, hint) = if file.is_dir() {
        ("it is a directory", "name a file in it")
    } else {
        ("there is a file already", "name another one, or remove it")
    };
    let message = format!("write `{}`: {what}", file.display());
    Error::new(ErrorKind::AlreadyExists, message).with_hint(hint).into()
}

fn write(
    state: &Path,
    store: &Arc<Store>,
    manifest: &BackupManifest,
    held: HeldSandboxes,
    target: BackupTarget,
    progress: &TaskProgress,
) -> Result<(), Failure> {
    let contents = Contents { state, store, manifest };
    match target {
        BackupTarget::Stdout => pack(&contents, BufWriter::new(io::stdout().lock()), progress)?.flush()?,
        BackupTarget::File(made, file) => {
            let failed = |error| Failure::host(format!("write `{}`", file.display()), error);
            pack(&contents, made.as_file(), progress)?.sync_all().map_err(failed)?;
            made.persist_noclobber(&file).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => there_already(&file),
                _ => failed(error.error),
            })?;
        }
    }
    drop(held);
    Ok(())
}

/// Puts all running sandboxes of this host to sleep, each through its pool.
async fn put_to_sleep(context: &Context) -> Result<(), Failure> {
    for info in context.provider().await?.list().await? {
        if info.status != SandboxStatus::Running {
            continue;
        }
        let (provider, found) = context.find(info.id.as_str()).await?;
        provider.sleep(&found).await?;
    }
    Ok(())
}
