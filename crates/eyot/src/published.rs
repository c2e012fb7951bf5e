//! Ports that a container engine publishes on its host, for programs that want a plain address there. [`crate::Sandbox::dial`]
//! needs none of it.

use serde::{Deserialize, Serialize};

/// A port of a sandbox that is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublishedPort {
    /// The port inside.
    pub port: u16,
    /// The address on the engine's host: always its loopback.
    pub host: String,
    /// The port there.
    pub host_port: u16,
}
