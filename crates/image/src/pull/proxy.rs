//! Limits on the addresses that a pull reaches. A registry names other addresses: of its token
//! service (`WWW-Authenticate`), and of its blobs (redirects). It must not make this host send
//! requests into its own network, with credentials at that. So the registry client connects through
//! a proxy in this process, which judges the very address that it dials.
//!
//! The user named the registry itself, so it is dialled wherever it is. Other hosts must be public,
//! or on a private network if the registry is, or on loopback if the registry is. Without TLS only
//! loopback is reached.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyot_egress::AddressKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);
const MAX_HEAD_BYTES: usize = 64 << 10;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// The proxy. Dropping it ends it.
pub(super) struct PullProxy {
    url: String,
    rule: Arc<PullPolicy>,
    task: AbortHandle,
}

/// The rule for addresses.
struct PullPolicy {
    registry: ProxyTarget,
    /// The kinds of the registry's addresses.
    kinds: Vec<AddressKind>,
    /// The registry is used without TLS.
    plain: bool,
    /// The last refusal.
    refused: Mutex<Option<String>>,
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProxyTarget {
    host: String,
    port: u16,
}

impl ProxyTarget {
    /// Parses `host`, `host:port`, `[::1]:port`.
    fn parse(authority: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, default_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        (!host.is_empty() && !host.contains('@')).then_some(Self { host, port })
    }

    async fn addresses(&self) -> io::Result<BTreeSet<IpAddr>> {
        let found = timeout(PATIENCE, tokio::net::lookup_host((self.host.as_str(), self.port))).await??;
        Ok(found.map(|address| address.ip()).collect())
    }
}

impl PullProxy {
    /// Starts a proxy for the client of a registry.
    pub(super) async fn open(registry: &str, plain: bool) -> io::Result<Self> {
        let port = if plain { HTTP_PORT } else { HTTPS_PORT };
        let registry = ProxyTarget::parse(registry, port).ok_or(io::ErrorKind::InvalidInput)?;
        // A registry without an address can't be reached either.
        let addresses = registry.addresses().await.unwrap_or_default();
        let kinds = addresses.into_iter().map(AddressKind::of).collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let rule = Arc::new(PullPolicy { registry, kinds, plain, refused: Mutex::default() });
        let task = tokio::spawn(accept(listener, Arc::clone(&rule))).abort_handle();
        Ok(Self { url, rule, task })
    }

    /// Returns the proxy's address, for the client.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the last refusal since the previous call.
    pub(super) fn refused(&self) -> Option<String> {
        self.rule.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for PullProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PullPolicy {
    /// Tells whether an address may be dialled for this target.
    fn admits(&self, target: &ProxyTarget, address: IpAddr, plain: bool) -> bool {
        let (kind, has) = (AddressKind::of(address), |kind| self.kinds.contains(&kind));
        if plain && !(self.plain && kind == AddressKind::Loopback) {
            return false;
        }
        match kind {
            AddressKind::Public => true,
            AddressKind::Private => has(AddressKind::Private) || has(AddressKind::Loopback),
            AddressKind::Loopback => has(AddressKind::Loopback),
            // Metadata services and the like are allowed only if the registry itself is there.
            kind => *target == self.registry && has(kind),
        }
    }

    async fn dial(&self, target: &ProxyTarget, plain: bool) -> io::Result<TcpStream> {
        let mut failed = io::Error::from(io::ErrorKind::PermissionDenied);
        for address in target.addresses().await? {
            if !self.admits(target, address, plain) {
                let shown = format!("{}:{}", target.host, target.port);
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
                continue;
            }
            match timeout(PATIENCE, TcpStream::connect(SocketAddr::new(address, target.port))).await? {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

async fn accept(listener: TcpListener, rule: Arc<PullPolicy>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let rule = Arc::clone(&rule);
                tokio::spawn(async move {
                    if let Err(error) = serve(client, &rule).await {
                        tracing::debug!(%error, "a connection to a registry ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "take a connection to a registry");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(mut client: TcpStream, rule: &PullPolicy) -> io::Result<()> {
    let (there, here) = (client.peer_addr()?, client.local_addr()?);
    if !tokio::task::spawn_blocking(move || is_this_process(there, here)).await?? {
        return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    }
    let (head, rest) = timeout(PATIENCE, read_head(&mut client)).await??;
    let request = ProxyRequest::parse(&head).ok_or(io::ErrorKind::InvalidData)?;
    // Without an answer the client sees the same as without the proxy: nothing can be reached.
    let mut server = rule.dial(&request.target, request.forwarded.is_some()).await?;
    match request.forwarded {
        Some(head) => server.write_all(head.as_bytes()).await?,
        None => client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?,
    }
    server.write_all(&rest).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Tells if the other end of a connection is this process's own: no other process on this host may
/// use the proxy. A password would not do, because a client drops it when a redirect leads to
/// another host.
fn is_this_process(there: SocketAddr, here: SocketAddr) -> io::Result<bool> {
    let (SocketAddr::V4(there), SocketAddr::V4(here)) = (there, here) else { return Ok(false) };
    let ends = [there, here].map(|end| in_the_kernels_words(&end));
    let table = std::fs::read_to_string("/proc/self/net/tcp")?;
    let inode = table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(1..3)? == ends).then(|| fields.get(9).copied()).flatten()
    });
    let Some(inode) = inode.filter(|inode| *inode != "0") else { return Ok(false) };
    let socket = format!("socket:[{inode}]");
    for entry in std::fs::read_dir("/proc/self/fd")? {
        if std::fs::read_link(entry?.path()).is_ok_and(|target| target == Path::new(&socket)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An end of a connection as `/proc/net/tcp` has it.
fn in_the_kernels_words(end: &SocketAddrV4) -> String {
    format!("{:08X}:{:04X}", u32::from_ne_bytes(end.ip().octets()), end.port())
}

/// Reads a request's head, and the bytes that came with it.
async fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return String::from_utf8(bytes).map(|head| (head, rest)).map_err(io::Error::other);
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// A request to the proxy.
struct ProxyRequest {
    target: ProxyTarget,
    /// The head as the server is to see it; `None` for a tunnel.
    forwarded: Option<String>,
}

impl ProxyRequest {
    fn parse(head: &str) -> Option<Self> {
        let (line, _) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, uri) = (words.next()?, words.next()?);
        if method == "CONNECT" {
            return Some(Self { target: ProxyTarget::parse(uri, HTTPS_PORT)?, forwarded: None });
        }
        let below = uri.strip_prefix("http://")?;
        let authority = below.split(['/', '?', '#']).next()?;
        let path = &below[authority.len()..];
        let slash = if path.starts_with('/') { "" } else { "/" };
        // One request for each connection: the next one may be to another host.
        let mut forwarded = format!("{method} {slash}{path} HTTP/1.1\r\nConnection: close\r\n");
        for line in lines(head).filter(|line| !is_called(line, "connection")) {
            forwarded += line;
            forwarded += "\r\n";
        }
        let target = ProxyTarget::parse(authority, HTTP_PORT)?;
        Some(Self { target, forwarded: Some(forwarded + "\r\n") })
    }
}

/// Returns the headers of a head.
fn lines(head: &str) -> impl Iterator<Item = &str> {
    head.split("\r\n").skip(1).filter(|line| !line.is_empty())
}

fn is_called(line: &str, name: &str) -> bool {
    line.split_once(':').is_some_and(|(called, _)| called.trim().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use eyot::ErrorKind;

    use super::*;
    use crate::ImageName;
    use crate::progress::NoProgress;
    use crate::pull::PullOptions;
    use crate::store::ImageStore;

    fn rule(kinds: &[AddressKind], plain: bool) -> PullPolicy {
        let registry = ProxyTarget { host: "r.example".to_owned(), port: 443 };
        PullPolicy { registry, kinds: kinds.to_vec(), plain, refused: Mutex::default() }
    }

    #[test]
    fn others_than_the_registry_are_public_unless_it_is_not() {
        let addresses = ["1.1.1.1", "10.0.0.1", "127.0.0.1", "169.254.169.254", "0.0.0.0", "::ffff:10.0.0.1"];
        let admitted = |rule: &PullPolicy, plain| {
            let other = ProxyTarget { host: "other.example".to_owned(), port: 443 };
            addresses.map(|text| rule.admits(&other, text.parse().unwrap(), plain))
        };
        let (public, private, loopback) = (AddressKind::Public, AddressKind::Private, AddressKind::Loopback);
        assert_eq!(admitted(&rule(&[public], false), false), [true, false, false, false, false, false]);
        assert_eq!(admitted(&rule(&[private], false), false), [true, true, false, false, false, true]);
        assert_eq!(admitted(&rule(&[loopback], false), false), [true, true, true, false, false, true]);
        assert_eq!(admitted(&rule(&[loopback], true), true), [false, false, true, false, false, false]);
        for kind in [public, private, loopback] {
            assert_eq!(admitted(&rule(&[kind], false), true), [false; 6]);
        }
    }

    #[test]
    fn a_target_has_a_host_and_a_port() {
        let of = |text| ProxyTarget::parse(text, 443).map(|target| (target.host, target.port));
        assert_eq!(of("R.example"), Some(("r.example".to_owned(), 443)));
        assert_eq!(of("[::1]:5000"), Some(("::1".to_owned(), 5000)));
        assert_eq!(of("[::1]"), Some(("::1".to_owned(), 443)));
        for wrong in ["", "a:b", "a:70000", "u@h:1", ":80"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    /// Starts a registry on loopback that answers everything with this head, and counts.
    async fn registry(head: String) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                read_head(&mut client).await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                client.write_all(head.as_bytes()).await.unwrap();
            }
        });
        (address, asked)
    }

    async fn pulled_from(address: SocketAddr) -> eyot::Error {
        let folder = tempfile::tempdir().unwrap();
        let name = ImageName::parse(&format!("{address}/team/app:1")).unwrap();
        let store = ImageStore::new(folder.path());
        store.pull(&name, &PullOptions::default(), Arc::new(NoProgress)).await.unwrap_err()
    }

    const TOKENS: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"token\":\"x\"}";

    fn challenge(realm: &str) -> String {
        format!(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"{realm}\",service=\"s\"\r\nContent-Length: 0\r\n\r\n"
        )
    }

    #[tokio::test]
    async fn n7_a_registrys_realm_is_not_followed_to_what_is_not_its_own_network() {
        for realm in
            ["http://169.254.169.254/token", "https://169.254.169.254/token", "http://10.1.2.3/token"]
        {
            let (address, asked) = registry(challenge(realm)).await;
            let error = pulled_from(address).await;
            assert_eq!(error.kind(), ErrorKind::Permission, "{error}");
            assert!(error.to_string().contains("leads to") && asked.load(Ordering::SeqCst) > 0, "{error}");
        }
        // On loopback, as the registry is.
        let (tokens, asked) = registry(TOKENS.to_owned()).await;
        let (address, _) = registry(challenge(&format!("http://{tokens}/token"))).await;
        assert_eq!(pulled_from(address).await.kind(), ErrorKind::Permission);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    fn elsewhere(location: &str) -> String {
        format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
    }

    #[tokio::test]
    async fn n7_a_registrys_redirect_is_followed_on_its_own_network_and_not_beyond() {
        for location in ["http://169.254.169.254/x", "https://169.254.169.254/x", "http://10.1.2.3/x"] {
            let (address, _) = registry(elsewhere(location)).await;
            let error = pulled_from(address).await;
            assert_eq!(error.kind(), ErrorKind::Permission, "{location}: {error}");
            assert!(error.to_string().contains("leads to"), "{error}");
        }
        // On loopback, as the registry is.
        let (other, asked) = registry("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
        let (address, _) = registry(elsewhere(&format!("http://{other}/x"))).await;
        assert_eq!(pulled_from(address).await.kind(), ErrorKind::NotFound);
        assert!(asked.load(Ordering::SeqCst) > 0);
    }

    #[tokio::test]
    async fn a_name_that_leads_to_loopback_is_not_dialled_for_a_public_registry_and_strangers_are_not_served()
    {
        let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = canary.local_addr().unwrap().port();
        let rule = rule(&[AddressKind::Public], false);
        let target = ProxyTarget { host: "localhost".to_owned(), port };
        assert!(rule.dial(&target, false).await.is_err());
        assert_eq!(rule.refused.lock().unwrap().take(), Some(format!("localhost:{port}")));

        let proxy = PullProxy::open("127.0.0.1:1", true).await.unwrap();
        let address = proxy.url().strip_prefix("http://").unwrap();
        let script = format!("cat < /dev/tcp/{}", address.replace(':', "/"));
        let mut stranger = std::process::Command::new("bash");
        stranger.args(["-c", &script]);
        let answered = tokio::task::spawn_blocking(move || stranger.output()).await.unwrap().unwrap();
        let answer = String::from_utf8(answered.stdout).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(timeout(Duration::ZERO, canary.accept()).await.is_err());
    }
}
