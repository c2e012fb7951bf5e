//! What a sandbox of a pool is made from: the pool's template, the image that was named, how long it stays awake.

use std::path::Path;

use super::make::without_contents;
use super::{POOL_WORKDIR, PoolCreate, SandboxPool};
use crate::capabilities::Capability;
use crate::error::Result;
use crate::path::SandboxPath;
use crate::spec::{IdleAction, SandboxId, SandboxName, SandboxSpec};
use crate::store::SandboxRow;

/// What an image is called when nobody has named one.
const UNNAMED: &str = "host";

/// An image as it is shown.
pub(super) fn shown(image: Option<&str>) -> &str {
    image.unwrap_or(UNNAMED)
}

impl SandboxPool {
    /// Whether somebody who is not to reach the host may ask for an image by this name: an alias or the default of the pool, or
    /// a name that leads to no file of the host.
    pub fn may_be_asked_for(&self, image: &str) -> bool {
        let options = self.options();
        let is_configured =
            options.images.contains_key(image) || options.default_image.as_deref() == Some(image);
        let may_be_path =
            || image.starts_with(['/', '.', '~']) || image.contains("..") || Path::new(image).exists();
        image == UNNAMED || is_configured || !may_be_path()
    }

    /// The image of a create, as it is named: its own, or the pool's.
    pub(super) fn image(&self, create: &PoolCreate) -> Option<String> {
        create.image.clone().or_else(|| self.options().default_image.clone())
    }

    /// How long it may be idle before it sleeps.
    pub(super) fn sleep_after_ms(&self, create: &PoolCreate) -> Option<u64> {
        create.sleep_after_ms.or(self.options().sleep_after_ms)
    }

    /// What the sandbox with this id is made from.
    pub(super) fn spec(&self, id: SandboxId, name: &SandboxName, create: &PoolCreate) -> Result<SandboxSpec> {
        let options = self.options();
        let mut spec = create.spec.clone().unwrap_or_else(|| options.template.clone());
        (spec.id, spec.name) = (Some(id), None);
        // To the provider it has a name made from its id; inside, the one that it has in the pool.
        spec.hostname.get_or_insert_with(|| name.clone());
        if spec.workdir.is_none() {
            spec.workdir = Some(SandboxPath::parse(POOL_WORKDIR)?);
        }
        let image = self.image(create);
        spec.image = image.map(|named| options.images.get(&named).cloned().unwrap_or(named));
        // Where nothing sleeps, a sandbox stays awake: nobody's files go because nobody looked at them for a while.
        let can_sleep = self.provider().capabilities().has(Capability::Sleep);
        if let Some(after_ms) = self.sleep_after_ms(create).filter(|_| can_sleep) {
            spec.lifecycle.idle_timeout_ms = Some(after_ms);
            spec.lifecycle.on_idle = IdleAction::Sleep;
        }
        Ok(spec)
    }

    /// In what a sandbox that is there differs from what is asked for.
    pub(super) fn differences(&self, asked: &PoolCreate, row: &SandboxRow) -> Vec<String> {
        let other_image = asked.image.as_ref().is_some_and(|image| image != shown(row.image.as_deref()));
        let without_image = |spec| SandboxSpec { image: None, ..without_contents(spec) };
        let other_spec = asked.spec.is_some()
            && self
                .spec(row.id.clone(), &row.name, asked)
                .is_ok_and(|spec| without_image(spec) != without_image(row.spec.clone()));
        let other_services = !asked.services.is_empty() && asked.services != row.services;
        let differs = [("image", other_image), ("spec", other_spec), ("services", other_services)];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()).collect()
    }
}
