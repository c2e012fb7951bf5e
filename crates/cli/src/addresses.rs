//! Addresses to listen on, as people write them.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, lookup_host};

use crate::errors::Failure;

/// Resolves an address to listen on. `7070`, `:7070` and `localhost:7070` are on this machine's
/// loopback, like `127.0.0.1:7070`.
pub async fn addresses(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)]);
    }
    let wrong = || {
        Failure::usage(format!("`{text}` is not an address to listen on"))
            .hint("write 127.0.0.1:7070, localhost:7070, [::1]:7070 or a port")
    };
    let found: Vec<_> = lookup_host(text).await.map_err(|_| wrong())?.collect();
    if found.is_empty() { Err(wrong()) } else { Ok(found) }
}

/// Listens at the first of these addresses that is free. `text` is what the option `option` named.
pub async fn listen(addresses: &[SocketAddr], text: &str, option: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(addresses).await.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => Some(format!("another program has this port: give {option} another one")),
            ErrorKind::PermissionDenied => {
                Some(format!("ports below 1024 are root's: give {option} a higher one"))
            }
            ErrorKind::AddrNotAvailable => {
                Some("this host has no such address: `ip address` lists those it has".to_owned())
            }
            _ => None,
        };
        let failure = Failure::host(format!("listen on `{text}`"), error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}
