//! The suite over a real cluster, and what only a real one shows. It is that of `cargo xtask cluster`, and the provider
//! has the rights of `contrib/kubernetes` in it, and no others.

mod admin;
mod node;
mod refusals;
// These speak to servers with what the provider `remote` is made of.
#[cfg(feature = "remote")]
mod replicas;
mod scale;
#[cfg(feature = "remote")]
mod servers;
#[cfg(feature = "remote")]
mod streamed;

use std::path::PathBuf;
use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::{Fixture, ReusedSandboxes};
use eyot_providers::kubernetes::{KubernetesOptions, KubernetesProvider};
use libtest_mimic::Trial;

use crate::vendor::{block_on, ignored, over};

/// The variable that names the cluster's folder.
const FOLDER: &str = "EYOT_TEST_CLUSTER";
/// The image of the sandboxes, with the guest in it.
const IMAGE: &str = "eyot.local/sandbox:1";
/// The guest alone.
const GUEST_IMAGE: &str = "eyot.local/guest:1";
/// The namespace of the Pods, as in `contrib/kubernetes`.
const NAMESPACE: &str = "sandboxes";

/// A cluster that runs.
pub struct Cluster {
    folder: PathBuf,
    /// The folder of the provider's key, and of the file with its rights.
    state: tempfile::TempDir,
    reused: ReusedSandboxes,
}

impl Cluster {
    /// Finds the cluster of `cargo xtask cluster`.
    pub fn find() -> Option<Arc<Self>> {
        let folder = PathBuf::from(std::env::var_os(FOLDER)?);
        let state = tempfile::tempdir().expect("a folder for the key");
        Some(Arc::new(Self { folder, state, reused: ReusedSandboxes::default() }))
    }

    /// Applies the manifests of `contrib/kubernetes`, and takes the rights that they give.
    pub fn prepare(&self) {
        admin::apply_manifests();
        admin::write_kubeconfig(&self.kubeconfig());
    }

    /// Destroys the sandboxes that one case after another has used.
    pub fn clear(&self) {
        if let Err(error) = block_on(self.reused.destroy()) {
            eprintln!("a sandbox of the suite is left: {error}");
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state.path().join("kubeconfig")
    }

    /// Returns the options of a provider with the rights of the manifests.
    fn options(&self) -> KubernetesOptions {
        KubernetesOptions {
            kubeconfig: Some(self.kubeconfig()),
            image: IMAGE.to_owned(),
            ..KubernetesOptions::new(self.state.path())
        }
    }

    /// Returns a provider. All have one key, as replicas of a server have.
    fn provider(&self) -> Arc<KubernetesProvider> {
        KubernetesProvider::new(self.options())
    }
}

/// The suite on the cluster.
struct OnCluster {
    cluster: Arc<Cluster>,
    provider: Arc<KubernetesProvider>,
}

impl Fixture for OnCluster {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    fn rounds(&self) -> usize {
        2
    }

    fn reused(&self) -> Option<&ReusedSandboxes> {
        Some(&self.cluster.reused)
    }
}

/// Returns the suite, and the cases that have the cluster for themselves: `cluster::` and `alone::`.
pub fn trials(cluster: Option<&Arc<Cluster>>) -> Vec<Trial> {
    let Some(cluster) = cluster else {
        return vec![ignored("cluster", "`cargo xtask soak cluster` has a cluster for it")];
    };
    let suite = OnCluster { cluster: Arc::clone(cluster), provider: cluster.provider() };
    let mut alone = vec![refusals::trials(cluster), scale::trials(cluster)];
    #[cfg(feature = "remote")]
    alone.push(replicas::trials(cluster));
    // Last: what it has broken takes a while to mend.
    alone.push(node::trials(cluster));
    over("cluster", suite).into_iter().chain(alone.into_iter().flatten()).collect()
}
