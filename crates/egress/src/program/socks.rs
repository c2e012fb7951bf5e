//! The SOCKS5 proxy (RFC 1928): no authentication, `CONNECT` to a name or an address. The handshake
//! is written out here: it is a dozen bytes, and the crates for it bring more dependencies than it
//! has lines.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::gate::{ConnectError, Gate};
use super::limits;
use super::relay::relay;
use crate::decision::EgressProtocol;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;

const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const TIMED_OUT: u8 = 6;
const NO_COMMAND: u8 = 7;
const NO_ADDRESS_TYPE: u8 = 8;

/// Serves one client.
pub(super) async fn serve(gate: &Gate, mut client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let asked = tokio::time::timeout(limits::PATIENCE, ask(&mut client)).await;
    let Some((host, port)) = asked.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? else {
        return linger(client).await;
    };
    match gate.connect(EgressProtocol::Socks5, &host, port).await {
        Ok((server, allowed)) => {
            reply(&mut client, 0, server.local_addr()?).await?;
            relay(gate, &allowed, client, server).await;
            Ok(())
        }
        Err(failure) => {
            reply_failure(&mut client, code(&failure)).await?;
            linger(client).await
        }
    }
}

/// Greets the client and reads its request. Returns `None` when the client has been told that it
/// can't be served.
async fn ask(client: &mut TcpStream) -> io::Result<Option<(String, u16)>> {
    let [version, methods] = read(client).await?;
    if version != VERSION {
        // A client of version 4, or of another protocol, gets the refusal of version 4, which
        // others take for the end.
        client.write_all(&[0, 0x5b, 0, 0, 0, 0, 0, 0]).await?;
        return Ok(None);
    }
    let mut offered = vec![0; usize::from(methods)];
    client.read_exact(&mut offered).await?;
    if !offered.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(None);
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = read(client).await?;
    if version != VERSION {
        reply_failure(client, GENERAL_FAILURE).await?;
        return Ok(None);
    }
    let Some(host) = read_host(client, kind).await? else {
        reply_failure(client, NO_ADDRESS_TYPE).await?;
        return Ok(None);
    };
    let port = u16::from_be_bytes(read(client).await?);
    if command != CONNECT {
        reply_failure(client, NO_COMMAND).await?;
        return Ok(None);
    }
    Ok(Some((host, port)))
}

/// Reads the host as text; `None` for an unknown kind of address.
async fn read_host(client: &mut TcpStream, kind: u8) -> io::Result<Option<String>> {
    Ok(match kind {
        V4 => Some(Ipv4Addr::from(read::<4>(client).await?).to_string()),
        V6 => Some(Ipv6Addr::from(read::<16>(client).await?).to_string()),
        NAME => {
            let [length] = read(client).await?;
            let mut name = vec![0; usize::from(length)];
            client.read_exact(&mut name).await?;
            // Bytes that are not text are no host's name either, and are refused as such.
            Some(String::from_utf8_lossy(&name).into_owned())
        }
        _ => None,
    })
}

async fn read<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn code(failure: &ConnectError) -> u8 {
    match failure {
        ConnectError::Refused(_) => NOT_ALLOWED,
        ConnectError::Unresolved(_) => HOST_UNREACHABLE,
        ConnectError::Unreachable(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => REFUSED,
            io::ErrorKind::TimedOut => TIMED_OUT,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => HOST_UNREACHABLE,
            _ => GENERAL_FAILURE,
        },
    }
}

async fn reply_failure(client: &mut TcpStream, code: u8) -> io::Result<()> {
    reply(client, code, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)).await
}

async fn reply(client: &mut TcpStream, code: u8, bound: SocketAddr) -> io::Result<()> {
    let mut bytes = vec![VERSION, code, 0];
    match bound.ip() {
        IpAddr::V4(four) => {
            bytes.push(V4);
            bytes.extend(four.octets());
        }
        IpAddr::V6(six) => {
            bytes.push(V6);
            bytes.extend(six.octets());
        }
    }
    bytes.extend(bound.port().to_be_bytes());
    client.write_all(&bytes).await
}

/// Waits until the client has read its answer. Closing while the client still sends would reset the
/// connection under it.
async fn linger(mut client: TcpStream) -> io::Result<()> {
    client.shutdown().await?;
    let mut rest = [0; 512];
    let read_to_the_end = async {
        for _ in 0..64 {
            if client.read(&mut rest).await? == 0 {
                break;
            }
        }
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(1), read_to_the_end).await.unwrap_or(Ok(()))
}
