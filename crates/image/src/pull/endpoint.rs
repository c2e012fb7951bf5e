//! The hosts that are asked for an image: the mirrors of its registry, then the registry, each with
//! its protocol and credentials.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use docker_credential::{CredentialRetrievalError, DockerCredential};
use eyot::{Error, ErrorKind, Result};
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};

use super::ACCEPTED;
use super::failure::exchange_error;
use super::proxy::PullProxy;
use crate::ImageName;
use crate::reference::reference_of;

/// Options of a pull.
#[derive(Debug, Clone)]
pub struct PullOptions {
    /// Mirrors of a registry (`registry.example.com`): hosts such as `mirror.example:5000`, asked
    /// in that order before the registry itself.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Allows registries on this host's loopback to be used without TLS. All others need TLS.
    pub plain_http_on_loopback: bool,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self { mirrors: BTreeMap::new(), plain_http_on_loopback: true }
    }
}

/// A host that is asked.
pub(super) struct Endpoint {
    pub(super) client: Client,
    pub(super) host: String,
    pub(super) auth: RegistryAuth,
    mirror: bool,
    pub(super) reference: Reference,
    /// The proxy by which the client connects.
    proxy: PullProxy,
}

const CONNECT_PATIENCE: Duration = Duration::from_secs(15);
/// The longest silence between two pieces of an answer.
const READ_PATIENCE: Duration = Duration::from_secs(60);

impl Endpoint {
    /// Returns the endpoints, in the order in which they are asked.
    pub(super) async fn all(name: &ImageName, options: &PullOptions) -> Result<Vec<Self>> {
        let reference = reference_of(name)?;
        let mirrors = options.mirrors.get(reference.registry()).cloned().unwrap_or_default();
        let mut endpoints = Vec::new();
        for mirror in mirrors {
            endpoints.push(Self::new(&reference, Some(mirror), options).await?);
        }
        endpoints.push(Self::new(&reference, None, options).await?);
        Ok(endpoints)
    }

    async fn new(reference: &Reference, mirror: Option<String>, options: &PullOptions) -> Result<Self> {
        let is_mirror = mirror.is_some();
        let host = mirror.unwrap_or_else(|| reference.resolve_registry().to_owned());
        let plain = options.plain_http_on_loopback && is_loopback(&host);
        let protocol = if plain { ClientProtocol::Http } else { ClientProtocol::Https };
        let of_environment = |name: &str| {
            std::env::var(name)
                .or_else(|_| std::env::var(name.to_lowercase()))
                .ok()
                .filter(|value| !value.is_empty())
        };
        let cannot = |error| Error::new(ErrorKind::Internal, "open a way to registries").with_source(error);
        let proxy = PullProxy::open(&host, plain).await.map_err(cannot)?;
        // A proxy that the caller has configured looks names up itself, and decides what may be
        // reached.
        let configured = of_environment("HTTPS_PROXY").filter(|_| !plain);
        let no_proxy = of_environment("NO_PROXY").filter(|_| configured.is_some());
        let config = ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_PATIENCE),
            read_timeout: Some(READ_PATIENCE),
            user_agent: concat!("eyot/", env!("CARGO_PKG_VERSION")),
            https_proxy: Some(configured.unwrap_or_else(|| proxy.url().to_owned())),
            http_proxy: Some(proxy.url().to_owned()),
            no_proxy,
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|error| {
            Error::new(ErrorKind::Internal, "make a client for registries: failed").with_source(error)
        })?;
        let auth = credentials(&host).await?;
        let mut endpoint =
            Self { client, host, auth, mirror: is_mirror, reference: reference.clone(), proxy };
        endpoint.reference = endpoint.reference_here(reference);
        Ok(endpoint)
    }

    /// Returns the same reference at this endpoint.
    fn reference_here(&self, reference: &Reference) -> Reference {
        let mut reference = reference.clone();
        if self.mirror {
            reference.set_mirror_registry(self.host.clone());
        }
        reference
    }

    /// Fetches the bytes of a manifest or an index.
    pub(super) async fn manifest(&self, reference: &Reference, what: &str) -> Result<Vec<u8>> {
        let answer =
            self.client.pull_manifest_raw(&self.reference_here(reference), &self.auth, &ACCEPTED).await;
        answer.map(|(bytes, _)| bytes.to_vec()).map_err(|error| self.exchange_error(what, error))
    }

    /// Builds the error of an exchange. If the registry led to a forbidden address, that is the
    /// reason.
    pub(super) fn exchange_error(&self, what: &str, error: OciDistributionError) -> Error {
        let Some(target) = self.proxy.refused() else { return exchange_error(what, &self.host, error) };
        let message = format!("{what}: registry `{}` leads to `{target}`, which is not public", self.host);
        Error::new(ErrorKind::Permission, message)
            .with_hint("a registry may send to private addresses only if its own is one; and without TLS to nobody but loopback")
            .with_source(error)
    }
}

/// Tells whether this is `localhost`, or an address of this host's own.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads the credentials for this host from Docker's or Podman's configuration.
async fn credentials(host: &str) -> Result<RegistryAuth> {
    // Docker's own registry has an old address there.
    let key = if host == "index.docker.io" { "https://index.docker.io/v1/" } else { host }.to_owned();
    // This may run a helper program.
    let found = tokio::task::spawn_blocking(move || match docker_credential::get_credential(&key) {
        Err(
            CredentialRetrievalError::NoCredentialConfigured
            | CredentialRetrievalError::ConfigReadError
            | CredentialRetrievalError::ConfigNotFound,
        ) => docker_credential::get_podman_credential(&key),
        found => found,
    });
    let unusable = |reason: &str| {
        let message = format!("read the credentials for registry `{host}`: {reason}");
        Error::new(ErrorKind::Permission, message).with_hint(format!("log in once more: docker login {host}"))
    };
    match found.await.map_err(|_| unusable("a task ended early"))? {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(RegistryAuth::Basic(user, password)),
        Ok(DockerCredential::IdentityToken(_)) => {
            Err(unusable("they are an identity token, which is not supported"))
        }
        Err(
            CredentialRetrievalError::NoCredentialConfigured
            | CredentialRetrievalError::ConfigReadError
            | CredentialRetrievalError::ConfigNotFound,
        ) => Ok(RegistryAuth::Anonymous),
        // The reason may hold output of a helper.
        Err(CredentialRetrievalError::HelperFailure { helper, .. }) => {
            Err(unusable(&format!("the helper `{helper}` failed")))
        }
        Err(_) => Err(unusable("the configuration of Docker can't be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_hosts_loopback_is_spoken_to_without_tls() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.8.9.1", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["127.0.0.1.example.com", "localhost.example:80", "10.0.0.1", "index.docker.io", "[::2]:1", ""]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
