//! The defaults of new sandboxes: of a file below `[defaults]`, and of variables.

use std::str::FromStr;

use eyot::{PullPolicy, SandboxSpec};
use serde::Deserialize;

use crate::args::NetworkArg;
use crate::durations::{self, DeadlineArg};

/// The fields of a spec that have a default, the key of each, and its variable.
const KEYS: [(&str, &str, &str); 13] = [
    ("image", "image", "EYOT_IMAGE"),
    ("container.pull", "pull", "EYOT_PULL"),
    ("network", "net", "EYOT_NET"),
    ("user", "user", "EYOT_USER"),
    ("limits.memory_mib", "memory_mib", "EYOT_MEMORY_MIB"),
    ("limits.cpus", "cpus", "EYOT_CPUS"),
    ("limits.pids", "pids", "EYOT_PIDS"),
    ("limits.disk_mib", "disk_mib", "EYOT_DISK_MIB"),
    ("limits.timeout_ms", "timeout", "EYOT_TIMEOUT"),
    ("limits.max_output_bytes", "max_output_bytes", "EYOT_MAX_OUTPUT_BYTES"),
    ("limits.max_file_bytes", "max_file_bytes", "EYOT_MAX_FILE_BYTES"),
    ("lifecycle.ttl_ms", "ttl", "EYOT_TTL"),
    ("lifecycle.idle_timeout_ms", "idle_timeout", "EYOT_IDLE_TIMEOUT"),
];

/// The defaults of new sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// As `--image`.
    pub image: Option<String>,
    /// As `--pull`.
    pub pull: Option<PullPolicy>,
    /// As `--net`.
    pub net: Option<NetworkArg>,
    /// As `--user`.
    pub user: Option<String>,
    /// As `--memory-mib`.
    pub memory_mib: Option<u64>,
    /// As `--cpus`.
    pub cpus: Option<f64>,
    /// As `--pids`.
    pub pids: Option<u64>,
    /// As `--disk-mib`.
    pub disk_mib: Option<u64>,
    /// As `--timeout`, with its unit.
    pub timeout: Option<Span>,
    /// As `--max-output-bytes`.
    pub max_output_bytes: Option<u64>,
    /// As `--max-file-bytes`.
    pub max_file_bytes: Option<u64>,
    /// As `--ttl`, with its unit, or `never`.
    pub ttl: Option<DeadlineArg>,
    /// As `--idle-timeout`, with its unit, or `never`.
    pub idle_timeout: Option<DeadlineArg>,
}

/// The fields that a spec sets, of those whose default cannot be told from a set value.
#[derive(Debug, Clone, Copy, Default)]
pub struct SetFields {
    /// The spec sets the network.
    pub network: bool,
    /// The spec sets when to fetch the image.
    pub pull: bool,
    /// The spec sets the time to live, and be it to never.
    pub ttl: bool,
    /// The spec sets the idle timeout, and be it to never.
    pub idle_timeout: bool,
}

/// A duration in milliseconds, which is written with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(u64);

impl Span {
    pub(super) fn ms(self) -> u64 {
        self.0
    }
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        durations::parse_ms(text).map(Self)
    }
}

impl TryFrom<String> for Span {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Defaults {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            image: self.image.or(below.image),
            pull: self.pull.or(below.pull),
            net: self.net.or(below.net),
            user: self.user.or(below.user),
            memory_mib: self.memory_mib.or(below.memory_mib),
            cpus: self.cpus.or(below.cpus),
            pids: self.pids.or(below.pids),
            disk_mib: self.disk_mib.or(below.disk_mib),
            timeout: self.timeout.or(below.timeout),
            max_output_bytes: self.max_output_bytes.or(below.max_output_bytes),
            max_file_bytes: self.max_file_bytes.or(below.max_file_bytes),
            ttl: self.ttl.or(below.ttl),
            idle_timeout: self.idle_timeout.or(below.idle_timeout),
        }
    }

    /// Fills the fields that the spec leaves open. `set` names the fields that it sets although
    /// they look like their default.
    pub fn fill(&self, spec: &mut SandboxSpec, set: SetFields) {
        let limits = &mut spec.limits;
        limits.memory_mib = limits.memory_mib.or(self.memory_mib);
        limits.cpus = limits.cpus.or(self.cpus);
        limits.pids = limits.pids.or(self.pids);
        limits.disk_mib = limits.disk_mib.or(self.disk_mib);
        limits.timeout_ms = limits.timeout_ms.or(self.timeout.map(|span| span.0));
        limits.max_output_bytes = limits.max_output_bytes.or(self.max_output_bytes);
        limits.max_file_bytes = limits.max_file_bytes.or(self.max_file_bytes);
        let lifecycle = &mut spec.lifecycle;
        let deadline = |configured: Option<DeadlineArg>, is_set: bool| {
            configured.filter(|_| !is_set).and_then(|DeadlineArg(after)| after)
        };
        lifecycle.ttl_ms = lifecycle.ttl_ms.or(deadline(self.ttl, set.ttl));
        lifecycle.idle_timeout_ms =
            lifecycle.idle_timeout_ms.or(deadline(self.idle_timeout, set.idle_timeout));
        spec.image = spec.image.take().or_else(|| self.image.clone());
        spec.user = spec.user.take().or_else(|| self.user.clone());
        if let Some(network) = self.net.filter(|_| !set.network) {
            spec.network = network.into();
        }
        if let Some(pull) = self.pull.filter(|_| !set.pull) {
            spec.container.pull = pull;
        }
    }

    /// Checks the values as those of a sandbox are checked. Returns the key, its variable, and the reason of the first that is wrong.
    pub(super) fn check(&self) -> Result<(), (&'static str, &'static str, String)> {
        let mut spec = SandboxSpec::default();
        self.fill(&mut spec, SetFields::default());
        let Err(error) = spec.validate() else { return Ok(()) };
        let wrong = KEYS.iter().find_map(|(field, key, variable)| {
            let reason = error.reason().strip_prefix(&format!("`{field}` "))?;
            Some((*key, *variable, reason.to_owned()))
        });
        wrong.map_or(Ok(()), Err)
    }
}
