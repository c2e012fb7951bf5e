//! The context of a command that touches sandboxes: the provider, the configuration and the form of
//! the output.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use eyot::{Error, ErrorKind, Mount, Sandbox, SandboxId, SandboxName, SandboxProvider, SandboxSpec};
use eyot_engine::store::{DatabaseUrl, Store};
use eyot_engine::{DEFAULT_SANDBOX, Engine, SandboxPool};
use eyot_image::{AllowedImages, ImageName};
use eyot_providers::remote::{RemoteAddress, RemoteOptions, RemoteServer};
use serde_json::Value;

use crate::args::{GlobalArgs, SpecArgs};
use crate::bars::progress;
use crate::config::{Config, SetFields};
use crate::departed::what_became_of;
use crate::errors::{Failure, USAGE};
use crate::output::Output;
use crate::pools::Pool;
use crate::provider::{
    self, Makes, ProviderOptions, ProviderRow, ProviderSettings, SandboxAdopter, Simulated,
};
use crate::sandbox_names::{self, PooledSandbox, SandboxNames};

/// The context of one command.
#[derive(Clone)]
pub struct Context {
    /// The form of the output.
    pub output: Output,
    /// The configuration files and the environment.
    pub config: Config,
    /// The state folder and the provider.
    pub provider_settings: ProviderSettings,
    /// The server whose sandboxes are used instead of this host's.
    server: Option<RemoteOptions>,
    /// The database that is used instead of the state folder's files.
    database: Option<SharedDatabase>,
    /// Set if `--state` named the state folder.
    pub names_state: bool,
    /// Set if a flag or a variable named the provider.
    names_a_provider: bool,
    /// Set if details are to be printed.
    pub verbose: bool,
}

/// The variable with the API key. A flag would show it to everybody who lists processes.
const KEY_VARIABLE: &str = "EYOT_API_KEY";
/// The variable with the file of certificates that an `https` server's certificate may be signed
/// by.
const CA_VARIABLE: &str = "EYOT_CA_CERT";
/// The variable with the facts about a host that a test takes for true. It is no option, which
/// completions would offer.
const SIMULATED_VARIABLE: &str = "EYOT_SIMULATED";

impl Context {
    /// Loads the configuration, once.
    pub fn load(global: &GlobalArgs) -> Result<Self, Failure> {
        let config = Config::load(global.config.as_deref())?;
        let state = global.state.as_deref().or(config.state.as_deref());
        let state = state.map(absolute).transpose()?.unwrap_or_else(provider::default_state_folder);
        let row = global.provider.or(config.provider).unwrap_or_else(provider::default_row);
        let mut provider_settings = ProviderSettings::new(row, state);
        provider_settings.options = options(row, global, &config)?;
        if let Some(file) = std::env::var_os(SIMULATED_VARIABLE) {
            Simulated::read(Path::new(&file))?.simulate(&mut provider_settings);
        }
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
        let of_this_host = [
            ("--provider", global.provider.is_some()),
            ("--provider-option", !global.provider_option.is_empty()),
        ];
        if let Some((option, _)) = of_this_host.iter().find(|(_, is_set)| server.is_some() && *is_set) {
            return Err(Failure::usage(format!(
                "{option} is about this host's sandboxes, and a server is named"
            ))
            .hint("leave `--server` and EYOT_SERVER out, or say `--server ''`"));
        }
        let database = match config.database.as_deref().filter(|_| server.is_none()) {
            None => None,
            Some(url) => Some(SharedDatabase::new(
                DatabaseUrl::parse(url).map_err(|error| Failure::with_code(error, USAGE))?,
            )),
        };
        Ok(Self {
            database,
            output: Output::new(global),
            config,
            names_state: global.state.is_some() && server.is_none(),
            server,
            provider_settings,
            names_a_provider: global.provider.is_some(),
            verbose: global.verbose > 0,
        })
    }

    /// Returns this context with another provider, unless a flag or a variable named one.
    pub fn by_default_over(&self, row: &'static ProviderRow) -> Self {
        let mut context = self.clone();
        if !self.names_a_provider {
            context.provider_settings = self.provider_settings.of(row, self.config.providers.of(row));
        }
        context
    }

    /// Opens the provider. This touches the state folder, so it is done as late as possible. The
    /// user names the image, and may fetch any that could be pulled by hand.
    pub async fn provider(&self) -> Result<Arc<dyn SandboxProvider>, Failure> {
        if let Some(server) = self.server()? {
            return Ok(server.provider(None).await?);
        }
        Ok(self.settings_with_images(None).open(Makes::One)?)
    }

    /// Opens the provider of a new sandbox that others are to find: without a pool that is the pool
    /// `default` of this host, as it is for tools, or the server's.
    pub async fn provider_of_new(
        &self,
        pool: Option<&SandboxName>,
        name: Option<&SandboxName>,
    ) -> Result<Arc<dyn SandboxProvider>, Failure> {
        if let Some(server) = self.server()? {
            return Ok(server.provider(pool).await?);
        }
        let provider = self.provider().await?;
        self.make_state_folder()?;
        let default = SandboxName::parse(DEFAULT_SANDBOX)?;
        let pool = pool.unwrap_or(&default);
        // An earlier version may have made it in no pool.
        let may_be_old = match name.filter(|_| *pool == default) {
            Some(name) => provider.info(name.as_str()).await.is_ok(),
            None => false,
        };
        let opened =
            if may_be_old { self.engine_over(provider).await } else { self.joined_over(provider).await };
        let engine = match opened {
            Ok(engine) => engine,
            Err(EngineFailure::Refused(failure)) => return Err(failure),
            Err(EngineFailure::Opening(error)) => {
                return Err(provider::with_cause(error, &self.provider_settings).await.into());
            }
        };
        let opened = self.pool_of(&engine, pool.clone())?;
        Ok(if *pool == default { opened.as_host_provider() } else { opened.as_provider() })
    }

    /// Returns the server whose sandboxes are used instead of this host's, if one is named.
    pub fn server(&self) -> Result<Option<RemoteServer>, Failure> {
        Ok(self.server.clone().map(RemoteServer::new).transpose()?)
    }

    /// Tells whether a server's sandboxes are used instead of this host's.
    pub fn names_a_server(&self) -> bool {
        self.server.is_some()
    }

    /// Tells whether the server is reached over a unix socket.
    pub fn is_server_on_socket(&self) -> bool {
        self.server.as_ref().is_some_and(|server| matches!(server.address, RemoteAddress::Unix(_)))
    }

    /// Returns the context of the sandboxes that a provider has on this host, also where a server is
    /// named.
    pub fn on_this_host(&self, row: &'static ProviderRow) -> Self {
        Self { provider_settings: self.settings_of(row), server: None, ..self.clone() }
    }

    /// Fails if a server is named, for commands about this host. `what` is the subject of the
    /// error's sentence.
    pub fn refuse_server(&self, what: &str) -> Result<(), Failure> {
        match self.server {
            None => Ok(()),
            Some(_) => Err(Failure::usage(format!("{what}, and a server is named"))
                .hint("leave `--server` and EYOT_SERVER out, or say `--server ''`")),
        }
    }

    /// Refuses flags of containers where the provider makes none, unless a server decides.
    pub fn refuse_docker_flags(&self, spec: &SpecArgs) -> Result<(), Failure> {
        match spec
            .docker_flag()
            .filter(|_| self.server.is_none() && !self.provider_settings.row.takes_container_options)
        {
            Some(flag) => {
                let providers = provider::names_where(|row| row.takes_container_options);
                let failure = Failure::usage(format!("{flag} needs --provider {providers}"));
                Err(match flag {
                    "--publish" => failure
                        .hint("`eyot browse NAME PORT` opens a port of any sandbox on this host's loopback"),
                    "--net bridge" => {
                        failure.hint("--net egress reaches public addresses and those that --allow names")
                    }
                    _ => failure,
                })
            }
            None => Ok(()),
        }
    }

    /// Returns what a sandbox can't do with what it mounts from this host, as a sentence. A server's
    /// folders are its own.
    pub fn why_not_usable(&self, mount: &Mount) -> Option<String> {
        if self.server.is_some() { None } else { (self.provider_settings.row.why_not_usable)(mount) }
    }

    /// Refuses a mount that the provider refuses in every create.
    pub fn refuse_mount(&self, mount: &Mount) -> Result<(), Failure> {
        let settings = &self.provider_settings;
        (settings.row.refuse_mount)(settings, mount).map_err(|error| Failure::with_code(error, USAGE))
    }

    /// Returns the settings of a provider: those of the command, or those of another with its
    /// configured options.
    pub fn settings_of(&self, row: &'static ProviderRow) -> ProviderSettings {
        if row == self.provider_settings.row {
            self.provider_settings.clone()
        } else {
            self.provider_settings.of(row, self.config.providers.of(row))
        }
    }

    /// Refuses what a later process is to find, where sandboxes end with the process that makes them.
    /// A server goes on. `operation` is a verb.
    pub fn refuse_if_it_ends_with_us(&self, operation: &str) -> Result<(), Failure> {
        if self.server.is_some() {
            return Ok(());
        }
        let refused = self.provider_settings.row.refuse_if_it_ends_with_us(operation);
        refused.map_err(|error| Failure::with_code(error, USAGE))
    }

    /// Returns what adopts the sandboxes of other state folders, where the provider has such. A
    /// server's are its own.
    pub fn adopter(&self) -> Option<Arc<dyn SandboxAdopter>> {
        let adopter = self.provider_settings.row.adopter.filter(|_| self.server.is_none())?;
        Some(adopter(&self.provider_settings))
    }

    /// Makes the state folder, for a command that keeps something in it.
    fn make_state_folder(&self) -> Result<(), Failure> {
        self.require_shared_sandboxes()?;
        Ok((self.provider_settings.row.make_state_folder)(&self.provider_settings)?)
    }

    fn settings_with_images(&self, only: Option<AllowedImages>) -> ProviderSettings {
        let sources = provider::image_sources(&self.config.registries, only.clone(), progress(self.output));
        ProviderSettings { images: Some(sources), fetched: only, ..self.provider_settings.clone() }
    }

    /// Opens the pool of this name. The configured defaults apply to its sandboxes.
    pub fn pool_of(&self, engine: &Engine, name: SandboxName) -> Result<SandboxPool, Failure> {
        let mut template = SandboxSpec::default();
        self.config.defaults.fill(&mut template, SetFields::default());
        Ok(engine.pool(self.config.pool(name, template))?)
    }

    /// Opens the pools of the state folder, and repairs what a killed process has left.
    pub async fn engine(&self) -> Result<Engine, Failure> {
        self.engine_for(None).await
    }

    /// Opens the pools for a program that serves models, with sandboxes of `image` by default.
    /// Models name images too: only this one is fetched for them, and those that the configuration
    /// names or allows.
    pub async fn engine_for(&self, image: Option<&str>) -> Result<Engine, Failure> {
        self.refuse_server("this is about this host's own sandboxes")?;
        let image = image.and_then(|name| ImageName::parse(name).ok());
        let patterns = self.config.registries.allow.clone().unwrap_or_default();
        let allowed = AllowedImages::new(self.configured_images().chain(image), patterns);
        self.open_engine(self.settings_with_images(Some(allowed))).await
    }

    /// Opens the pools for a server without keys. Every client of it may do what its owner may, so
    /// the images that they name are fetched.
    pub async fn engine_without_keys(&self) -> Result<Engine, Failure> {
        self.refuse_server("this is about this host's own sandboxes")?;
        self.open_engine(self.settings_with_images(None)).await
    }

    fn configured_images(&self) -> impl Iterator<Item = ImageName> {
        let configured = self.config.images.values().chain(&self.config.defaults.image);
        configured.filter_map(|name| ImageName::parse(name).ok())
    }

    async fn open_engine(&self, provider_settings: ProviderSettings) -> Result<Engine, Failure> {
        let provider = provider_settings.open(Makes::Many)?;
        self.make_state_folder()?;
        let engine = self.engine_over(provider).await?;
        let configured = self.config.providers.clone();
        Ok(engine.with_other_providers(move |name| provider::of_name(&provider_settings, &configured, name)))
    }

    /// Opens the pools over this provider, and repairs what a killed process has left.
    async fn engine_over(&self, provider: Arc<dyn SandboxProvider>) -> Result<Engine, EngineFailure> {
        match self.shared_store()? {
            Some(store) => Ok(Engine::open_shared(provider, store).await?),
            None => Ok(Engine::open(provider, &self.state_folder()?).await?),
        }
    }

    /// Opens the pools over this provider as they are, for one call.
    async fn joined_over(&self, provider: Arc<dyn SandboxProvider>) -> Result<Engine, EngineFailure> {
        match self.shared_store()? {
            Some(store) => Ok(Engine::join_shared(provider, store)),
            None => Ok(Engine::join(provider, &self.state_folder()?).await?),
        }
    }

    /// Opens the store that lies in a database, if one is named.
    pub fn shared_store(&self) -> Result<Option<Arc<Store>>, Failure> {
        let Some(database) = &self.database else { return Ok(None) };
        let settings = &self.provider_settings;
        let shared_by = settings.row.shared_by.map(|shared_by| shared_by(settings)).transpose()?;
        let owner = shared_by.ok_or_else(|| self.one_hosts_sandboxes())?;
        Ok(Some(database.store(&owner)?))
    }

    /// Refuses a database for sandboxes that other hosts don't have: their servers would take them for gone.
    fn require_shared_sandboxes(&self) -> Result<(), Failure> {
        if self.database.is_none() || self.provider_settings.row.shared_by.is_some() {
            return Ok(());
        }
        Err(self.one_hosts_sandboxes())
    }

    fn one_hosts_sandboxes(&self) -> Failure {
        let name = self.provider_settings.row.name;
        let shared = provider::names_where(|row| row.shared_by.is_some());
        let message = format!(
            "EYOT_DATABASE is for sandboxes that several hosts have, and those of {name} are one host's"
        );
        let hint = format!("use the provider {shared}, or leave EYOT_DATABASE and `database` out");
        Failure::usage(message).hint(hint)
    }

    /// Refuses what is about files of the state folder, while a database has what they would have.
    pub fn refuse_database(&self, what: &str) -> Result<(), Failure> {
        match &self.database {
            None => Ok(()),
            Some(database) => {
                Err(Failure::usage(format!("{what}, and the store is the database {}", database.url))
                    .hint("leave EYOT_DATABASE and `database` out"))
            }
        }
    }

    /// Opens the store of sandboxes and keys. If there is none it is created through the engine,
    /// which refuses to replace one that was lost.
    pub async fn store(&self) -> Result<Arc<Store>, Failure> {
        if let Some(store) = self.shared_store()? {
            return Ok(store);
        }
        let path = self.store_file()?;
        if Store::is_missing(&path) {
            Ok(Arc::clone(self.engine().await?.store()))
        } else {
            Ok(Store::open(path)?)
        }
    }

    /// Returns the path of the store's file.
    pub fn store_file(&self) -> Result<PathBuf, Failure> {
        Ok(self.state_folder()?.join("eyot.db"))
    }

    /// Tells whether there is no state folder yet, and no database. A command that only looks makes none.
    pub fn has_no_state(&self) -> Result<bool, Failure> {
        Ok(self.server.is_none() && self.database.is_none() && !self.state_folder()?.exists())
    }

    /// Returns the state folder. One that another user controls is refused.
    pub fn state_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.provider_settings.state.clone();
        provider::check_state_folder(&folder)?;
        Ok(folder)
    }

    /// Returns the provider of a sandbox, and the name by which that provider knows it. `named` is
    /// an id, a name in the pool `default` or in no pool, or `pool/name`, as `eyot ls` shows it.
    pub async fn find(&self, named: &str) -> Result<(Arc<dyn SandboxProvider>, String), Failure> {
        self.refuse_if_it_ends_with_us("use of a sandbox of an earlier command")?;
        if let Some((pool, name)) = named.split_once('/') {
            let odd = |_| {
                Error::invalid("name", format!("must be NAME, POOL/NAME or an id; got `{named}`"))
                    .with_hint("`eyot ls` shows the names that there are")
            };
            let pool = SandboxName::parse(pool).map_err(odd)?;
            return match Pool::existing(pool, self).await? {
                Pool::Local(pool) => Ok((pool.as_provider(), name.to_owned())),
                Pool::Remote { provider, .. } => Ok((provider, name.to_owned())),
            };
        }
        let provider = self.provider().await?;
        let Some(store) = self.local_store()? else { return Ok((provider, named.to_owned())) };
        match sandbox_names::pooled(named, &store, &provider).await? {
            None => Ok((provider, named.to_owned())),
            Some(PooledSandbox { pool, name }) => {
                let engine = self.joined_over(provider).await?;
                Ok((self.pool_of(&engine, pool)?.as_provider(), name.into()))
            }
        }
    }

    /// Opens the sandbox of this name or id, and wakes it if it sleeps.
    pub async fn awake(&self, named: &str) -> Result<Sandbox, Failure> {
        let (provider, name) = self.find(named).await?;
        Ok(Sandbox::wake(provider.as_ref(), &name).await.map_err(|error| self.explained(error, named))?)
    }

    /// Opens the running sandbox of this name or id.
    pub async fn sandbox(&self, named: &str) -> Result<Sandbox, Failure> {
        let (provider, name) = self.find(named).await?;
        Ok(Sandbox::open(provider.as_ref(), &name).await.map_err(|error| self.explained(error, named))?)
    }

    /// Adds a hint to the error of a sandbox that is not there: what became of it, if that is known.
    /// Otherwise it is most often misspelt, and a list helps.
    pub fn explained(&self, error: Error, named: &str) -> Error {
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        let is_in_folder = self.server.is_none() && self.database.is_none();
        let folder = self.state_folder().ok().filter(|_| is_in_folder);
        match folder.and_then(|folder| what_became_of(named, &folder)) {
            Some(end) => error.with_hint(end),
            None if self.names_state && !self.provider_settings.state.exists() => error
                .with_hint(format!("there is no state folder `{}`", self.provider_settings.state.display())),
            None => with_hint_if_missing(error, "`eyot ls` shows the sandboxes there are"),
        }
    }

    /// Puts the pool of a sandbox of this host into its record, with its name there.
    pub fn add_pool(&self, facts: &mut Value, id: &SandboxId) -> Result<(), Failure> {
        self.names()?.add_pool(facts, id);
        Ok(())
    }

    /// Tells whether there is a pool of this name. Nothing is created for that.
    pub async fn has_pool(&self, name: &SandboxName) -> Result<bool, Failure> {
        if let Some(server) = self.server()? {
            return Ok(server.pools().await?.contains(name));
        }
        let Some(store) = self.local_store()? else { return Ok(false) };
        Ok(store.pools()?.iter().any(|row| row.name == *name))
    }

    /// Returns the name of the provider that made the sandbox of a pool, if NAME or POOL/NAME means one.
    /// Nothing is created for that.
    pub fn maker_of(&self, named: &str) -> Result<Option<String>, Failure> {
        let Some(store) = self.local_store()? else { return Ok(None) };
        let (pool, name) = named.split_once('/').unwrap_or((DEFAULT_SANDBOX, named));
        let row = store.sandbox_named(&SandboxName::parse(pool)?, &SandboxName::parse(name)?)?;
        Ok(row.map(|row| row.provider))
    }

    /// Returns the names that sandboxes have in their pools. Nothing is created for that.
    pub fn names(&self) -> Result<SandboxNames, Failure> {
        Ok(SandboxNames::read(self.local_store()?.as_deref())?)
    }

    /// Opens the store of this host's sandboxes, if they are meant and there is one.
    fn local_store(&self) -> Result<Option<Arc<Store>>, Failure> {
        if self.server.is_some() {
            return Ok(None);
        }
        if let Some(store) = self.shared_store()? {
            return Ok(Some(store));
        }
        let file = self.store_file()?;
        if Store::is_missing(&file) { Ok(None) } else { Ok(Some(Store::open(file)?)) }
    }
}

/// The database of this process, opened once: each store that is opened counts as a server of its own.
#[derive(Clone)]
struct SharedDatabase {
    url: DatabaseUrl,
    opened: Arc<OnceLock<Arc<Store>>>,
}

impl SharedDatabase {
    fn new(url: DatabaseUrl) -> Self {
        Self { url, opened: Arc::default() }
    }

    /// Opens the store of the sandboxes that this owner has.
    fn store(&self, owner: &str) -> eyot::Result<Arc<Store>> {
        if let Some(store) = self.opened.get() {
            return Ok(Arc::clone(store));
        }
        let store = Store::in_database(&self.url)?;
        store.require_sandboxes_of(owner)?;
        Ok(Arc::clone(self.opened.get_or_init(|| store)))
    }
}

/// Pools that can't be opened.
enum EngineFailure {
    /// They can't be meant.
    Refused(Failure),
    /// Opening them failed.
    Opening(Error),
}

impl From<Error> for EngineFailure {
    fn from(error: Error) -> Self {
        Self::Opening(error)
    }
}

impl From<Failure> for EngineFailure {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl From<EngineFailure> for Failure {
    fn from(failure: EngineFailure) -> Self {
        match failure {
            EngineFailure::Refused(failure) => failure,
            EngineFailure::Opening(error) => error.into(),
        }
    }
}

/// Returns the options of the provider: flags over the configuration.
fn options(row: &ProviderRow, global: &GlobalArgs, config: &Config) -> Result<ProviderOptions, Failure> {
    let pairs = global.provider_option.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let flags = ProviderOptions::parse(row, pairs).map_err(|error| Failure::with_code(error, USAGE))?;
    Ok(flags.over(config.providers.of(row)))
}

/// Makes the state folder's path absolute, since it outlives our working directory.
fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(folder);
    absolute.map_err(|error| Failure::host(format!("find the state folder `{}`", folder.display()), error))
}

/// Adds a hint to list the processes: a missing process is most often misspelt.
pub fn with_process_hint(error: Error, sandbox: &str) -> Error {
    with_hint_if_missing(error, &format!("`eyot ps {sandbox}` lists its processes"))
}

fn with_hint_if_missing(error: Error, hint: &str) -> Error {
    match (error.kind(), error.hint()) {
        (ErrorKind::NotFound, None) => error.with_hint(hint),
        _ => error,
    }
}
