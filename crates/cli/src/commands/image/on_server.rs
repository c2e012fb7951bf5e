//! `eyot image` with a server: its images, over HTTP.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use eyot::{ByteStream, PruneReport, SandboxImages};
use eyot_image::ImageName;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{add, import, show};
use crate::args::{ImageCommand, ImportArgs, ImportSource};
use crate::bars::pull_observer;
use crate::commands::rm::settle;
use crate::context::Context;
use crate::copy::{StreamWriter, writer};
use crate::errors::Failure;
use crate::stdio::stdin_stream;

/// The size of the pieces in which an archive is sent.
const PIECE_BYTES: usize = 64 << 10;

pub async fn run(
    command: ImageCommand,
    images: &dyn SandboxImages,
    context: &Context,
) -> Result<u8, Failure> {
    match command {
        ImageCommand::Ls => show(&images.list().await?, context),
        ImageCommand::Pull(args) => pull(&args.names, images, context).await,
        ImageCommand::Import(args) => import_archive(args, images, context).await,
        ImageCommand::Rm { names, force } => remove(&names, force, images, context).await,
        ImageCommand::Prune { .. } => refuse("`image prune` removes what this host does not need", context),
        ImageCommand::BuildBase(_) => refuse("`image build-base` makes an image of this host", context),
    }
}

fn refuse(what: &str, context: &Context) -> Result<u8, Failure> {
    context.refuse_server(what).map(|()| 0)
}

async fn pull(names: &[ImageName], images: &dyn SandboxImages, context: &Context) -> Result<u8, Failure> {
    let mut pulled = Vec::new();
    for name in names {
        pulled.push(images.pull(name.short(), pull_observer(context.output, name.short())).await?);
    }
    import::print(&pulled, context)
}

async fn remove(
    names: &[ImageName],
    force: bool,
    images: &dyn SandboxImages,
    context: &Context,
) -> Result<u8, Failure> {
    let (mut done, mut failures) = (PruneReport::default(), Vec::new());
    for name in names {
        match images.remove(name.short(), force).await {
            Ok(removed) => done = add(done, removed),
            Err(error) => failures.push(error),
        }
    }
    if context.output.json && failures.len() < names.len() {
        context.output.value(&done)?;
    }
    settle(failures, ("removed", &done.images), context)
}

async fn import_archive(
    args: ImportArgs,
    images: &dyn SandboxImages,
    context: &Context,
) -> Result<u8, Failure> {
    let name = args.name.as_ref().map(ImageName::short);
    let path = match args.source {
        ImportSource::Path(path) => path,
        ImportSource::Stdin => return import::print(&images.import(stdin_stream()?, name).await?, context),
        ImportSource::Engine(image) => {
            let message = "`docker://` is the Docker Engine of this host, and a server is named";
            let hint = format!("docker save {} | eyot image import -", image.short());
            return Err(Failure::usage(message).hint(&hint));
        }
    };
    let (archive, reading) = read(&path)?;
    let imported = images.import(archive, name).await;
    let read = reading.await.unwrap_or_else(|error| Err(io::Error::other(error)));
    match read {
        // The server did not want the rest, and said why.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unreadable(&path, error)),
        _ => import::print(&imported?, context),
    }
}

/// Streams a file, or a folder as a tarball.
fn read(path: &Path) -> Result<(ByteStream, JoinHandle<io::Result<()>>), Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let is_folder = fs::metadata(path).map_err(|error| unreadable(path, error))?.is_dir();
    let folder = is_folder.then(|| path.to_owned());
    let (writer, archive) = writer();
    Ok((archive, spawn_blocking(move || send(file, folder, writer))))
}

fn send(mut file: File, folder: Option<PathBuf>, writer: StreamWriter) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(PIECE_BYTES, writer);
    match folder {
        Some(folder) => {
            let mut tar = tar::Builder::new(&mut writer);
            tar.follow_symlinks(false);
            tar.append_dir_all("", folder)?;
            tar.finish()?;
        }
        None => drop(io::copy(&mut file, &mut writer)?),
    }
    writer.flush()?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.finish();
    Ok(())
}

fn unreadable(path: &Path, error: io::Error) -> Failure {
    Failure::host(format!("read `{}`", path.display()), error)
}
