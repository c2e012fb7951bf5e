//! The sources of images that the state folder's store does not have. The code that opens the
//! provider decides which sources there are, and for which names. Without sources nothing is
//! fetched, and an image that the store does not have is absent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use eyot::{Error, ErrorKind, ImageInfo, PullPolicy, Result, SandboxOperationUnsupported};
use eyot_image::{AllowedImages, ImageName, ImageSource, ImageStore, NoProgress, Progress};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The sources that a provider fetches images from.
pub struct ImageSources {
    /// A Docker Engine on this host. It is asked first for missing images.
    pub engine: Option<Arc<dyn ImageSource>>,
    /// A registry. It is asked last for missing images, and alone if the policy is `always`.
    pub registry: Option<Arc<dyn ImageSource>>,
    /// The only images that may be fetched; `None`: all. Set this where the users who make
    /// sandboxes must not choose from everything that the host's owner can reach.
    pub only: Option<AllowedImages>,
    /// Receives the progress of fetches.
    pub progress: Arc<dyn Progress>,
    turns: FetchTurns,
}

/// Queues the fetches of the same image: of many creates, the first fetches it. Fetches of
/// different images do not wait for each other.
#[derive(Default)]
struct FetchTurns(Mutex<BTreeMap<ImageName, Weak<Semaphore>>>);

impl FetchTurns {
    async fn take(&self, name: &ImageName) -> Option<OwnedSemaphorePermit> {
        let turn = {
            // Only plain values are moved in and out.
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(name).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::new(Semaphore::new(1));
                turns.insert(name.clone(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.acquire_owned().await.ok()
    }
}

impl Default for ImageSources {
    /// No sources.
    fn default() -> Self {
        Self {
            engine: None,
            registry: None,
            only: None,
            progress: Arc::new(NoProgress),
            turns: FetchTurns::default(),
        }
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
    /// Joins these sources. With `only`, no other names are fetched.
    pub fn new(
        engine: Option<Arc<dyn ImageSource>>,
        registry: Option<Arc<dyn ImageSource>>,
        only: Option<AllowedImages>,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self { engine, registry, only, progress, ..Self::default() }
    }

    /// Brings an image into the store, as the policy says. Returns whether the store has it then.
    pub(crate) async fn fetch(&self, store: &ImageStore, name: &str, policy: PullPolicy) -> Result<bool> {
        let Some(name) = self.allowed(name) else { return Ok(false) };
        let bring_anew = match policy {
            PullPolicy::Never => return Ok(false),
            PullPolicy::Missing => false,
            PullPolicy::Always => true,
        };
        let Some(_turn) = self.turns.take(&name).await else { return Ok(false) };
        if bring_anew { self.bring_anew(store, &name).await } else { self.bring_missing(store, &name).await }
    }

    /// Pulls an image from the registry, even if the store has one of that name.
    pub(crate) async fn pull(
        &self,
        store: &ImageStore,
        name: &ImageName,
        progress: Arc<dyn Progress>,
    ) -> Result<ImageInfo> {
        let what = format!("pull image `{}`", name.short());
        if self.only.as_ref().is_some_and(|only| !only.has(name)) {
            let message = format!("{what}: the configuration does not allow it");
            return Err(Error::new(ErrorKind::Permission, message).with_hint(not_allowed_hint(name.short())));
        }
        let Some(registry) = &self.registry else {
            return Err(SandboxOperationUnsupported::new("images.pull", crate::NAME, &[]).into());
        };
        let _turn = self.turns.take(name).await;
        let pulled = registry.bring(store, name, progress).await?;
        pulled.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{what}: the registry has none")))
    }

    /// Returns the image that may be fetched by this name; `None` for the image `host` and for
    /// names that are not allowed.
    fn allowed(&self, name: &str) -> Option<ImageName> {
        if name == super::DEFAULT {
            return None;
        }
        let name = ImageName::parse(name).ok()?;
        self.only.as_ref().is_none_or(|only| only.has(&name)).then_some(name)
    }

    /// Tells whether the name is of an image that may not be fetched.
    pub(crate) fn refuses(&self, name: &str) -> bool {
        self.only.is_some() && ImageName::parse(name).is_ok() && self.allowed(name).is_none()
    }

    async fn bring_missing(&self, store: &ImageStore, name: &ImageName) -> Result<bool> {
        let (shared, known) = (store.clone(), name.clone());
        if crate::blocking::on_blocking_thread(move || shared.resolve(&known)).await?.is_some() {
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

/// Returns the hint for an image that may not be fetched for clients.
pub(crate) fn not_allowed_hint(name: &str) -> String {
    format!(
        "it is not fetched for clients: on the server's host, eyot image pull {name}, or allow it under \
         `[registries]`, `allow`, of the configuration"
    )
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::Barrier;

    use super::*;

    /// A registry that answers only after two have asked.
    #[derive(Debug)]
    struct AnswersTwo(Barrier);

    #[async_trait]
    impl ImageSource for AnswersTwo {
        async fn bring(
            &self,
            _: &ImageStore,
            _: &ImageName,
            _: Arc<dyn Progress>,
        ) -> Result<Option<ImageInfo>> {
            self.0.wait().await;
            Ok(None)
        }
    }

    fn sources() -> (tempfile::TempDir, ImageStore, ImageSources) {
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::new(folder.path());
        let registry = Arc::new(AnswersTwo(Barrier::new(2)));
        (folder, store, ImageSources { registry: Some(registry), ..ImageSources::default() })
    }

    #[tokio::test]
    async fn one_image_does_not_wait_for_another() {
        let (_folder, store, sources) = sources();
        let fetch = |name| sources.fetch(&store, name, PullPolicy::Missing);
        let (one, other) = tokio::join!(fetch("one:1"), fetch("other:1"));
        assert!(!one.unwrap() && !other.unwrap());
        assert!(sources.turns.take(&ImageName::parse("one:1").unwrap()).await.is_some());
    }

    #[tokio::test]
    async fn one_image_is_fetched_by_one_at_a_time() {
        let turns = FetchTurns::default();
        let name = ImageName::parse("one:1").unwrap();
        let first = turns.take(&name).await;
        let mut second = std::pin::pin!(turns.take(&name));
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        assert!(second.await.is_some());
    }
}
