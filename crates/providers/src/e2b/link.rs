//! The way to one sandbox: what every handle on it shares, and why a call on it failed.

use eyot::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

use super::api::EnvdAccess;
use super::client::E2bClient;
use super::secret::Secret;

/// The port of envd.
pub(super) const ENVD_PORT: u16 = 49_983;
/// The oldest version of envd that works: it takes uploads as they are, and closes standard input.
const OLDEST_ENVD: [u64; 3] = [0, 5, 7];

/// The way to one sandbox.
#[derive(Debug)]
pub(super) struct Link {
    pub client: E2bClient,
    /// E2B's id.
    pub id: String,
    /// The name, for errors.
    pub name: String,
    pub token: Option<Secret>,
    /// The address of envd.
    pub url: String,
    /// The life of the sandbox that this is the way to.
    pub life: String,
    /// It was destroyed by a handle of this process.
    pub destroyed: CancellationToken,
}

impl Link {
    /// Makes the way to a sandbox that runs, whose life is not known yet.
    ///
    /// # Errors
    /// `unsupported` if its envd is too old.
    pub fn new(client: E2bClient, name: String, session: &EnvdAccess) -> Result<Self> {
        if !session.envd_is_at_least(OLDEST_ENVD) {
            let version = OLDEST_ENVD.map(|number| number.to_string()).join(".");
            let message = format!("the sandbox's template is too old: its envd must be at least {version}");
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint("build the template again"));
        }
        let domain = session.domain.as_deref().filter(|domain| !domain.is_empty());
        let domain = domain.unwrap_or(&client.options.domain);
        let own = || format!("https://{ENVD_PORT}-{}.{domain}", session.id);
        let url = client.options.sandbox_url.clone().unwrap_or_else(own);
        let (id, token, destroyed) = (session.id.clone(), session.token(), CancellationToken::new());
        let (url, life) = (url.trim_end_matches('/').to_owned(), String::new());
        Ok(Self { client, id, name, token, url, life, destroyed })
    }

    /// Refuses once the sandbox was destroyed here.
    pub fn check(&self) -> Result<()> {
        if self.destroyed.is_cancelled() { Err(Error::destroyed(&self.name)) } else { Ok(()) }
    }
}
