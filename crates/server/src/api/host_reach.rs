//! Refuses requests by HTTP that would reach the server's host or the host's network.

use eyot::{EgressRules, Error, ErrorKind, NetworkMode, SandboxSpec};
use eyot_engine::SandboxPool;

use super::access::Access;
use super::state::Api;
use crate::http::Peer;
use crate::problem::Refusal;

const HOST_NETWORKS: &str = "whoever runs the server may allow it: `eyot serve --allow-host-networks`";
const IMAGES: &str = "name an image that the server has: `eyot image ls`";

/// Tells whether a request may name folders of the host: it needs no key and came by a unix socket.
/// Only the server's own user and root open that, and they have the folders anyway.
pub(super) fn may_name_folders(api: &Api, peer: Option<Peer>) -> bool {
    api.access() == Access::Anybody && peer == Some(Peer::Socket)
}

/// Refuses a spec that would reach the host: its files, its network, or the networks and runtimes
/// of its container engine.
pub(super) fn refuse_spec(
    api: &Api,
    peer: Option<Peer>,
    pool: &SandboxPool,
    spec: &SandboxSpec,
) -> Result<(), Refusal> {
    let is_open = api.may_use_host_networks();
    match () {
        () if !spec.mounts.is_empty() && !may_name_folders(api, peer) => {
            let hint = "copy the files in instead; a server without keys lets its own user mount folders over a unix socket";
            refused("mounts", "can't name folders of the server's host", hint)
        }
        () if spec.network == NetworkMode::Host && !is_open => {
            refused("network", "can't be the server's host's", HOST_NETWORKS)
        }
        () if spec.container.network.is_some() && !is_open => {
            refused("container.network", "is for the server's host to say", HOST_NETWORKS)
        }
        () if spec.container.runtime.is_some() => {
            refused("container.runtime", "is for the server's host to say", "leave it out")
        }
        () => {
            refuse_image(pool, spec.image.as_deref())?;
            refuse_rules(api, &spec.egress)
        }
    }
}

/// Refuses an image that may be a path on the host. The words are the same whether or not the path
/// exists.
pub(super) fn refuse_image(pool: &SandboxPool, image: Option<&str>) -> Result<(), Refusal> {
    match image {
        // Refused as what it is.
        Some("") => Ok(()),
        Some(image) if !pool.allows_image(image) => {
            refused("image", "can't be a path on the server's host", IMAGES)
        }
        _ => Ok(()),
    }
}

/// Refuses rules that open private networks, unless the server allows them.
pub(super) fn refuse_rules(api: &Api, rules: &EgressRules) -> Result<(), Refusal> {
    match rules.allow.iter().find(|rule| !rule.is_public()) {
        Some(rule) if !api.may_open_private_networks() => {
            let reason = format!("can't open `{rule}`, which is not public throughout");
            let hint = "whoever runs the server may allow it: `eyot serve --allow-private-networks`";
            let message = format!("use network `egress`: `egress.allow` {reason}");
            Err(Error::new(ErrorKind::Permission, message).with_hint(hint).into())
        }
        _ => Ok(()),
    }
}

fn refused(field: &str, reason: &str, hint: &str) -> Result<(), Refusal> {
    let message = format!("create sandbox: `{field}` {reason}");
    Err(Error::new(ErrorKind::Permission, message).with_hint(hint).into())
}
