//! Measures an image: the time to fetch it into an empty store, to create the first sandbox of it,
//! and to create later ones beside those of `host`.

use std::sync::Arc;
use std::time::Instant;

use eyot::{Sandbox, SandboxProvider, SandboxSpec};
use eyot_image::{ImageName, ImageSource, ImageStore, NoProgress};

use super::{Item, Items};
use crate::errors::Failure;

const FETCH: Item = Item::plain("image: from its source into an empty store");
const FIRST: Item = Item::beside("image: create of the first sandbox", HOST.name);
const HOST: Item = Item::plain("create of a sandbox of `host`");
const LATER: Item = Item::ratio("image: create of a later sandbox", HOST.name, 1.3);

/// Fetches the image, creates one sandbox of it, and then `rounds` of each kind in turn, after
/// `warm_up` rounds that are not noted.
pub async fn measure(
    provider: &dyn SandboxProvider,
    source: &dyn ImageSource,
    store: &ImageStore,
    image: &ImageName,
    (warm_up, rounds): (u32, u32),
    items: &mut Items,
) -> Result<(), Failure> {
    // What a provider does once is none of the image's.
    Sandbox::create(provider, SandboxSpec::default()).await?.destroy().await?;
    let since = Instant::now();
    if source.bring(store, image, Arc::new(NoProgress)).await?.is_none() {
        let message = format!("there is no image `{}`", image.short());
        return Err(eyot::Error::new(eyot::ErrorKind::NotFound, message).into());
    }
    items.note(FETCH, since);
    create(provider, Some(image), FIRST, items).await?;
    for round in 0..warm_up + rounds {
        items.warming_up = round < warm_up;
        create(provider, None, HOST, items).await?;
        create(provider, Some(image), LATER, items).await?;
    }
    Ok(())
}

/// Creates a sandbox and destroys it; only the create is measured.
async fn create(
    provider: &dyn SandboxProvider,
    image: Option<&ImageName>,
    item: Item,
    items: &mut Items,
) -> Result<(), Failure> {
    let image = image.map(|image| image.as_str().to_owned());
    let since = Instant::now();
    let sandbox = Sandbox::create(provider, SandboxSpec { image, ..SandboxSpec::default() }).await?;
    items.note(item, since);
    Ok(sandbox.destroy().await?)
}
