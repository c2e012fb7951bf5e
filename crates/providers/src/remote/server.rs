//! A server as a whole: its pools, the tools that act in them, and the events of their sandboxes.

mod branches;
mod change;
mod events;
mod pools;
mod tools;

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, SandboxImages, SandboxName};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::http::ServerClient;
use super::images::RemoteImages;
use super::options::RemoteOptions;
use super::provider::RemoteProvider;

/// An Eyot server. Clones share the connection.
#[derive(Clone)]
pub struct RemoteServer {
    inner: Arc<Inner>,
}

struct Inner {
    options: RemoteOptions,
    server: ServerClient,
}

impl RemoteServer {
    /// Makes a client of the server at this address. Sends nothing yet.
    pub fn new(options: RemoteOptions) -> Result<Self> {
        let server = ServerClient::new(options.clone())?;
        Ok(Self { inner: Arc::new(Inner { options, server }) })
    }

    /// Opens one of its pools as a provider; `None`: the pool in the options, else the key's own.
    ///
    /// # Errors
    /// Those of [`RemoteProvider::open`].
    pub async fn provider(&self, pool: Option<&SandboxName>) -> Result<Arc<RemoteProvider>> {
        let named = pool.map(ToString::to_string).or_else(|| self.inner.options.pool.clone());
        RemoteProvider::open(RemoteOptions { pool: named, ..self.inner.options.clone() }).await
    }

    /// Returns the images of the server.
    pub fn images(&self) -> Arc<dyn SandboxImages> {
        Arc::new(RemoteImages(self.server().clone()))
    }

    fn server(&self) -> &ServerClient {
        &self.inner.server
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> Result<RequestBuilder> {
        Ok(self.server().request(method, self.server().url(path, query)?))
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        self.server().json(self.server().ask(request).await?).await
    }
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder> {
    let body = serde_json::to_vec(body)
        .map_err(|error| Error::new(ErrorKind::Internal, "write a request down").with_source(error))?;
    Ok(request.header("content-type", "application/json").body(body))
}
