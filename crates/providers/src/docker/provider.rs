//! The provider.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, Result, SandboxInfo, SandboxProvider,
    SandboxSpec, ValidSpec,
};

use super::engine::Engine;
use super::host::Host;
use super::image::{DENO_IMAGE, NODE_IMAGE, PYTHON_IMAGE};
use super::{create, destroy, find, image, isolation, sleep, sweep, wake};

/// How a provider is made. Making one touches nothing.
#[derive(Debug, Clone)]
#[doc(alias = "DockerSandboxOptions")]
pub struct DockerOptions {
    /// Where the Engine listens, such as `unix:///var/run/docker.sock` or `tcp://host:2375`. By default what `DOCKER_HOST`
    /// says, else that socket. Podman's socket works too.
    pub address: Option<String>,
    /// The image of specs that name none.
    pub image: String,
}

impl Default for DockerOptions {
    fn default() -> Self {
        Self::node()
    }
}

impl DockerOptions {
    /// With an image for Node.js, the default.
    pub fn node() -> Self {
        Self { address: None, image: NODE_IMAGE.to_owned() }
    }

    /// With an image for Python.
    pub fn python() -> Self {
        Self { image: PYTHON_IMAGE.to_owned(), ..Self::node() }
    }

    /// With an image for Deno.
    pub fn deno() -> Self {
        Self { image: DENO_IMAGE.to_owned(), ..Self::node() }
    }
}

/// Makes sandboxes as containers of a Docker Engine. Cheap to share.
#[doc(alias = "DockerSandbox")]
pub struct DockerProvider {
    host: Arc<Host>,
    capabilities: Capabilities,
}

impl DockerProvider {
    /// A provider over an Engine, which is connected to with the first call.
    pub fn new(options: DockerOptions) -> Arc<Self> {
        let host = Arc::new(Host::new(Engine::new(options.address), options.image));
        Arc::new(Self { host, capabilities: capabilities() })
    }

    /// Asks whether the Engine is there, and says its version.
    ///
    /// # Errors
    /// `unavailable`, with [`super::SandboxDockerUnavailable`] as the source and a hint what to start.
    pub async fn version(&self) -> Result<String> {
        let engine = &self.host.engine;
        let version = engine.client().await?.version().await;
        let version = version.map_err(|error| engine.failed("ask the Engine for its version", error))?;
        Ok(version.version.unwrap_or_default())
    }

    /// Whether the Engine has an image of this name, without fetching it.
    ///
    /// # Errors
    /// As of [`DockerProvider::version`].
    pub async fn has_image(&self, name: &str) -> Result<bool> {
        match image::resolve(&self.host.engine, name, eyot::PullPolicy::Never).await {
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
        sweep::list(&self.host.engine).await
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        sweep::info(&self.host.engine, id_or_name).await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let engine = &self.host.engine;
        let found = find::find(engine, id_or_name).await?;
        let removed = destroy::destroy(engine, &found.record, &found.container).await;
        match removed.map_err(|error| error.context(format!("destroy sandbox `{id_or_name}`")))? {
            true => Ok(()),
            false => Err(Error::destroyed(id_or_name)),
        }
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        sleep::sleep(&self.host.engine, id_or_name).await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        Ok(wake::wake(&self.host, id_or_name).await?.created())
    }
}

/// What its sandboxes can do.
pub fn capabilities() -> Capabilities {
    use Capability::{
        Append, Argv, AtomicWrite, Beneath, Deadlines, Dial, Glob, Grep, KillTree, LiveProcesses,
        NetworkHost, PersistentWorkspace, Processes, Pty, RangedRead, Reopen, Shell, Signals, Sleep,
        Symlinks, Tar, Usage, Users, Watch,
    };
    Capabilities::new([
        Append,
        Argv,
        AtomicWrite,
        Beneath,
        Deadlines,
        Dial,
        Glob,
        Grep,
        KillTree,
        LiveProcesses,
        NetworkHost,
        PersistentWorkspace,
        Processes,
        Pty,
        RangedRead,
        Reopen,
        Shell,
        Signals,
        Sleep,
        Symlinks,
        Tar,
        Usage,
        Users,
        Watch,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anvia_making_a_provider_touches_nothing() {
        // Nothing listens there, and no runtime runs here.
        let address = Some("unix:///nowhere/engine.sock".to_owned());
        let provider = DockerProvider::new(DockerOptions { address, ..DockerOptions::default() });
        assert_eq!(provider.name(), "docker");
        assert!(provider.capabilities().has(Capability::PersistentWorkspace));
    }

    #[test]
    fn anvia_the_presets_are_their_images_and_another_image_wins() {
        assert_eq!(DockerOptions::default().image, "node:22-bookworm");
        let presets = [DockerOptions::node(), DockerOptions::python(), DockerOptions::deno()];
        let images = presets.clone().map(|options| options.image);
        assert_eq!(images, ["node:22-bookworm", "python:3.13-bookworm", "denoland/deno:debian"]);
        let mine = DockerOptions { image: "mine:1".to_owned(), ..DockerOptions::python() };
        assert_eq!(DockerProvider::new(mine).host.default_image, "mine:1");
        assert_eq!(SandboxSpec::default().container.pull, eyot::PullPolicy::Missing);
        assert_eq!(SandboxSpec::default().validate().unwrap().workdir().as_str(), "/workspace");
    }
}
