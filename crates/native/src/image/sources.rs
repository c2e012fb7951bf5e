//! Where images come from that the state folder's store does not have, for creates that name one. Whoever opens the provider
//! says which these are, and for which names: without them nothing is fetched, and a name that the store does not know is
//! absent.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use eyot::{Error, ErrorKind, PullPolicy, Result};
use eyot_image::{ImageName, ImageSource, ImageStore, NoProgress, Progress};
use tokio::sync::Semaphore;

/// What a provider asks for images.
pub struct ImageSources {
    /// Asked first, for images that are missing: a Docker Engine on this host.
    pub engine: Option<Arc<dyn ImageSource>>,
    /// Asked last for images that are missing, and alone where the policy is `always`.
    pub registry: Option<Arc<dyn ImageSource>>,
    /// The only images that are fetched; `None`: all. To be said where those who make sandboxes are not to choose from
    /// everything that the host's owner can reach.
    pub only: Option<BTreeSet<ImageName>>,
    /// Who is told how far it is.
    pub progress: Arc<dyn Progress>,
    /// One image at a time: of many creates of one image the first fetches it.
    turn: Semaphore,
}

impl Default for ImageSources {
    /// None at all.
    fn default() -> Self {
        let (progress, turn) = (Arc::new(NoProgress), Semaphore::new(1));
        Self { engine: None, registry: None, only: None, progress, turn }
    }
}

impl fmt::Debug for ImageSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, registry, only, .. } = self;
        let mut shown = f.debug_struct("ImageSources");
        shown.field("engine", engine).field("registry", registry).field("only", only).finish_non_exhaustive()
    }
}

impl ImageSources {
    /// These sources, for the names that `only` has if it is given.
    pub fn new(
        engine: Option<Arc<dyn ImageSource>>,
        registry: Option<Arc<dyn ImageSource>>,
        only: Option<BTreeSet<ImageName>>,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self { engine, registry, only, progress, ..Self::default() }
    }

    /// Brings an image into the store as the policy has it. Whether it was brought, or is there meanwhile.
    pub(crate) async fn fetch(&self, store: &ImageStore, name: &str, policy: PullPolicy) -> Result<bool> {
        let Some(name) = self.allowed(name) else { return Ok(false) };
        let Ok(_turn) = self.turn.acquire().await else { return Ok(false) };
        match policy {
            PullPolicy::Never => Ok(false),
            PullPolicy::Missing => self.bring_missing(store, &name).await,
            PullPolicy::Always => self.bring_anew(store, &name).await,
        }
    }

    /// What may be fetched by that name: neither the host itself nor what is there as a file.
    fn allowed(&self, name: &str) -> Option<ImageName> {
        if name == super::DEFAULT || Path::new(name).exists() {
            return None;
        }
        let name = ImageName::parse(name).ok()?;
        self.only.as_ref().is_none_or(|only| only.contains(&name)).then_some(name)
    }

    async fn bring_missing(&self, store: &ImageStore, name: &ImageName) -> Result<bool> {
        let (shared, known) = (store.clone(), name.clone());
        if crate::provider::on_blocking_thread(move || shared.resolve(&known)).await?.is_some() {
            return Ok(true);
        }
        for source in [&self.engine, &self.registry].into_iter().flatten() {
            if source.bring(store, name, Arc::clone(&self.progress)).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn bring_anew(&self, store: &ImageStore, name: &ImageName) -> Result<bool> {
        let Some(registry) = &self.registry else {
            let message = format!(
                "image `{}` is to be pulled for every create, and no registry may be asked",
                name.short()
            );
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint("use the pull policy `missing` or `never`"));
        };
        Ok(registry.bring(store, name, Arc::clone(&self.progress)).await?.is_some())
    }
}
