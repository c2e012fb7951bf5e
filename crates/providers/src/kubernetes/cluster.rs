//! The connection to a cluster, and calls to it that bear a server that restarts.

use std::fmt::Debug;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use super::options::KubernetesOptions;
use super::record::MAKING;
use super::refusal::{failed, is_absent, is_away, is_conflict, is_taken, is_transient, may_not_know_roles};

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait for the answer of one call. A watch has none: it may be silent.
const CALL_PATIENCE: Duration = Duration::from_secs(30);
/// The pauses before a call is made again. A server that restarts is away for a few seconds.
const PAUSES_MS: [u64; 5] = [50, 250, 1_000, 2_000, 4_000];
/// The pause before which a caller is told that it waits.
const TOLD_PAUSE_MS: u64 = 1_000;
/// The longest wait for a server that is only asked whether it is there.
const CHECK_PATIENCE: Duration = Duration::from_secs(10);
/// The most objects in one answer of a list.
const PAGE: u32 = 500;

/// An object of a namespace.
pub(super) trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize
{
}

impl Object for Pod {}
impl Object for Lease {}

/// The result of a create.
pub(super) enum Made<K> {
    /// It is made.
    New(K),
    /// There is one of that name.
    Taken,
}

/// The result of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deleted {
    /// The server has begun to delete it.
    Begun,
    /// There is none.
    Absent,
    /// It is another one by now, or was changed since.
    Changed,
}

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    options: KubernetesOptions,
    opened: OnceCell<OpenCluster>,
}

#[derive(Clone)]
struct OpenCluster {
    client: Client,
    namespace: String,
    /// The server's address, without a password.
    server: String,
}

impl Debug for OpenCluster {
    /// Leaves the client out: it holds credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCluster")
            .field("namespace", &self.namespace)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Takes the options. Touches nothing.
    pub(super) fn new(options: KubernetesOptions) -> Self {
        Self { options, opened: OnceCell::new() }
    }

    /// Returns the options.
    pub(super) fn options(&self) -> &KubernetesOptions {
        &self.options
    }

    async fn open(&self) -> Result<&OpenCluster> {
        let open = || async {
            let opened = connect(&self.options).await?;
            // One that has never answered is not waited for: its address may be wrong.
            match opened.version().await {
                Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
                // Also a refusal is an answer.
                _ => Ok(opened),
            }
        };
        self.opened.get_or_try_init(open).await
    }

    /// Returns the client.
    pub(super) async fn client(&self) -> Result<Client> {
        Ok(self.open().await?.client.clone())
    }

    /// Returns the namespace of the Pods.
    pub(super) async fn namespace(&self) -> Result<&str> {
        Ok(&self.open().await?.namespace)
    }

    /// Returns the calls for one kind of object.
    pub(super) async fn api<K: Object>(&self) -> Result<Api<K>> {
        let open = self.open().await?;
        Ok(Api::namespaced(open.client.clone(), &open.namespace))
    }

    /// Reads an object; `None` if it does not exist.
    pub(super) async fn get<K: Object>(&self, name: &str) -> Result<Option<K>> {
        let api = self.api::<K>().await?;
        retried(&format!("look at `{name}`"), || api.get_opt(name))
            .await?
            .map_err(|error| failed(&format!("look at `{name}`"), error))
    }

    /// Lists the objects with these labels, and the version of the list.
    pub(super) async fn list<K: Object>(&self, labels: &str, fields: &str) -> Result<(Vec<K>, String)> {
        let api = self.api::<K>().await?;
        let mut asked = ListParams::default().labels(labels).fields(fields).limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page = retried("list sandboxes", || api.list(&asked)).await?;
            let page = page.map_err(|error| failed("list sandboxes", error))?;
            all.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => asked = asked.continue_token(&token),
                None => return Ok((all, page.metadata.resource_version.unwrap_or_default())),
            }
        }
    }

    /// Makes an object. If the answer to an earlier try was lost, the mark of its making tells whose it is.
    pub(super) async fn create<K: Object>(&self, what: &str, object: &K) -> Result<Made<K>> {
        let api = self.api::<K>().await?;
        let made = retried(what, || async { api.create(&PostParams::default(), object).await }).await?;
        match made {
            Ok(made) => Ok(Made::New(made)),
            Err(error) if is_taken(&error) => {
                let found = self.get::<K>(&object.name_any()).await?;
                let mark = object.annotations().get(MAKING);
                let is_ours = |found: &K| mark.is_some() && found.annotations().get(MAKING) == mark;
                Ok(found.filter(is_ours).map_or(Made::Taken, Made::New))
            }
            Err(error) => Err(failed(what, error)),
        }
    }

    /// Deletes exactly this object, as it was read. The grace is a Pod's; without one it is that of its spec.
    pub(super) async fn delete<K: Object>(
        &self,
        what: &str,
        object: &K,
        grace_s: Option<u32>,
    ) -> Result<Deleted> {
        let api = self.api::<K>().await?;
        let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
        let how = DeleteParams {
            preconditions: Some(preconditions),
            grace_period_seconds: grace_s,
            ..DeleteParams::default()
        };
        let name = object.name_any();
        match retried(what, || api.delete(&name, &how)).await? {
            Ok(_) => Ok(Deleted::Begun),
            Err(error) if is_absent(&error) => Ok(Deleted::Absent),
            Err(error) if is_conflict(&error) => Ok(Deleted::Changed),
            Err(error) => Err(failed(what, error)),
        }
    }

    /// Asks for the server's version.
    pub(super) async fn version(&self) -> Result<String> {
        self.open().await?.version().await
    }
}

impl OpenCluster {
    /// Asks for the server's version, once. Every server tells it to everybody.
    async fn version(&self) -> Result<String> {
        match tokio::time::timeout(CHECK_PATIENCE, self.client.apiserver_version()).await {
            Ok(Ok(version)) => Ok(version.git_version),
            Ok(Err(error @ kube::Error::Api(_))) => Err(failed("ask for the version", error)),
            Ok(Err(error)) => Err(silent(&self.server).with_source(error)),
            Err(_) => Err(silent(&self.server)),
        }
    }
}

fn silent(server: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the API server {server} does not answer")).with_hint(
        "start it, or name another: KUBECONFIG, or the options kubeconfig and context of the provider",
    )
}

async fn connect(options: &KubernetesOptions) -> Result<OpenCluster> {
    let mut config = read_config(options).await?;
    config.connect_timeout = Some(CONNECT_PATIENCE);
    let namespace = options.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let url = &config.cluster_url;
    let (scheme, host) = (url.scheme_str().unwrap_or("https"), url.host().unwrap_or_default());
    let server = url
        .port_u16()
        .map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"));
    let client = Client::try_from(config).map_err(|error| {
        Error::new(ErrorKind::Setup, "the cluster's credentials can't be used").with_source(error)
    })?;
    Ok(OpenCluster { client, namespace, server })
}

async fn read_config(options: &KubernetesOptions) -> Result<Config> {
    let chosen = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    let no_cluster = |error: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Setup, "no cluster is configured, or its file can't be read")
            .with_hint("set KUBECONFIG, or the options kubeconfig and context of the provider")
            .with_source(error)
    };
    match &options.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| no_cluster(error.into()))?;
            Config::from_custom_kubeconfig(file, &chosen).await.map_err(|error| no_cluster(error.into()))
        }
        None if options.context.is_some() => {
            Config::from_kubeconfig(&chosen).await.map_err(|error| no_cluster(error.into()))
        }
        None => Config::infer().await.map_err(|error| no_cluster(error.into())),
    }
}

/// Makes a call, and again while the server is not reached or says that it may work later. One that was
/// away does not know of all rights when it begins to answer. The outer error is a call without an answer.
pub(super) async fn retried<T, F: Future<Output = kube::Result<T>>>(
    what: &str,
    call: impl Fn() -> F,
) -> Result<kube::Result<T>> {
    let mut pauses = PAUSES_MS.into_iter();
    let mut was_away = false;
    loop {
        let answered = tokio::time::timeout(CALL_PATIENCE, call()).await;
        let transient = match &answered {
            Ok(Err(error)) => is_transient(error) || may_not_know_roles(error, was_away),
            Ok(Ok(_)) => false,
            Err(_) => true,
        };
        was_away |= match &answered {
            Ok(answer) => answer.as_ref().is_err_and(is_away),
            Err(_) => true,
        };
        match pauses.next().filter(|_| transient) {
            Some(pause_ms) => {
                if pause_ms == TOLD_PAUSE_MS {
                    tracing::warn!(
                        "{what}: the API server can't do it yet; it is asked for some seconds more"
                    );
                }
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
            None => {
                return answered.map_err(|_| {
                    let message = format!("{what}: the API server did not answer in time");
                    Error::new(ErrorKind::Unavailable, message)
                });
            }
        }
    }
}
