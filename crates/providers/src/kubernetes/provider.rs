//! The provider: the cluster says which sandboxes there are.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{Capabilities, Created, Error, Isolation, Result, SandboxInfo, SandboxProvider, ValidSpec};
use futures_util::StreamExt;
use kube::ResourceExt;
use tokio::sync::OnceCell;

use super::capabilities::capabilities;
use super::cluster::Cluster;
use super::connect::{Keyed, RunningPod};
use super::find::{FoundPod, OwnedPods, all, find};
use super::key::ServerKey;
use super::options::KubernetesOptions;
use super::pod_state::PodState;
use super::reach::PodPlace;
use super::sandbox_pod::ReadyPod;
use super::{create, destroy, isolation, lease, rights};

/// The most sandboxes whose time is over that one list removes at once.
const REMOVALS_AT_ONCE: usize = 16;

/// Makes sandboxes as Pods of a cluster. Cheap to share.
pub struct KubernetesProvider {
    cluster: Arc<Cluster>,
    keyed: OnceCell<Arc<Keyed>>,
    capabilities: Capabilities,
}

impl KubernetesProvider {
    /// Makes a provider over a cluster. The first call connects.
    pub fn new(options: KubernetesOptions) -> Arc<Self> {
        let cluster = Arc::new(Cluster::new(options));
        Arc::new(Self { cluster, keyed: OnceCell::new(), capabilities: capabilities() })
    }

    /// Asks for the server's version, and so whether it answers.
    ///
    /// # Errors
    /// `setup` without a configured cluster, `unavailable` if it does not answer.
    pub async fn version(&self) -> Result<String> {
        self.cluster.version().await
    }

    /// Lists the rights in the namespace that are missing, such as `create pods`.
    ///
    /// # Errors
    /// Those of [`KubernetesProvider::version`].
    pub async fn missing_rights(&self) -> Result<Vec<String>> {
        rights::missing(&self.cluster).await
    }

    /// Returns the namespace of the Pods.
    ///
    /// # Errors
    /// `setup` without a configured cluster.
    pub async fn namespace(&self) -> Result<String> {
        self.cluster.namespace().await.map(str::to_owned)
    }

    async fn keyed(&self) -> Result<&Arc<Keyed>> {
        let open = || async {
            // Without a configured cluster no key is made.
            self.cluster.namespace().await?;
            let key = ServerKey::open(self.cluster.options()).await?;
            let owner = key.owner();
            Ok(Arc::new(Keyed { cluster: Arc::clone(&self.cluster), key, owner }))
        };
        self.keyed.get_or_try_init(open).await
    }

    /// Begins to remove a sandbox whose time is over. Returns whether it is over; if the removal fails, the
    /// next look tries again.
    async fn is_removed(&self, keyed: &Arc<Keyed>, found: &FoundPod) -> bool {
        let is_over = matches!(found.state, PodState::Going | PodState::Over);
        if is_over && let Err(error) = destroy::begin(keyed, &found.record, &found.pod).await {
            tracing::warn!(sandbox = %found.record.id, %error, "a sandbox that is over could not be removed");
        }
        is_over
    }
}

fn info(found: &FoundPod) -> SandboxInfo {
    let uid = found.pod.uid().unwrap_or_default();
    found.record.info(&found.state, uid, isolation::declared(&found.pod))
}

#[async_trait]
impl SandboxProvider for KubernetesProvider {
    fn name(&self) -> &str {
        super::NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(isolation::predicted(self.cluster.options()))
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        let mut created = create::create(self.keyed().await?, spec).await?.created();
        // What is recorded lacks what the caller still has.
        created.info.spec = spec.spec().clone();
        Ok(created)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let keyed = self.keyed().await?;
        let found = find(keyed, id_or_name).await?;
        let PodState::Running(address) = found.state else { return Err(found.state.refusal(id_or_name)) };
        let (pod_name, pod_uid) = (found.pod.name_any(), found.pod.uid().unwrap_or_default());
        let place = PodPlace { pod_name, pod_uid, address };
        let running = RunningPod { record: Arc::new(found.record), place };
        let connection = running.connect(keyed).await?;
        Ok(ReadyPod::new(keyed, running, &found.pod, connection)?.created())
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let keyed = self.keyed().await?;
        let OwnedPods { found, ids } = all(keyed).await?;
        let looks = found.into_iter().map(|found| async move {
            let is_over = self.is_removed(keyed, &found).await;
            (!is_over).then(|| info(&found))
        });
        let looks = futures_util::stream::iter(looks).buffer_unordered(REMOVALS_AT_ONCE);
        let mut infos: Vec<SandboxInfo> = looks.filter_map(std::future::ready).collect().await;
        if let Err(error) = lease::sweep(&keyed.cluster, &keyed.owner, &ids).await {
            tracing::warn!(%error, "reserved names without a sandbox could not be freed");
        }
        infos.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
        Ok(infos)
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let keyed = self.keyed().await?;
        let found = find(keyed, id_or_name).await?;
        if self.is_removed(keyed, &found).await {
            return Err(Error::destroyed(id_or_name));
        }
        Ok(info(&found))
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let keyed = self.keyed().await?;
        let found = find(keyed, id_or_name).await?;
        let removed = destroy::destroy(keyed, &found.record, &found.pod.uid().unwrap_or_default()).await;
        if removed.map_err(|error| error.context(format!("destroy sandbox `{id_or_name}`")))? {
            Ok(())
        } else {
            Err(Error::destroyed(id_or_name))
        }
    }
}
