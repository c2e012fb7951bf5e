//! `eyot image import`, and what is printed of images that came in.

use eyot_image::{ImageInfo, ImportOptions};

use super::bars::progress;
use super::store;
use crate::args::ImportArgs;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: ImportArgs, context: &Context) -> Result<u8, Failure> {
    let (store, progress) = (store(context), progress(context.output));
    let options = ImportOptions { name: args.name };
    let importing = tokio::task::spawn_blocking(move || store.import(&args.source, &options, &*progress));
    let images = importing.await.map_err(|error| Failure::host("import", std::io::Error::other(error)))??;
    print(&images, context)
}

/// Their names, or with `--json` all that is known of them.
pub(super) fn print(images: &[ImageInfo], context: &Context) -> Result<u8, Failure> {
    match context.output.json {
        true => context.output.value(&images)?,
        false => {
            context
                .output
                .text(&images.iter().map(|image| format!("{}\n", image.name)).collect::<String>())?;
        }
    }
    Ok(0)
}
