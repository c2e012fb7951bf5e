//! The configuration: `EYOT_*` variables win over the user's file, which wins over the machine's.
//! Flags are applied elsewhere. An unknown key is refused, so that a misspelt limit is not silently
//! missing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use eyot::{PullPolicy, SandboxName, SandboxSpec};
use eyot_engine::{DefaultLimits, PoolOptions, PoolQuotas};
use eyot_image::ImagePattern;
use eyot_image::pull::PullOptions;
use eyot_providers::registry::{find, in_words, names};
use eyot_providers::row::ProviderRow;
use serde::Deserialize;

use crate::args::{NetworkArg, parse_pull};
use crate::errors::{Failure, USAGE};
use crate::usual_quotas::UsualQuotas;
use crate::variables::refuse_misspelt;

mod agents;
mod defaults;
mod provider_options;

pub use agents::configure_models;
use agents::{AgentSettings, ConfiguredPool, ModelProviders, check};
use defaults::Span;
pub use defaults::{Defaults, SetFields};
pub use provider_options::ConfiguredOptions;

/// The values of a variable in MiB.
const MIB: &str = "a number of MiB, such as 512";
/// The values of a quota in MiB.
const MIB_OR_UNLIMITED: &str = "a number of MiB, such as 4096, or unlimited";
/// The values of a variable in bytes.
const BYTES: &str = "a number of bytes, such as 65536";

const MACHINE_FILE: &str = "/etc/eyot/config.toml";

/// The configuration. Every key may be absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The folder that holds the sandboxes, absolute.
    pub state: Option<PathBuf>,
    /// The database that servers of several hosts share, in place of files of the state folder.
    pub database: Option<String>,
    /// The filter of diagnostics on stderr, as in `EYOT_LOG`.
    pub log: Option<String>,
    /// The provider of sandboxes, as `--provider`.
    #[serde(deserialize_with = "provider_options::provider")]
    pub provider: Option<&'static ProviderRow>,
    /// The options of each provider, as `--provider-option`.
    pub providers: ConfiguredOptions,
    /// The server whose sandboxes are used, as `--server`.
    pub server: Option<String>,
    /// The defaults of new sandboxes. Flags and a spec win over them.
    pub defaults: Defaults,
    /// The quotas of each pool.
    pub quotas: Quotas,
    /// The images that models may name for sandboxes of pools, and the image that each name stands
    /// for.
    pub images: BTreeMap<String, String>,
    /// The sources of images.
    pub registries: RegistrySettings,
    /// The agents of a server.
    pub agents: AgentSettings,
    /// The providers of models.
    pub models: ModelProviders,
    /// The settings of single pools of a server.
    pub pools: BTreeMap<String, ConfiguredPool>,
}

/// The quotas of each pool, as configured: limits of all its sandboxes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// The number of sandboxes.
    pub max_sandboxes: Option<Quota>,
    /// The sum of memory limits, in MiB.
    pub memory_mib: Option<Quota>,
    /// The sum of disk limits, in MiB.
    pub disk_mib: Option<Quota>,
    /// The sum of process limits.
    pub processes: Option<Quota>,
    /// The number of snapshots.
    pub max_snapshots: Option<Quota>,
}

/// One quota. If it is absent, a server has a default for it; other programs have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "QuotaValue")]
pub enum Quota {
    /// At most this much.
    Most(u64),
    /// No limit.
    Unlimited,
}

/// A quota as it is written in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a quota is a number that is not negative, or \"unlimited\"")]
enum QuotaValue {
    Number(u64),
    Word(String),
}

const UNLIMITED: &str = "unlimited";

impl TryFrom<QuotaValue> for Quota {
    type Error = String;
    fn try_from(value: QuotaValue) -> Result<Self, String> {
        match value {
            QuotaValue::Number(most) => Ok(Self::Most(most)),
            QuotaValue::Word(word) if word == UNLIMITED => Ok(Self::Unlimited),
            QuotaValue::Word(word) => Err(format!("`{word}` is no quota: a number, or `{UNLIMITED}`")),
        }
    }
}

impl FromStr for Quota {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let value =
            text.parse().map(QuotaValue::Number).unwrap_or_else(|_| QuotaValue::Word(text.to_owned()));
        value.try_into()
    }
}

impl Quota {
    fn most(self) -> Option<u64> {
        match self {
            Self::Most(most) => Some(most),
            Self::Unlimited => None,
        }
    }
}

impl Quotas {
    fn over(self, below: Self) -> Self {
        Self {
            max_sandboxes: self.max_sandboxes.or(below.max_sandboxes),
            memory_mib: self.memory_mib.or(below.memory_mib),
            disk_mib: self.disk_mib.or(below.disk_mib),
            processes: self.processes.or(below.processes),
            max_snapshots: self.max_snapshots.or(below.max_snapshots),
        }
    }

    /// Returns the configured quotas, and `usual` for the others.
    fn or(self, usual: PoolQuotas) -> PoolQuotas {
        let or = |configured: Option<Quota>, usual: Option<u64>| configured.map_or(usual, Quota::most);
        PoolQuotas {
            max_sandboxes: or(self.max_sandboxes, usual.max_sandboxes),
            memory_mib: or(self.memory_mib, usual.memory_mib),
            disk_mib: or(self.disk_mib, usual.disk_mib),
            processes: or(self.processes, usual.processes),
            max_snapshots: or(self.max_snapshots, usual.max_snapshots),
        }
    }
}

/// The sources of images.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegistrySettings {
    /// The mirrors of a registry (`registry.example.com`), which are asked in this order before the
    /// registry itself.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Uses plain HTTP for registries on this host's loopback; `true` by default.
    pub plain_http_on_loopback: Option<bool>,
    /// Asks a Docker Engine for images before a registry; `true` by default.
    pub docker_engine: Option<bool>,
    /// The images that are fetched for models and for the keys of a server, beside those that
    /// `[images]` and the defaults name.
    pub allow: Option<Vec<ImagePattern>>,
}

impl RegistrySettings {
    /// Returns the options of `eyot image pull`.
    pub fn pull_options(&self) -> PullOptions {
        PullOptions {
            mirrors: self.mirrors.clone(),
            plain_http_on_loopback: self.plain_http_on_loopback.unwrap_or(true),
        }
    }

    fn over(self, below: Self) -> Self {
        let mut mirrors = below.mirrors;
        mirrors.extend(self.mirrors);
        let plain_http_on_loopback = self.plain_http_on_loopback.or(below.plain_http_on_loopback);
        let docker_engine = self.docker_engine.or(below.docker_engine);
        let allow = self.allow.or(below.allow);
        Self { mirrors, plain_http_on_loopback, docker_engine, allow }
    }
}

impl Config {
    /// Loads the configuration of this machine, this user and this environment. A file that is named, here or by EYOT_CONFIG,
    /// takes the place of the machine's and the user's, and must be there.
    pub fn load(named: Option<&Path>) -> Result<Self, Failure> {
        refuse_misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        let lookup = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // Not through clap, which would show the flag in every line of usage while its variable is set. And not as text: a path that is none must be refused, not passed over for another folder.
        let state = std::env::var_os("EYOT_STATE").filter(|path| !path.is_empty()).map(PathBuf::from);
        let mut config = Self { state, ..Self::from_env(lookup)? };
        let set = std::env::var_os("EYOT_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(named) = named.map(Path::to_owned).or(set) {
            let below = Self::from_file(&named)?;
            let missing = || Failure::usage(format!("there is no configuration `{}`", named.display()));
            return Ok(config.over(below.ok_or_else(missing)?));
        }
        for file in [user_file(lookup), Some(PathBuf::from(MACHINE_FILE))].into_iter().flatten() {
            if let Some(below) = Self::from_file(&file)? {
                config = config.over(below);
            }
        }
        Ok(config)
    }

    /// Returns the options of a pool, whose sandboxes are made from `template` unless they say
    /// otherwise.
    pub fn pool(&self, name: SandboxName, mut template: SandboxSpec) -> PoolOptions {
        let default_image = template.image.take();
        let (quotas, images) = (self.quotas.or(PoolQuotas::default()), self.images.clone());
        PoolOptions { name, template, images, default_image, quotas, ..PoolOptions::default() }
    }

    /// Returns the options of a server's pool, whose clients share the host. A quota that is not
    /// configured is the usual one. Quotas count limits, so a sandbox that sets no limit then gets
    /// the usual limit.
    pub fn served_pool(&self, name: SandboxName, template: SandboxSpec, usual: &UsualQuotas) -> PoolOptions {
        let unless_limited =
            |configured: Option<Quota>, default: Option<u64>, usual: Option<u64>| match configured {
                Some(_) => None,
                None => usual.and(default).or(usual),
            };
        let (defaults, limits) = (&self.defaults, usual.unless_limited);
        let unless_limited = DefaultLimits {
            memory_mib: unless_limited(self.quotas.memory_mib, defaults.memory_mib, limits.memory_mib),
            disk_mib: unless_limited(self.quotas.disk_mib, defaults.disk_mib, limits.disk_mib),
            pids: unless_limited(self.quotas.processes, defaults.pids, limits.pids),
        };
        let quotas = self.quotas.or(usual.quotas);
        PoolOptions { quotas, unless_limited, ..self.pool(name, template) }
    }

    fn from_file(path: &Path) -> Result<Option<Self>, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(Failure::host(format!("read `{}`", path.display()), error)),
        };
        Self::parse(&text).map(Some).map_err(|reason| {
            Failure::usage(format!("the configuration `{}` is wrong: {reason}", path.display()))
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        // The first line of toml's message says where, the last one what; the lines between draw it.
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            format!("line {}: {}", line.unwrap_or(1), error.message())
        })?;
        check(&config.models, &config.pools)?;
        let in_file = |(key, _, reason)| format!("`{key}` of `[defaults]` {reason}");
        config.defaults.check().map_err(in_file)?;
        match config.state.as_deref().filter(|state| !state.is_absolute()) {
            Some(state) => Err(format!("`state` must be absolute: {}", state.display())),
            None => Ok(config),
        }
    }

    fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let defaults = Defaults {
            image: lookup("EYOT_IMAGE"),
            pull: lookup("EYOT_PULL").map(|text| pull("EYOT_PULL", &text)).transpose()?,
            net: lookup("EYOT_NET").map(|text| network("EYOT_NET", &text)).transpose()?,
            user: lookup("EYOT_USER"),
            memory_mib: plain(&lookup, "EYOT_MEMORY_MIB", MIB)?,
            cpus: plain(&lookup, "EYOT_CPUS", "a number of processors, such as 1.5")?,
            pids: plain(&lookup, "EYOT_PIDS", "a number of processes, such as 512")?,
            disk_mib: plain(&lookup, "EYOT_DISK_MIB", MIB)?,
            timeout: variable(&lookup, "EYOT_TIMEOUT")?,
            max_output_bytes: plain(&lookup, "EYOT_MAX_OUTPUT_BYTES", BYTES)?,
            max_file_bytes: plain(&lookup, "EYOT_MAX_FILE_BYTES", BYTES)?,
            ttl: variable(&lookup, "EYOT_TTL")?,
            idle_timeout: variable(&lookup, "EYOT_IDLE_TIMEOUT")?,
        };
        let wrong = |(_, variable, reason)| Failure::usage(format!("the variable {variable} {reason}"));
        defaults.check().map_err(wrong)?;
        let quotas = Quotas {
            max_sandboxes: plain(
                &lookup,
                "EYOT_POOL_MAX_SANDBOXES",
                "a number of sandboxes, such as 20, or unlimited",
            )?,
            memory_mib: plain(&lookup, "EYOT_POOL_MEMORY_MIB", MIB_OR_UNLIMITED)?,
            disk_mib: plain(&lookup, "EYOT_POOL_DISK_MIB", MIB_OR_UNLIMITED)?,
            processes: plain(
                &lookup,
                "EYOT_POOL_PROCESSES",
                "a number of processes, such as 2000, or unlimited",
            )?,
            max_snapshots: plain(
                &lookup,
                "EYOT_POOL_MAX_SNAPSHOTS",
                "a number of snapshots, such as 100, or unlimited",
            )?,
        };
        let provider = lookup("EYOT_PROVIDER").map(|text| {
            find(&text)
                .map_err(|_| wrong_variable("EYOT_PROVIDER", &text, &format!("use {}", in_words(&names()))))
        });
        Ok(Self {
            state: None,
            database: lookup("EYOT_DATABASE"),
            log: lookup("EYOT_LOG"),
            provider: provider.transpose()?,
            providers: ConfiguredOptions::default(),
            server: lookup("EYOT_SERVER"),
            defaults,
            quotas,
            images: BTreeMap::new(),
            registries: RegistrySettings {
                docker_engine: plain(&lookup, "EYOT_DOCKER_ENGINE", "true or false")?,
                ..RegistrySettings::default()
            },
            agents: AgentSettings::default(),
            models: ModelProviders::new(),
            pools: BTreeMap::new(),
        })
    }

    fn over(self, below: Self) -> Self {
        Self {
            state: self.state.or(below.state),
            database: self.database.or(below.database),
            log: self.log.or(below.log),
            provider: self.provider.or(below.provider),
            providers: self.providers.over(below.providers),
            server: self.server.or(below.server),
            defaults: self.defaults.over(below.defaults),
            quotas: self.quotas.over(below.quotas),
            images: below.images.into_iter().chain(self.images).collect(),
            registries: self.registries.over(below.registries),
            agents: self.agents.over(below.agents),
            models: below.models.into_iter().chain(self.models).collect(),
            pools: below.pools.into_iter().chain(self.pools).collect(),
        }
    }
}

fn user_file(lookup: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let folder = lookup("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = folder.or_else(|| lookup("HOME").map(|home| Path::new(&home).join(".config")));
    folder.map(|folder| folder.join("eyot/config.toml"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn variable<T: FromStr>(lookup: impl Fn(&str) -> Option<String>, name: &str) -> Result<Option<T>, Failure>
where
    T::Err: std::fmt::Display,
{
    let parse = |text: String| text.parse().map_err(|error| wrong_variable(name, &text, &error));
    lookup(name).map(parse).transpose()
}

/// Returns the value of a variable whose type does not say itself what is wrong with a text. `right` is
/// what to write.
fn plain<T: FromStr>(
    lookup: impl Fn(&str) -> Option<String>,
    name: &str,
    right: &str,
) -> Result<Option<T>, Failure> {
    let parse = |text: String| {
        let wrong = |_| wrong_variable(name, &text, &format!("write {right}"));
        text.parse().map_err(wrong)
    };
    lookup(name).map(parse).transpose()
}

fn network(name: &str, text: &str) -> Result<NetworkArg, Failure> {
    NetworkArg::from_str(text, false)
        .map_err(|_| wrong_variable(name, text, &"use none, egress, bridge or host"))
}

fn pull(name: &str, text: &str) -> Result<PullPolicy, Failure> {
    parse_pull(text).map_err(|reason| wrong_variable(name, text, &reason))
}

fn wrong_variable(name: &str, text: &str, reason: &dyn std::fmt::Display) -> Failure {
    let message = format!("the variable {name} is wrong: `{text}`: {reason}");
    Failure::with_code(eyot::Error::new(eyot::ErrorKind::Invalid, message), USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durations::DeadlineArg;
    use crate::usual_quotas::HostSize;
    use eyot_providers::registry::rows;

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        for text in ["stat = \"/x\"\n", "[defaults]\nmemory = 5\n"] {
            let reason = Config::parse(text).unwrap_err();
            assert!(reason.contains("unknown field"), "{reason}");
        }
        assert!(Config::parse("[defaults]\nmemory = 5\n").unwrap_err().starts_with("line 2"));
    }

    #[test]
    fn durations_have_units_and_the_state_folder_is_absolute() {
        let config = Config::parse("state = \"/s\"\n[defaults]\nttl = \"1h\"\nnet = \"host\"\n").unwrap();
        assert_eq!(config.defaults.ttl, Some(DeadlineArg(Some(3_600_000))));
        assert_eq!(config.defaults.net, Some(NetworkArg::Host));
        let config = Config::parse("[defaults]\nttl = \"never\"\nidle_timeout = \"never\"\n").unwrap();
        assert_eq!(
            (config.defaults.ttl, config.defaults.idle_timeout),
            (Some(DeadlineArg(None)), Some(DeadlineArg(None)))
        );
        assert!(Config::parse("[defaults]\nttl = \"5\"\n").is_err());
        assert!(Config::parse("state = \"s\"\n").unwrap_err().contains("absolute"));
    }

    #[test]
    fn a_variable_wins_over_a_file_and_a_wrong_one_is_named() {
        for (text, named) in [
            ("pids = 7", "`pids` of `[defaults]` must be at least 8"),
            ("cpus = 0.0", "`cpus`"),
            ("user = \"\"", "`user`"),
        ] {
            let reason = Config::parse(&format!("[defaults]\n{text}\n")).unwrap_err();
            assert!(reason.contains(named), "{reason}");
        }
        let wrong = Config::from_env(|name: &str| (name == "EYOT_PIDS").then(|| "7".to_owned()));
        let wrong = format!("{:?}", wrong.unwrap_err());
        assert!(wrong.contains("the variable EYOT_PIDS must be at least 8"), "{wrong}");
        let lookup = |name: &str| (name == "EYOT_PIDS").then(|| "9".to_owned());
        let below = Config::parse("[defaults]\npids = 20\ncpus = 1.5\n").unwrap();
        let config = Config::from_env(lookup).unwrap().over(below);
        assert_eq!((config.defaults.pids, config.defaults.cpus), (Some(9), Some(1.5)));

        let lookup = |name: &str| (name == "EYOT_TTL").then(|| "soon".to_owned());
        let Err(Failure::Error { error, exit_code }) = Config::from_env(lookup) else { panic!("refused") };
        assert!(error.to_string().contains("EYOT_TTL") && exit_code == USAGE);
    }

    #[test]
    fn a_pool_has_the_quotas_and_the_images_that_are_configured() {
        let lookup = |name: &str| (name == "EYOT_POOL_MAX_SANDBOXES").then(|| "3".to_owned());
        let below = "[quotas]\nmax_sandboxes = 9\nmemory_mib = 100\n[images]\n\"python:3.12\" = \"host\"\n";
        let config = Config::from_env(lookup).unwrap().over(Config::parse(below).unwrap());
        let pool = config.pool(SandboxName::parse("p").unwrap(), SandboxSpec::default());
        assert_eq!((pool.quotas.max_sandboxes, pool.quotas.memory_mib), (Some(3), Some(100)));
        assert_eq!(pool.images["python:3.12"], "host");
        assert!(Config::parse("[quotas]\nmax = 9\n").unwrap_err().contains("unknown field"));
    }

    #[test]
    fn a5_a_servers_pool_has_the_usual_quotas_unless_others_or_none_are_configured() {
        let usual =
            UsualQuotas::of(&HostSize { memory_mib: 4096, disk_mib: Some(40_960), processes: 32_768 });
        let pool = |text: &str| {
            let name = SandboxName::parse("p").unwrap();
            Config::parse(text).unwrap().served_pool(name, SandboxSpec::default(), &usual)
        };
        let without = pool("");
        assert_eq!((without.quotas, without.unless_limited), (usual.quotas, usual.unless_limited));
        let text = "[quotas]\nmax_sandboxes = \"unlimited\"\nmemory_mib = 100\n[defaults]\ndisk_mib = 64\n";
        let with = pool(text);
        assert_eq!((with.quotas.max_sandboxes, with.quotas.memory_mib), (None, Some(100)));
        assert_eq!(with.quotas.disk_mib, usual.quotas.disk_mib);
        // A quota that is configured refuses a sandbox without the limit, as ever.
        assert_eq!((with.unless_limited.memory_mib, with.unless_limited.disk_mib), (None, Some(64)));
        let unlimited = pool("[quotas]\nmemory_mib = \"unlimited\"\n");
        assert_eq!((unlimited.quotas.memory_mib, unlimited.unless_limited.memory_mib), (None, None));
        assert!(
            Config::parse("[quotas]\nmemory_mib = \"much\"\n").unwrap_err().contains("`much` is no quota")
        );
        assert!(Config::parse("[quotas]\nmemory_mib = -1\n").is_err());
    }

    #[test]
    fn the_documented_configuration_is_one_with_every_key() {
        let page = include_str!("../../../docs/configuration.md");
        let (_, block) = page.split_once("```toml\n").unwrap();
        let config = Config::parse(block.split_once("```").unwrap().0).unwrap();
        let Config {
            state,
            database,
            log,
            provider,
            providers,
            server,
            defaults,
            quotas,
            images,
            registries,
            agents,
            models,
            pools,
        } = config;
        assert!(
            state.is_some()
                && database.is_some()
                && log.is_some()
                && provider.is_some()
                && rows().iter().all(|row| {
                    row.options.iter().all(|option| providers.of(row).get(option.name).is_some())
                })
                && server.is_some()
                && !images.is_empty()
                && !registries.mirrors.is_empty()
        );
        assert!(models.contains_key("lab") && pools.contains_key("team"));
        // A key that is not documented is `None` here, and so in what is printed.
        let all = format!("{defaults:?} {quotas:?} {registries:?} {agents:?}");
        assert!(!all.contains("None,") && !all.contains("None }"), "{all}");
    }

    #[test]
    fn the_users_file_is_below_the_configuration_home() {
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(user_file(home), Some(PathBuf::from("/h/.config/eyot/config.toml")));
        assert_eq!(user_file(|_| None), None);
    }
}
