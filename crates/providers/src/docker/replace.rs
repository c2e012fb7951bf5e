//! Giving a sleeping sandbox a container above another image. See [`super::successor`].

use bollard::query_parameters::CreateContainerOptionsBuilder;
use eyot::{Error, ErrorKind, Result};

use super::find::Found;
use super::host::Host;
use super::labels::{LowerSnapshot, Record};
use super::removal::remove_stopped;
use super::state::Notes;
use super::successor::{complete, is_whole, next_name, remove};
use super::{container, image};

/// Makes the container that is to take the place of the sandbox's own, and returns the Engine's id of it.
pub(crate) async fn make_successor(
    host: &Host,
    found: &Found,
    base: LowerSnapshot,
    image: &str,
) -> Result<String> {
    let engine = &host.engine;
    let image = image::find(engine, image).await?;
    let image = image.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("the Engine has no image of snapshot `{}`", base.snapshot))
    })?;
    // A container that a killed process has left there keeps no snapshot from being removed.
    host.place_guest(&base.root_image).await?;
    remove(host, &found.record).await?;
    let base = LowerSnapshot { follows: Some(found.container.clone()), ..base };
    let record = Record { base: Some(base), ..found.record.clone() };
    let name = record.container_name();
    let body = container::body(&record, &image, host.state.open().await?.seal(), engine.facts().await?)?;
    let options = CreateContainerOptionsBuilder::default().name(&next_name(&name)).build();
    let made = engine.client().await?.create_container(Some(options), body).await;
    made.map(|made| made.id).map_err(|error| engine.failed("make a container above the snapshot", error))
}

/// Lets a successor take the place of a sandbox's container, which is removed. If that can't be, the sandbox stays as it is.
pub(crate) async fn replace(host: &Host, found: &Found, successor: &str) -> Result<()> {
    match remove_stopped(&host.engine, &found.container).await {
        Ok(true) => {}
        // Destroyed meanwhile.
        Ok(false) => {
            remove_stopped(&host.engine, successor).await?;
            return Err(Error::destroyed(&found.record.name));
        }
        // Only a look tells what became of it. Until then the successor stays: it may be all that there is of the sandbox.
        Err(error) if is_whole(host, &found.container).await? => {
            remove_stopped(&host.engine, successor).await?;
            return Err(error);
        }
        Err(_) => {}
    }
    host.state.open().await?.forget(Notes::Containers, &found.container);
    // If this fails, whoever looks for the sandbox does it.
    complete(host, found.record.id.as_str()).await?;
    match host.state.open().await?.noted(Notes::Destroyed, found.record.id.as_str()) {
        Some(_) => Err(Error::destroyed(&found.record.name)),
        None => Ok(()),
    }
}
