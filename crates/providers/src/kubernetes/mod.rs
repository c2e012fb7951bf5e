//! Sandboxes as Pods of a Kubernetes cluster.
//!
//! A Pod's first process is Eyot's guest, which listens on one port. A server holds a signing key;
//! the Pod knows the public key and its own uid, so a token opens one Pod, for minutes, and no
//! secret lies in a Pod (`key`). The way to the port is the Pod's address, or port-forward through
//! the API server (`reach`). Everything after that is as in a container of Docker.
//!
//! A sandbox's name is reserved by a Lease that is called after the name (`lease`), made before the
//! Pod. The Pod's annotations have the record. The cluster alone says which sandboxes there are:
//! all processes with the same key and the same namespace have the same ones.

mod capabilities;
mod cluster;
mod connect;
mod create;
mod destroy;
mod find;
mod isolation;
mod key;
mod lease;
mod options;
mod pod_body;
mod pod_state;
mod provider;
mod reach;
mod record;
mod refusal;
mod reserve;
mod rights;
mod row;
mod sandbox_pod;
mod wait;

pub use capabilities::capabilities;
pub use options::{KubernetesOptions, PodReach};
pub use provider::KubernetesProvider;
pub use row::ROW;

/// The provider's name.
const NAME: &str = "kubernetes";
