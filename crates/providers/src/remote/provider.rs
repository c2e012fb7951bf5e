//! A pool of another server as a provider.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::wire::{CapabilitiesAnswer, CreateSandbox, PreviewAnswer, PreviewBody, SandboxAnswer, SandboxList};
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, Manifest, ProviderTools, Result,
    SandboxCowMounts, SandboxImages, SandboxInfo, SandboxNamer, SandboxProvider, SandboxSnapshots, Usage,
    ValidSpec,
};
use reqwest::Method;

use super::create;
use super::http::{SHOW_ENV, ServerClient};
use super::images::RemoteImages;
use super::options::RemoteOptions;
use super::snapshots::RemoteSnapshots;

/// The number of sandboxes in one page of a list.
const PAGE: &str = "1000";

/// A pool of another Eyot server.
pub struct RemoteProvider {
    server: ServerClient,
    name: String,
    capabilities: Capabilities,
}

impl RemoteProvider {
    /// Connects to the server and asks for its capabilities. `unavailable` if no server answers,
    /// `permission` if the key is wrong.
    pub async fn open(options: RemoteOptions) -> Result<Arc<Self>> {
        let server = ServerClient::new(options)?;
        let told = capabilities(&server).await?;
        let capabilities = Capabilities::new(told.capabilities);
        Ok(Arc::new(Self { server, name: told.provider, capabilities }))
    }

    /// Makes a link to a port of a sandbox as a web page of the server. Does not wake the sandbox.
    /// `not_found` if there is no such sandbox; `invalid` if the port is 0 or the duration is not
    /// allowed.
    pub async fn preview(&self, id_or_name: &str, port: u16, who: &PreviewBody) -> Result<PreviewAnswer> {
        let query: Vec<(&str, &str)> = self.server.pool().map(|pool| ("pool", pool)).into_iter().collect();
        let port = port.to_string();
        let url = self.server.url(&["v1", "sandboxes", id_or_name, "ports", &port, "preview"], &query)?;
        let body = serde_json::to_vec(who)
            .map_err(|error| Error::new(ErrorKind::Internal, "write a request down").with_source(error))?;
        let request =
            self.server.request(Method::POST, url).header("content-type", "application/json").body(body);
        self.server.json(self.server.ask(request).await?).await
    }

    fn created(&self, answer: SandboxAnswer) -> Created {
        create::created(self.server.clone(), self.capabilities.clone(), answer)
    }

    /// Sends a request about one sandbox, by id or name.
    async fn of_one(&self, method: Method, id_or_name: &str, what: &[&str]) -> Result<reqwest::Response> {
        self.asked(method, id_or_name, what, &[]).await
    }

    /// Sends a request about one sandbox whose answer is its record.
    async fn told_of_one(
        &self,
        method: Method,
        id_or_name: &str,
        what: &[&str],
    ) -> Result<reqwest::Response> {
        self.asked(method, id_or_name, what, &SHOW_ENV).await
    }

    async fn asked(
        &self,
        method: Method,
        id_or_name: &str,
        what: &[&str],
        query: &[(&str, &str)],
    ) -> Result<reqwest::Response> {
        let mut query = query.to_vec();
        query.extend(self.server.pool().map(|pool| ("pool", pool)));
        let path: Vec<&str> =
            ["v1", "sandboxes", id_or_name].into_iter().chain(what.iter().copied()).collect();
        let url = self.server.url(&path, &query)?;
        self.server.ask(self.server.request(method, url)).await.map_err(|error| match () {
            () if error.is_dead() => Error::dead(id_or_name),
            () if error.is_sleeping() => Error::sleeping(id_or_name),
            () => error,
        })
    }
}

async fn capabilities(server: &ServerClient) -> Result<CapabilitiesAnswer> {
    let url = server.url(&["v1", "capabilities"], &[])?;
    server.json(server.ask(server.request(Method::GET, url)).await?).await
}

// A method that is added to the trait must be answered here, too.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl SandboxProvider for RemoteProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// They end with the server, whatever becomes of this process.
    fn lives_with_its_process(&self) -> bool {
        false
    }

    fn images(&self, _: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        Ok(Arc::new(RemoteImages(self.server.clone())))
    }

    fn cow_mounts(&self) -> Result<Arc<dyn SandboxCowMounts>> {
        let message = "apply: a client of a server names no folder of the server's host";
        Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("run `eyot apply` on that host, or copy the files: `eyot cp SANDBOX:PATH DIR`"))
    }

    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        self.capabilities.require(Capability::Snapshots, self.name(), "snapshots", &[])?;
        Ok(Arc::new(RemoteSnapshots(self.server.clone())))
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(capabilities(&self.server).await?.isolation)
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        let asked = spec.requested();
        // The handle on this side puts the manifest's files in; its variables go with every command.
        let manifest = Manifest { env: asked.manifest.env.clone(), ..Manifest::default() };
        let body = eyot::SandboxSpec {
            id: Some(spec.id().clone()),
            name: Some(spec.name().clone()),
            manifest,
            ..asked
        };
        let body =
            CreateSandbox { pool: self.server.pool().map(str::to_owned), spec: body, get_or_create: false };
        let body = serde_json::to_vec(&body)
            .map_err(|error| Error::new(ErrorKind::Internal, "write a spec down").with_source(error))?;
        let request = self.server.request(Method::POST, self.server.url(&["v1", "sandboxes"], &SHOW_ENV)?);
        let request = request.header("content-type", "application/json").body(body);
        create::create(self.server.clone(), self.capabilities.clone(), request).await
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let response = self.told_of_one(Method::POST, id_or_name, &["open"]).await?;
        Ok(self.created(self.server.json(response).await?))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let mut infos = Vec::new();
        let mut cursor = None;
        loop {
            let mut query = vec![("limit", PAGE)];
            query.extend(self.server.pool().map(|pool| ("pool", pool)));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let url = self.server.url(&["v1", "sandboxes"], &query)?;
            let response = self.server.ask(self.server.request(Method::GET, url)).await?;
            let SandboxList { sandboxes, next_cursor } = self.server.json(response).await?;
            infos.extend(sandboxes.into_iter().map(SandboxAnswer::info));
            match next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(infos),
            }
        }
    }

    /// A server's list has no usage.
    async fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        Ok(self.list().await?.into_iter().map(|info| (info, None)).collect())
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let response = self.told_of_one(Method::GET, id_or_name, &[]).await?;
        let answer: SandboxAnswer = self.server.json(response).await?;
        Ok(answer.info())
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.of_one(Method::DELETE, id_or_name, &[]).await.map(drop)
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        self.of_one(Method::POST, id_or_name, &["sleep"]).await.map(drop)
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let response = self.told_of_one(Method::POST, id_or_name, &["wake"]).await?;
        Ok(self.created(self.server.json(response).await?))
    }

    /// A server's clients name their toolset; one of its own is at `/v1/toolsets/provider`.
    fn tools(&self) -> Option<Arc<dyn ProviderTools>> {
        None
    }

    /// A server does not tell which workspaces there are.
    async fn has_workspace(&self, _: &str) -> Result<bool> {
        Ok(false)
    }
}
