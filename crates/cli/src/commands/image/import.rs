//! `eyot image import`; and the output about images that were imported, pulled or built.

use eyot::ErrorKind;
use eyot_image::{ImageInfo, ImportOptions};
use tokio::task::spawn_blocking;

use super::store;
use crate::args::{ImportArgs, ImportSource};
use crate::bars::progress;
use crate::context::Context;
use crate::errors::Failure;
use crate::provider;

/// The hint for a path that leads nowhere: it may have been meant as the name of an image.
const NO_FILE: &str = "a file comes from `docker save`; `eyot image pull NAME` fetches an image, and `eyot image import docker://NAME` takes one that the Docker Engine has";

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
    let images = importing.await.map_err(|error| Failure::host("import", std::io::Error::other(error)))?;
    let images = images.map_err(|error| match error.kind() {
        ErrorKind::NotFound if error.hint().is_none() => error.with_hint(NO_FILE),
        _ => error,
    })?;
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
