//! The part of a spec for providers with a container engine, such as Docker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::NetworkMode;
use super::checks::reserved_base;
use crate::error::{Error, Result};
use crate::path::SandboxPath;

/// The occasions on which an image is fetched: by an engine from a registry, by a provider with a
/// store of its own from wherever it was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PullPolicy {
    /// If there is none of that name.
    #[default]
    Missing,
    /// From a registry, for every create.
    Always,
    /// Never: an image that is not there is `not_found`.
    Never,
}

/// Options that only a provider with a container engine has; `pull` counts for others too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ContainerSpec {
    /// The occasions on which the image is fetched.
    pub pull: PullPolicy,
    /// The engine's runtime, such as `runsc` or `kata`; by default the engine's default.
    pub runtime: Option<String>,
    /// The engine's network to be in, by its name, with the network `bridge`; by default the engine's own.
    pub network: Option<String>,
    /// TCP ports that the engine publishes on the host's 127.0.0.1, each on a port of its choosing. They need a network.
    pub ports: Vec<u16>,
    /// Names that the sandbox knows, and their addresses.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>))]
    pub extra_hosts: BTreeMap<String, IpAddr>,
    /// Directories that are kept in memory, with their sizes in MiB. What lies there is lost with a sleep.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub tmpfs_mib: BTreeMap<SandboxPath, u64>,
}

/// The most ports, hosts or directories.
const MAX_ENTRIES: usize = 64;
/// The most characters of a name that the engine knows.
const MAX_NAME_CHARS: usize = 255;

impl ContainerSpec {
    /// Checks what can be checked without the engine. An error names the field and the reason.
    pub(super) fn check(&self, network: NetworkMode, workdir: &SandboxPath) -> Result<()> {
        check_name("container.runtime", self.runtime.as_deref())?;
        check_name("container.network", self.network.as_deref())?;
        if self.network.is_some() && network != NetworkMode::Bridge {
            return Err(Error::invalid("container.network", "needs the network `bridge`"));
        }
        check_ports(&self.ports, network)?;
        check_hosts(&self.extra_hosts)?;
        check_tmpfs(&self.tmpfs_mib, workdir)
    }
}

fn check_name(field: &str, name: Option<&str>) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let begins = |name: &str| name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    match name {
        Some(name) if !begins(name) || name.len() > MAX_NAME_CHARS || !name.bytes().all(good) => {
            Err(Error::invalid(
                field,
                format!("must be a name of letters, digits, `_`, `.` and `-`, not `{name}`"),
            ))
        }
        _ => Ok(()),
    }
}

fn check_ports(ports: &[u16], network: NetworkMode) -> Result<()> {
    let refused = |reason: String| Err(Error::invalid("container.ports", reason));
    let distinct: BTreeSet<u16> = ports.iter().copied().collect();
    match () {
        () if ports.is_empty() => Ok(()),
        () if matches!(network, NetworkMode::None | NetworkMode::Host) => {
            let why = "can't be published without a network of the engine: use the network `bridge`";
            refused(why.to_owned())
                .map_err(|error| error.with_hint(
                    "with Docker add it: --net bridge, or `network` in a spec. Elsewhere no port is published: `eyot browse NAME \
                     PORT`, `forward` or `preview` in the SDKs opens one"
                ))
        }
        () if distinct.contains(&0) => refused("must be from 1 to 65535, not 0".to_owned()),
        () if distinct.len() != ports.len() => refused("has a port twice".to_owned()),
        () if ports.len() > MAX_ENTRIES => {
            refused(format!("may have {MAX_ENTRIES} entries, not {}", ports.len()))
        }
        () => Ok(()),
    }
}

fn check_hosts(hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
    let good = |name: &str| {
        let character = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        !name.is_empty() && name.len() <= 253 && name.bytes().all(character)
    };
    match hosts.keys().find(|name| !good(name)) {
        Some(name) => Err(Error::invalid("container.extra_hosts", format!("has no host's name: `{name}`"))),
        None if hosts.len() > MAX_ENTRIES => {
            Err(Error::invalid("container.extra_hosts", format!("may have {MAX_ENTRIES} entries")))
        }
        None => Ok(()),
    }
}

fn check_tmpfs(directories: &BTreeMap<SandboxPath, u64>, workdir: &SandboxPath) -> Result<()> {
    let refused = |reason: String| Err(Error::invalid("container.tmpfs_mib", reason));
    if directories.len() > MAX_ENTRIES {
        return refused(format!("may have {MAX_ENTRIES} entries"));
    }
    for (path, size_mib) in directories {
        match reserved_base(path) {
            Some(base) => return refused(format!("must not be in `{base}`: {path}")),
            None if path.is_root() || path == workdir => {
                return refused(format!("must not be `/` or the working directory: {path}"));
            }
            None if !(1..=1 << 20).contains(size_mib) => {
                return refused(format!("must be from 1 to 1048576 MiB, not {size_mib}"));
            }
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::spec::SandboxSpec;

    fn refusal(json: &str) -> String {
        let spec: SandboxSpec = serde_json::from_str(json).unwrap();
        spec.validate().unwrap_err().to_string()
    }

    #[test]
    fn ports_need_a_network_are_not_0_and_stand_there_once() {
        for network in ["\"none\"", "\"host\"", "false"] {
            let said = refusal(&format!(r#"{{"network":{network},"container":{{"ports":[80]}}}}"#));
            assert!(said.starts_with("`container.ports` can't be published"), "{said}");
        }
        assert!(refusal(r#"{"network":"bridge","container":{"ports":[80,80]}}"#).contains("twice"));
        assert!(refusal(r#"{"network":"bridge","container":{"ports":[0]}}"#).contains("1 to 65535"));
        assert!(serde_json::from_str::<SandboxSpec>(r#"{"container":{"ports":[65536]}}"#).is_err());
    }

    #[test]
    fn names_are_names_and_a_named_network_needs_bridge() {
        assert!(refusal(r#"{"container":{"runtime":"../x"}}"#).starts_with("`container.runtime`"));
        assert!(refusal(r#"{"container":{"network":"lan"}}"#).contains("needs the network `bridge`"));
        assert!(refusal(r#"{"container":{"extra_hosts":{"a b":"1.2.3.4"}}}"#).contains("no host's name"));
        assert!(refusal(r#"{"container":{"tmpfs_mib":{"/workspace":1}}}"#).contains("working directory"));
        assert!(refusal(r#"{"container":{"tmpfs_mib":{"/.eyot-run/x":1}}}"#).contains("/.eyot-run"));
        assert!(refusal(r#"{"container":{"tmpfs_mib":{"/x":0}}}"#).contains("MiB"));
    }
}
