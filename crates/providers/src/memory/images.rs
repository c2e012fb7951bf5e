//! The images of a provider: those that were committed. No other comes into memory.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    ByteStream, Error, ErrorKind, ImageInfo, ImageName, PruneReport, PullObserver, Result, SandboxImages,
    SandboxNamer, SandboxOperationUnsupported,
};

use super::NAME;
use super::image_table::MemoryImage;
use super::world::MemoryWorld;

/// The images of a provider.
pub(super) struct MemoryImages {
    pub world: Arc<MemoryWorld>,
    pub names: SandboxNamer,
}

#[async_trait]
impl SandboxImages for MemoryImages {
    async fn list(&self) -> Result<Vec<ImageInfo>> {
        Ok(self.world.images().list())
    }

    async fn pull(&self, _: &str, _: PullObserver) -> Result<ImageInfo> {
        Err(committed_only("pull an image"))
    }

    async fn import(&self, _: ByteStream, _: Option<&str>) -> Result<Vec<ImageInfo>> {
        Err(committed_only("import an image"))
    }

    async fn remove(&self, name: &str, force: bool) -> Result<PruneReport> {
        let what = format!("remove image `{name}`");
        let name = ImageName::parse(name)?;
        let missing = || Error::new(ErrorKind::NotFound, format!("{what}: there is no such image"));
        let image = self.world.images().find(&name).ok_or_else(missing)?;
        let users = self.users(&image);
        if !force && !users.is_empty() {
            let message = format!("{what}: sandboxes are made over it: {}", users.join(", "));
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("remove these first, or with force: they keep its files"));
        }
        if !self.world.images().remove(&name, &image) {
            return Err(missing());
        }
        Ok(PruneReport { images: vec![name.short().to_owned()], layers: 1, ..PruneReport::default() })
    }
}

impl MemoryImages {
    /// Names the sandboxes that are made over an image.
    fn users(&self, image: &Arc<MemoryImage>) -> Vec<String> {
        let live: Vec<_> = self.world.live().values().cloned().collect();
        let is_over =
            |over: &Option<Arc<MemoryImage>>| over.as_ref().is_some_and(|one| Arc::ptr_eq(one, image));
        let above = live.iter().filter(|sandbox| is_over(&sandbox.image)).map(|sandbox| &sandbox.info);
        above.map(|info| (self.names)(&info.id).unwrap_or_else(|| info.name.to_string())).collect()
    }
}

fn committed_only(operation: &str) -> Error {
    Error::from(SandboxOperationUnsupported::new(operation, NAME, &[]))
        .with_hint("images in memory are made of snapshots: `commit`")
}
