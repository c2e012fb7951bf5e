//! `eyot image`: the images of the state folder, or of a server.

mod build_base;
mod import;
mod on_server;
mod pull;

use eyot::Error;
use eyot_image::{ImageInfo, ImageName, ImageStore, PruneReport};
use indicatif::HumanBytes;

use super::rm::settle;
use crate::args::{ImageArgs, ImageCommand};
use crate::context::Context;
use crate::errors::Failure;
use crate::provider::{self, ImagesOfProvider};
use crate::table::Table;

pub async fn run(args: ImageArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(server) = context.server()? {
        return on_server::run(args.command, server.images().as_ref(), context).await;
    }
    if let ImagesOfProvider::Elsewhere(note) = context.provider_settings.row.images {
        context.output.note(note);
    }
    match args.command {
        ImageCommand::Import(args) => import::run(args, context).await,
        ImageCommand::Pull(args) => pull::run(args, context).await,
        ImageCommand::BuildBase(args) => build_base::run(args, context).await,
        ImageCommand::Ls => show(&store(context)?.list()?, context),
        ImageCommand::Rm { names, force } => remove(&names, force, context),
        ImageCommand::Prune { all } => prune(all, context),
    }
}

fn store(context: &Context) -> Result<ImageStore, Failure> {
    Ok(provider::images(&context.state_folder()?))
}

/// Prints the list of images.
fn show(images: &[ImageInfo], context: &Context) -> Result<u8, Failure> {
    match (context.output.json, context.output.quiet) {
        (true, _) => context.output.value(&images)?,
        (false, true) => {
            context
                .output
                .text(&images.iter().map(|image| format!("{}\n", image.name)).collect::<String>())?;
        }
        (false, false) => context.output.text(&table(images))?,
    }
    Ok(0)
}

fn table(images: &[ImageInfo]) -> String {
    let mut table = Table::new(["IMAGE", "DIGEST", "LAYERS", "SIZE", "CREATED"]);
    for image in images {
        let day = image.created.as_deref().and_then(|time| time.get(..10)).unwrap_or("-");
        let layers = if image.complete { image.layers.to_string() } else { "incomplete".to_owned() };
        let digest = image.digest.trim_start_matches("sha256:").chars().take(12).collect();
        table.row([
            image.name.clone(),
            digest,
            layers,
            HumanBytes(image.size_bytes).to_string(),
            day.to_owned(),
        ]);
    }
    table.render()
}

/// Removes each image. Failures are reported at the end.
fn remove(names: &[ImageName], force: bool, context: &Context) -> Result<u8, Failure> {
    let (store, state) = (store(context)?, context.state_folder()?);
    let (mut done, mut failures) = (PruneReport::default(), Vec::<Error>::new());
    for name in names {
        match store.remove(name, force, || provider::image_uses(&state)) {
            Ok(removed) => done = add(done, removed),
            Err(error) => failures.push(error),
        }
    }
    if context.output.json && failures.len() < names.len() {
        context.output.value(&done)?;
    }
    settle(failures, ("removed", &done.images), context)
}

fn add(mut done: PruneReport, more: PruneReport) -> PruneReport {
    done.images.extend(more.images);
    PruneReport {
        layers: done.layers + more.layers,
        blobs: done.blobs + more.blobs,
        blob_bytes: done.blob_bytes + more.blob_bytes,
        ..done
    }
}

fn prune(all: bool, context: &Context) -> Result<u8, Failure> {
    let state = context.state_folder()?;
    let done = store(context)?.prune(all, || provider::image_uses(&state))?;
    if context.output.json {
        context.output.value(&done)?;
        return Ok(0);
    }
    context.output.text(&done.images.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    if done.layers + done.blobs > 0 {
        let (blobs, bytes) = (done.blobs, HumanBytes(done.blob_bytes));
        // Words that are right for one as well.
        context.output.note(&format!("removed: layers {}, blobs {blobs}, {bytes}", done.layers));
    }
    Ok(0)
}
