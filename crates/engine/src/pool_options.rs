//! Options of a pool, and of a sandbox that is made in it.

use std::collections::BTreeMap;

use eyot::{Limits, SandboxName, SandboxSpec, Service};
use serde::{Deserialize, Serialize};

/// The default time that a sandbox of a pool may be idle before it sleeps, in milliseconds: 10
/// minutes.
pub const DEFAULT_SLEEP_AFTER_MS: u64 = 600_000;
/// The working directory of a pool's sandboxes when its template names none. It is writable in
/// every image.
pub const POOL_WORKDIR: &str = "/home/user";
/// The sandbox that is meant when none is named.
pub const DEFAULT_SANDBOX: &str = "default";

/// Options for opening a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolOptions {
    /// The name. Pools of different names share nothing.
    pub name: SandboxName,
    /// The spec of its sandboxes where a create names none. Id, name and image are not looked at;
    /// without a working directory they start in [`POOL_WORKDIR`].
    pub template: SandboxSpec,
    /// Other names for images: what callers say, and what the provider is asked for.
    pub images: BTreeMap<String, String>,
    /// The image of sandboxes that name none; `None`: the provider's default.
    pub default_image: Option<String>,
    /// A sandbox that has been idle for this many milliseconds sleeps; `None`: never. By default
    /// [`DEFAULT_SLEEP_AFTER_MS`].
    pub sleep_after_ms: Option<u64>,
    /// Limits on what its sandboxes use together.
    pub quotas: PoolQuotas,
    /// The limits of sandboxes that name none. A quota counts limits, so one without them could not be made.
    pub unless_limited: DefaultLimits,
    /// It is of this process alone: should that be killed before it has closed the pool, the next one that reconciles
    /// destroys what is left of it. By default a pool stays until somebody closes it.
    pub session: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            name: SandboxName::parse(DEFAULT_SANDBOX).expect("`default` is a name"),
            template: SandboxSpec::default(),
            images: BTreeMap::new(),
            default_image: None,
            sleep_after_ms: Some(DEFAULT_SLEEP_AFTER_MS),
            quotas: PoolQuotas::default(),
            unless_limited: DefaultLimits::default(),
            session: false,
        }
    }
}

/// Limits on what the sandboxes of a pool use together. `None`: as much as the host has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolQuotas {
    /// The most sandboxes there may be, sleeping ones included.
    pub max_sandboxes: Option<u64>,
    /// The sum of their `limits.memory_mib`; one without that limit can't be made then.
    pub memory_mib: Option<u64>,
    /// The sum of their `limits.disk_mib`; one without that limit can't be made then.
    pub disk_mib: Option<u64>,
    /// The sum of their `limits.pids`.
    pub processes: Option<u64>,
    /// The most snapshots there may be, without those that are only there for forks.
    pub max_snapshots: Option<u64>,
}

/// The limits that a sandbox of a pool has where its spec names none. `None`: it has none then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultLimits {
    /// As `limits.memory_mib`.
    pub memory_mib: Option<u64>,
    /// As `limits.disk_mib`.
    pub disk_mib: Option<u64>,
    /// As `limits.pids`.
    pub pids: Option<u64>,
}

impl DefaultLimits {
    /// Fills in what these limits leave open.
    pub(crate) fn fill(&self, limits: &mut Limits) {
        limits.memory_mib = limits.memory_mib.or(self.memory_mib);
        limits.disk_mib = limits.disk_mib.or(self.disk_mib);
        limits.pids = limits.pids.or(self.pids);
    }
}

/// The properties of one sandbox of a pool, where they differ from the pool's template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolCreate {
    /// The image: an alias of the pool, or what the provider knows by that name.
    pub image: Option<String>,
    /// It sleeps after this many idle milliseconds; `None`: the pool's number.
    pub sleep_after_ms: Option<u64>,
    /// In place of the pool's template.
    pub spec: Option<SandboxSpec>,
    /// The programs that run in it whenever it is awake: started with it, and again when it wakes.
    pub services: Vec<Service>,
}

/// The result of a create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolCreated {
    /// The sandbox's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub sandbox: SandboxName,
    /// `false`: it was there already, and was left as it is.
    pub created: bool,
    /// The image it is made of, as it was named: when it was there already, the one it was made of then.
    pub image: String,
    /// In what the one that was there differs from what was asked for now, such as `image`; empty for a new one.
    pub differs: Vec<String>,
}
