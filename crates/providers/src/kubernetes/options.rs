//! The options of the provider.

use std::path::PathBuf;

/// The image of sandboxes that name none.
pub(super) const IMAGE: &str = "node:22-bookworm";

/// The way to a Pod's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodReach {
    /// The Pod's own address, which only the cluster's network knows.
    PodAddress,
    /// Port-forward through the API server, from anywhere.
    PortForward,
}

/// The options of a provider. Making one touches nothing.
#[derive(Debug, Clone)]
pub struct KubernetesOptions {
    /// The state folder. It holds the signing key: providers with the same key have the same sandboxes.
    pub state: PathBuf,
    /// The file of the signing key, such as one of a Secret that is mounted; by default one in the state folder, made the
    /// first time.
    pub key_file: Option<PathBuf>,
    /// The file that says where the cluster is; by default `KUBECONFIG`, else the usual file, else
    /// the service account of the Pod that this process runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The context in that file; by default its current one.
    pub context: Option<String>,
    /// The namespace of the Pods; by default the context's.
    pub namespace: Option<String>,
    /// The image of specs that name none.
    pub image: String,
    /// An image that has the guest as `/eyot-guest`. An init container copies it into each Pod; without
    /// one, the images of sandboxes have the guest as `/.eyot-guest/eyot-guest`.
    pub guest_image: Option<String>,
    /// The RuntimeClass of specs that name none.
    pub runtime_class: Option<String>,
    /// Asks for a user namespace for each Pod (`hostUsers: false`).
    pub user_namespaces: bool,
    /// The user and group that everything in a Pod runs as.
    pub user_id: u32,
    /// The way to a Pod's port.
    pub reach: PodReach,
    /// The age at which the cluster itself ends a Pod, in seconds.
    pub max_age_s: Option<u64>,
}

impl KubernetesOptions {
    /// Makes options for this state folder.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self {
            state: state.into(),
            key_file: None,
            kubeconfig: None,
            context: None,
            namespace: None,
            image: IMAGE.to_owned(),
            guest_image: None,
            runtime_class: None,
            user_namespaces: false,
            user_id: 1000,
            reach: PodReach::PodAddress,
            max_age_s: None,
        }
    }
}
