//! What every command that touches sandboxes needs: the provider, the configuration, the form of the output.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::store::Store;
use eyot::{
    Engine, Error, ErrorKind, Sandbox, SandboxId, SandboxName, SandboxPool, SandboxProvider, SandboxSpec,
};
use eyot_image::ImageName;
use eyot_providers::remote::{RemoteOptions, RemoteServer};

use crate::args::{GlobalArgs, ProviderArg, SpecArgs};
use crate::bars::progress;
use crate::config::{Config, Named};
use crate::errors::{Failure, USAGE};
use crate::output::Output;
use crate::pools::{Pool, Pools};
use crate::provider::{self, Place, Simulated};

/// The surroundings of one command.
pub struct Context {
    /// The form of what is printed.
    pub output: Output,
    /// What the configuration files and the environment say.
    pub config: Config,
    /// Where sandboxes are kept.
    pub place: Place,
    /// Whose sandboxes are used instead of this host's.
    server: Option<RemoteOptions>,
    /// More is to be said than usual.
    pub verbose: bool,
}

/// The variable with the API key; a flag would show it to everybody who lists processes.
const KEY_VARIABLE: &str = "EYOT_API_KEY";
/// The variable with the file of certificates that an `https` server's may come from.
const CA_VARIABLE: &str = "EYOT_CA_CERT";

impl Context {
    /// Reads the configuration, once.
    pub fn load(global: &GlobalArgs) -> Result<Self, Failure> {
        let config = Config::load()?;
        let state = global.state.as_deref().or(config.state.as_deref());
        let state = state.map(absolute).transpose()?;
        let kind = global.provider.or(config.provider).unwrap_or_default();
        let simulated = global.simulate.as_deref().map(Simulated::read).transpose()?.unwrap_or_default();
        let server = match global.server.as_deref().or(config.server.as_deref()) {
            // Said to be none: what the variable or the configuration names does not count.
            None | Some("") => None,
            Some(address) => Some(RemoteOptions {
                address: address.parse().map_err(|error| Failure::with_code(error, USAGE))?,
                ca_certificate: std::env::var_os(CA_VARIABLE)
                    .filter(|file| !file.is_empty())
                    .map(PathBuf::from),
                key: std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty()),
                pool: None,
            }),
        };
        Ok(Self {
            output: Output::new(global),
            config,
            server,
            place: Place { state, simulated, kind, ..Place::default() },
            verbose: global.verbose > 0,
        })
    }

    /// The provider. Opening it touches the state folder, so that is done as late as possible. Whoever calls us names the
    /// image, and may fetch what they could pull by hand.
    pub async fn provider(&self) -> Result<Arc<dyn SandboxProvider>, Failure> {
        if let Some(server) = self.server()? {
            return Ok(server.provider(None).await?);
        }
        Ok(provider::open(&self.place_with_images(None), provider::Makes::One)?)
    }

    /// The server whose sandboxes are used instead of this host's, if one is.
    pub fn server(&self) -> Result<Option<RemoteServer>, Failure> {
        Ok(self.server.clone().map(RemoteServer::new).transpose()?)
    }

    /// Refuses a server for something that is about this host: `what` says what that is.
    pub fn refuse_server(&self, what: &str) -> Result<(), Failure> {
        match self.server {
            None => Ok(()),
            Some(_) => Err(Failure::usage(format!("{what}, and a server is named"))
                .hint("leave `--server` and EYOT_SERVER out, or say `--server ''`")),
        }
    }

    /// Refuses flags that only the Docker provider takes, unless a server decides.
    pub fn refuse_docker_flags(&self, spec: &SpecArgs) -> Result<(), Failure> {
        match spec.docker_flag().filter(|_| self.server.is_none() && self.place.kind == ProviderArg::Native) {
            Some(flag) => Err(Failure::usage(format!("{flag} needs --provider docker"))),
            None => Ok(()),
        }
    }

    fn place_with_images(&self, only: Option<BTreeSet<ImageName>>) -> Place {
        let sources = provider::image_sources(&self.config.registries, only, progress(self.output));
        Place { images: Some(sources), ..self.place.clone() }
    }

    /// The pool of this name. What the configuration says of sandboxes holds for its own.
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
        self.refuse_server("this is about this host's own sandboxes")?;
        let image = image.and_then(|name| ImageName::parse(name).ok());
        let named = self.configured_images().chain(image).collect();
        self.open_engine(self.place_with_images(Some(named))).await
    }

    /// Opens the pools for a server without keys. Every client of it may do what its owner may, so
    /// an Engine fetches the images that they name.
    pub async fn engine_without_keys(&self) -> Result<Engine, Failure> {
        self.refuse_server("this is about this host's own sandboxes")?;
        let named = self.configured_images().collect();
        let place = self.place_with_images(Some(named));
        self.open_engine(Place { engine_fetches_all: true, ..place }).await
    }

    fn configured_images(&self) -> impl Iterator<Item = ImageName> {
        let configured = self.config.images.values().chain(&self.config.defaults.image);
        configured.filter_map(|name| ImageName::parse(name).ok())
    }

    async fn open_engine(&self, place: Place) -> Result<Engine, Failure> {
        let provider = provider::open(&place, provider::Makes::Many)?;
        let engine = Engine::open(provider, &self.state_folder()?).await?;
        Ok(engine.with_other_providers(move |name| provider::of_name(&place, name)))
    }

    /// What is remembered of sandboxes and keys. One that is made now is made as the engine makes it: not where one is lost.
    pub async fn store(&self) -> Result<Arc<Store>, Failure> {
        let path = self.store_file()?;
        if Store::is_missing(&path) {
            Ok(Arc::clone(self.engine().await?.store()))
        } else {
            Ok(Store::open(path)?)
        }
    }

    /// Where that lies.
    pub fn store_file(&self) -> Result<PathBuf, Failure> {
        Ok(self.state_folder()?.join("eyot.db"))
    }

    /// Where the sandboxes are kept. A folder that another user controls is refused.
    pub fn state_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.place.state.clone().unwrap_or_else(provider::default_state_folder);
        provider::check_ownership(&folder)?;
        Ok(folder)
    }

    /// Where a sandbox is looked for, and by which name or id: `pool/name` is one of that pool, as `eyot ls` shows it.
    pub async fn find<'a>(&self, named: &'a str) -> Result<(Arc<dyn SandboxProvider>, &'a str), Failure> {
        let Some((pool, name)) = named.split_once('/') else {
            return Ok((self.provider().await?, named));
        };
        let pool = SandboxName::parse(pool)?;
        match Pools::of(self).await?.known(pool, self).await? {
            Pool::Here(pool) => Ok((pool.as_provider(), name)),
            Pool::There { provider, .. } => Ok((provider, name)),
        }
    }

    /// The sandbox of this name or id, woken if it sleeps.
    pub async fn awake(&self, named: &str) -> Result<Sandbox, Failure> {
        let (provider, name) = self.find(named).await?;
        Ok(Sandbox::wake(provider.as_ref(), name).await.map_err(with_list_hint)?)
    }

    /// The living sandbox of this name or id.
    pub async fn sandbox(&self, named: &str) -> Result<Sandbox, Failure> {
        let (provider, name) = self.find(named).await?;
        Ok(Sandbox::open(provider.as_ref(), name).await.map_err(with_list_hint)?)
    }

    /// Which sandboxes of the state folder are of a pool, and by which name: nothing is made to look.
    pub fn of_pools(&self) -> Result<HashMap<SandboxId, (SandboxName, SandboxName)>, Failure> {
        if self.server.is_some() {
            return Ok(HashMap::new());
        }
        let file = self.store_file()?;
        if Store::is_missing(&file) {
            return Ok(HashMap::new());
        }
        let rows = Store::open(file)?.all_sandboxes()?;
        Ok(rows.into_iter().map(|row| (row.id, (row.pool, row.name))).collect())
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
