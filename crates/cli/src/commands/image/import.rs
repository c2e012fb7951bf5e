//! `eyot image import`; and the output about images that were imported, pulled or built.

use eyot_image::{ImageInfo, ImportOptions};
use tokio::task::spawn_blocking;

use super::store;
use crate::args::{ImportArgs, ImportSource};
use crate::bars::progress;
use crate::context::Context;
use crate::errors::Failure;
use crate::provider;

pub async fn run(args: ImportArgs, context: &Context) -> Result<u8, Failure> {
    let (store, progress) = (store(context)?, progress(context.output));
    let options = ImportOptions { name: args.name, ..ImportOptions::default() };
    let importing = match args.source {
        ImportSource::Engine(name) => {
            let engine = provider::engine_images();
            return print(&[engine.import(&store, &name, options.name.as_ref(), progress).await?], context);
        }
        ImportSource::Stdin => {
            spawn_blocking(move || store.import_stream(std::io::stdin(), "-", &options, &*progress))
        }
        ImportSource::Path(path) => spawn_blocking(move || store.import(&path, &options, &*progress)),
    };
    let images = importing.await.map_err(|error| Failure::host("import", std::io::Error::other(error)))??;
    print(&images, context)
}

/// Prints the names of images, or with `--json` everything that is known of them.
pub(super) fn print(images: &[ImageInfo], context: &Context) -> Result<u8, Failure> {
    if context.output.json {
        context.output.value(&images)?
    } else {
        context.output.text(&images.iter().map(|image| format!("{}\n", image.name)).collect::<String>())?;
    }
    Ok(0)
}
