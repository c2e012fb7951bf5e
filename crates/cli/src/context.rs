//! What every command that touches sandboxes needs: the provider, the configuration, the form of the output.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{Engine, Error, ErrorKind, Sandbox, SandboxName, SandboxPool, SandboxProvider, SandboxSpec};
use eyot_image::ImageName;

use crate::args::GlobalArgs;
use crate::bars::progress;
use crate::config::{Config, Named};
use crate::errors::Failure;
use crate::output::Output;
use crate::provider::{self, Place, Simulated};

/// The surroundings of one command.
pub struct Context {
    /// The form of what is printed.
    pub output: Output,
    /// What the configuration files and the environment say.
    pub config: Config,
    /// Where sandboxes are kept.
    pub place: Place,
    /// More is to be said than usual.
    pub verbose: bool,
}

impl Context {
    /// Reads the configuration, once.
    pub fn load(global: &GlobalArgs) -> Result<Self, Failure> {
        let config = Config::load()?;
        let state = global.state.as_deref().or(config.state.as_deref());
        let state = state.map(absolute).transpose()?;
        let kind = global.provider.or(config.provider).unwrap_or_default();
        let simulated = global.simulate.as_deref().map(Simulated::read).transpose()?.unwrap_or_default();
        Ok(Self {
            output: Output::new(global),
            config,
            place: Place { state, simulated, kind, images: None },
            verbose: global.verbose > 0,
        })
    }

    /// The provider. Opening it touches the state folder, so that is done as late as possible. Whoever calls us names the
    /// image, and may fetch what they could pull by hand.
    pub fn provider(&self) -> Result<Arc<dyn SandboxProvider>, Failure> {
        Ok(provider::open(&self.place_with_images(None), provider::Makes::One)?)
    }

    fn place_with_images(&self, only: Option<BTreeSet<ImageName>>) -> Place {
        let sources = provider::image_sources(&self.config.registries, only, progress(self.output));
        Place { images: Some(sources), ..self.place.clone() }
    }

    /// The pool of this name. What the configuration says of sandboxes holds for its own.
    pub async fn pool(&self, name: SandboxName) -> Result<SandboxPool, Failure> {
        self.pool_of(&self.engine().await?, name)
    }

    /// The same of an engine that is open already.
    pub fn pool_of(&self, engine: &Engine, name: SandboxName) -> Result<SandboxPool, Failure> {
        let mut template = SandboxSpec::default();
        self.config.defaults.fill(&mut template, Named::default());
        Ok(engine.pool(self.config.pool(name, template))?)
    }

    /// The pools of the state folder, with what a killed process has left put right.
    pub async fn engine(&self) -> Result<Engine, Failure> {
        self.engine_for(None).await
    }

    /// The same for whoever serves models, with pools whose sandboxes are of `image` by default. Models name images too: what
    /// is fetched for them is this one, and what the configuration names.
    pub async fn engine_for(&self, image: Option<&str>) -> Result<Engine, Failure> {
        let configured = self.config.images.values().chain(&self.config.defaults.image).map(String::as_str);
        let named = configured.chain(image).filter_map(|name| ImageName::parse(name).ok()).collect();
        let provider = provider::open(&self.place_with_images(Some(named)), provider::Makes::Many)?;
        Ok(Engine::open(provider, &self.state_folder()).await?)
    }

    /// Where the sandboxes are kept.
    pub fn state_folder(&self) -> PathBuf {
        self.place.state.clone().unwrap_or_else(provider::default_state_folder)
    }

    /// The sandbox of this name or id, woken if it sleeps.
    pub async fn awake(&self, id_or_name: &str) -> Result<Sandbox, Failure> {
        let provider = self.provider()?;
        Ok(Sandbox::wake(provider.as_ref(), id_or_name).await.map_err(with_list_hint)?)
    }

    /// The living sandbox of this name or id.
    pub async fn sandbox(&self, id_or_name: &str) -> Result<Sandbox, Failure> {
        let provider = self.provider()?;
        Ok(Sandbox::open(provider.as_ref(), id_or_name).await.map_err(with_list_hint)?)
    }
}

/// The folder outlives the directory that we were started in.
fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(folder);
    absolute.map_err(|error| Failure::host(format!("find the state folder `{}`", folder.display()), error))
}

/// A sandbox that is missing is most often misspelt.
pub fn with_list_hint(error: Error) -> Error {
    match (error.kind(), error.hint()) {
        (ErrorKind::NotFound, None) => error.with_hint("`eyot ls` shows the sandboxes there are"),
        _ => error,
    }
}
