//! The Docker provider.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, Result, SandboxImages, SandboxInfo,
    SandboxNamer, SandboxProvider, SandboxSnapshots, SandboxSpec, ValidSpec,
};
use eyot_guest::client::GUEST_CAPABILITIES;
use eyot_image::AllowedImages;

use super::adopt;
use super::engine::Engine;
use super::host::Host;
use super::image::{DENO_IMAGE, Fetchable, NODE_IMAGE, PYTHON_IMAGE};
use super::snapshots::DockerSnapshots;
use super::state::State;
use super::{create, destroy, find, image, isolation, sleep, sweep, wake, workspace};
use crate::row::{Adopted, Foreign};

/// The options of a provider. Making one touches nothing.
#[derive(Debug, Clone)]
#[doc(alias = "DockerSandboxOptions")]
pub struct DockerOptions {
    /// The Engine's address, such as `unix:///var/run/docker.sock` or `tcp://host:2375`. By default
    /// that in `DOCKER_HOST`, else the usual socket. Podman's socket works too.
    pub address: Option<String>,
    /// The image of specs that name none.
    pub image: String,
    /// The state folder. It holds the secret by which labels are trusted. Providers with the same
    /// folder have the same sandboxes; no others are used or removed.
    pub state: PathBuf,
    /// The only images that are fetched, beside `image`; `None`: all. Set this for programs whose
    /// clients or models name images: they can then choose from these and from what the Engine has.
    pub fetched: Option<AllowedImages>,
}

impl DockerOptions {
    /// Makes options for this state folder, with an image for Node.js.
    pub fn node(state: impl Into<PathBuf>) -> Self {
        Self { address: None, image: NODE_IMAGE.to_owned(), state: state.into(), fetched: None }
    }

    /// Makes options for this state folder, with an image for Python.
    pub fn python(state: impl Into<PathBuf>) -> Self {
        Self { image: PYTHON_IMAGE.to_owned(), ..Self::node(state) }
    }

    /// Makes options for this state folder, with an image for Deno.
    pub fn deno(state: impl Into<PathBuf>) -> Self {
        Self { image: DENO_IMAGE.to_owned(), ..Self::node(state) }
    }
}

/// Makes sandboxes as containers of a Docker Engine. Cheap to share.
#[doc(alias = "DockerSandbox")]
pub struct DockerProvider {
    host: Arc<Host>,
    capabilities: Capabilities,
}

impl DockerProvider {
    /// Makes a provider over an Engine. The first call connects.
    pub fn new(options: DockerOptions) -> Arc<Self> {
        let state = State::new(&options.state);
        let fetchable = Fetchable::new(options.fetched, &options.image);
        let host =
            Arc::new(Host::new(Engine::for_sandboxes(options.address), state, options.image, fetchable));
        Arc::new(Self { host, capabilities: capabilities() })
    }

    /// Asks for the Engine's version, and so whether it answers.
    ///
    /// # Errors
    /// `unavailable`, with [`super::SandboxDockerUnavailable`] as the source and a hint how to
    /// start an Engine.
    pub async fn version(&self) -> Result<String> {
        self.host.engine.version().await
    }

    /// Lists the containers and volumes with Eyot's labels that do not belong to this state folder,
    /// with their names. None of them is ever used or removed.
    ///
    /// # Errors
    /// Those of [`DockerProvider::version`].
    pub async fn foreign(&self) -> Result<Vec<Foreign>> {
        adopt::foreign(&self.host).await
    }

    /// Adopts a [`Foreign`] container as a sandbox of this state folder, or a foreign volume as the
    /// workspace that it is named after. `named` is the name or id of the sandbox or of the
    /// container, or the name of the volume. From now on its labels are trusted.
    ///
    /// # Errors
    /// `not_found`; `invalid` for a record that can't be read; `conflict` for something that is
    /// ours already, and for a container that another state folder has started and that runs.
    pub async fn adopt(&self, named: &str) -> Result<Adopted> {
        adopt::adopt(&self.host, named).await
    }

    /// Tells whether the Engine has an image of this name, without fetching it.
    ///
    /// # Errors
    /// Those of [`DockerProvider::version`].
    pub async fn has_image(&self, name: &str) -> Result<bool> {
        match image::resolve(&self.host.engine, name, eyot::PullPolicy::Never, &self.host.fetchable).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl SandboxProvider for DockerProvider {
    fn name(&self) -> &str {
        super::NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn images(&self, _: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        let message = "docker keeps its images in its Engine, and they are not listed or changed here";
        let hint = "on the Engine's host: docker images, docker pull, docker load, docker rmi";
        Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
    }

    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        Ok(Arc::new(DockerSnapshots(Arc::clone(&self.host))))
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(isolation::declared(&SandboxSpec::default(), self.host.engine.facts().await?))
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        let mut created = create::create(&self.host, spec).await?.created();
        // What is recorded lacks what the caller still has.
        created.info.spec = spec.spec().clone();
        Ok(created)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        Ok(wake::open(&self.host, id_or_name).await?.created())
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        sweep::list(&self.host).await
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        sweep::info(&self.host, id_or_name).await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let found = find::find(&self.host, id_or_name).await?;
        let removed = destroy::destroy(&self.host, &found.record, &found.container).await;
        if removed.map_err(|error| error.context(format!("destroy sandbox `{id_or_name}`")))? {
            Ok(())
        } else {
            Err(Error::destroyed(id_or_name))
        }
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        sleep::sleep(&self.host, id_or_name).await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        Ok(wake::wake(&self.host, id_or_name).await?.created())
    }

    async fn has_workspace(&self, id: &str) -> Result<bool> {
        workspace::is_there(&self.host, id).await
    }
}

/// Returns the capabilities of this provider's sandboxes.
pub fn capabilities() -> Capabilities {
    use Capability::{Commit, NetworkHost, PersistentWorkspace, Sleep, Snapshots, Users};
    let own = [Commit, NetworkHost, PersistentWorkspace, Sleep, Snapshots, Users];
    Capabilities::new(GUEST_CAPABILITIES.into_iter().chain(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anvia_making_a_provider_touches_nothing() {
        // Nothing listens there, and no runtime runs here.
        let address = Some("unix:///nowhere/engine.sock".to_owned());
        let provider = DockerProvider::new(DockerOptions { address, ..DockerOptions::node("/nowhere") });
        assert_eq!(provider.name(), "docker");
        assert!(provider.capabilities().has(Capability::PersistentWorkspace));
    }

    #[test]
    fn the_images_are_the_engines_and_the_error_says_how_to_list_them() {
        let provider = DockerProvider::new(DockerOptions::node("/nowhere"));
        let error = provider.images(Arc::new(|_| None)).err().expect("they are not ours");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.hint().is_some_and(|hint| hint.contains("docker images")), "{error}");
    }

    #[test]
    fn anvia_the_presets_are_their_images_and_another_image_wins() {
        let [node, python, deno] = [DockerOptions::node, DockerOptions::python, DockerOptions::deno];
        let presets = [node("/s"), python("/s"), deno("/s")];
        let images = presets.clone().map(|options| options.image);
        assert_eq!(images, ["node:22-bookworm", "python:3.13-bookworm", "denoland/deno:debian"]);
        let mine = DockerOptions { image: "mine:1".to_owned(), ..DockerOptions::python("/s") };
        assert_eq!(DockerProvider::new(mine).host.default_image, "mine:1");
        assert_eq!(SandboxSpec::default().container.pull, eyot::PullPolicy::Missing);
        assert_eq!(SandboxSpec::default().validate().unwrap().workdir().as_str(), "/workspace");
    }
}
