//! The ports that the Engine has published for a sandbox: always on the loopback of its host, with
//! numbers of its choice.

use bollard::models::PortMap;
use bollard::query_parameters::InspectContainerOptions;
use eyot::{Error, ErrorKind, PublishedPort, Result};

use super::engine::Engine;

/// The address that ports are published on.
pub(crate) const LOOPBACK: &str = "127.0.0.1";

/// Looks up where these ports of a container are published, in this order.
pub(crate) async fn published(engine: &Engine, container: &str, ports: &[u16]) -> Result<Vec<PublishedPort>> {
    let inspected =
        engine.client().await?.inspect_container(container, None::<InspectContainerOptions>).await;
    let inspected = inspected.map_err(|error| engine.failed("look at the published ports", error))?;
    let bound = inspected.network_settings.and_then(|settings| settings.ports).unwrap_or_default();
    ports.iter().map(|port| of(&bound, *port).ok_or_else(|| missing(*port))).collect()
}

fn of(bound: &PortMap, port: u16) -> Option<PublishedPort> {
    let bindings = bound.get(&format!("{port}/tcp")).and_then(Option::as_ref)?;
    let binding = bindings.iter().find(|binding| binding.host_ip.as_deref() == Some(LOOPBACK))?;
    let host_port = binding.host_port.as_deref()?.parse().ok()?;
    Some(PublishedPort { port, host: LOOPBACK.to_owned(), host_port })
}

fn missing(port: u16) -> Error {
    Error::new(ErrorKind::Unavailable, format!("port {port} is not published by the Engine now"))
}
