//! The image of a new sandbox, when a model names one and when it names none.
//!
//! A provider may take paths of the host for images. The opener of a pool may name them; a model
//! may not: it would read the host through its sandbox.

use eyot::{Error, ErrorKind, Result};
use eyot_engine::{PoolCreate, PoolCreated, SandboxPool};

use crate::set::quoted;

/// The image of a sandbox that is made without naming one, where there is such an image.
pub(super) const PREFERRED: &str = "node:22";

/// Makes the sandbox of this name from the image that is named.
pub(super) async fn create_of(
    pool: &SandboxPool,
    name: &str,
    image: &str,
    create: PoolCreate,
) -> Result<PoolCreated> {
    if !pool.allows_image(image) {
        return Err(no_such_image(pool, image));
    }
    let create = PoolCreate { image: Some(image.to_owned()), ..create };
    let created = pool.create(name, create).await;
    created.map_err(|error| match error.kind() {
        ErrorKind::NotFound => no_such_image(pool, image).with_source(error),
        _ => error,
    })
}

/// Makes the sandbox of this name from the preferred image if there is one, else from the pool's default.
pub(super) async fn create_of_default(
    pool: &SandboxPool,
    name: &str,
    create: PoolCreate,
) -> Result<PoolCreated> {
    if pool.list().await?.iter().any(|entry| entry.name.as_str() == name) {
        return pool.create(name, create).await;
    }
    match create_of(pool, name, PREFERRED, create.clone()).await {
        // There is no such image, or the provider has no images.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
            pool.create(name, create).await
        }
        // Somebody has made it meanwhile: no image was asked for that it could differ from.
        Ok(mut there) if !there.created => {
            there.differs.retain(|what| what != "image");
            Ok(there)
        }
        created => created,
    }
}

/// The same whatever the host has by that name.
fn no_such_image(pool: &SandboxPool, image: &str) -> Error {
    let known: Vec<_> = pool.options().images.keys().map(String::as_str).collect();
    let known = if known.is_empty() { String::new() } else { format!("there are: {}; ", quoted(&known)) };
    let hint = format!(
        "{known}without `image` the sandbox is made of the pool's default; whoever opened the pool gives it others by \
         name, under `images`"
    );
    Error::new(ErrorKind::NotFound, format!("there is no image `{image}` for sandboxes of this pool"))
        .with_hint(hint)
}
