//! The gate of a Pod's guest: a TCP port, at which every client shows a token before anything else.
//! Threads of this process carry the bytes of those that were let in to the guest's own socket. A
//! process inside the Pod finds the port too, and has no token; the guest's own socket takes
//! nobody but this process.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ed25519_dalek::{Signature, VerifyingKey};

use super::relay::carry;
use crate::protocol::container::{RELAY_TO_GUEST, RELAY_TO_MAKER};
use crate::protocol::pod::{
    HELLO_BYTES, MAX_TOKEN_S, NOT_MADE, PodToken, TOKEN_REFUSED, TokenUse, read_hello, signed_bytes,
};
use crate::protocol::silence::end_when_silent;

/// The most connections at once, those without a token among them.
const MOST_CONNECTIONS: usize = 256;
/// The most connections at once that have not shown a token.
const MOST_STRANGERS: usize = 64;
/// The time that a client has for its token.
const TOKEN_PATIENCE: Duration = Duration::from_secs(5);
/// The pause after the kernel has refused a connection for want of something.
const REST: Duration = Duration::from_millis(20);
/// The longest wait, at the end, for what is still to be carried to clients.
const LAST_PATIENCE: Duration = Duration::from_millis(500);
/// The stack of a thread, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// The streams that are carried to clients, and who waits for their end.
static CARRIED: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Waits, not for long, until all that the guest has said is on its way to its clients. To be called when the guest has
/// closed its connections, before this process ends with the threads that carry.
pub fn settle() {
    let (count, changed) = &CARRIED;
    let count = count.lock().unwrap_or_else(PoisonError::into_inner);
    drop(changed.wait_timeout_while(count, LAST_PATIENCE, |count| *count > 0));
}

/// One of the carried streams, until this is dropped.
struct CarriedStream;

impl CarriedStream {
    fn new() -> Self {
        *CARRIED.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for CarriedStream {
    fn drop(&mut self) {
        *CARRIED.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        CARRIED.1.notify_all();
    }
}

/// Lets clients with a token in.
pub struct PodGate {
    key: VerifyingKey,
    pod_uid: String,
    guest: SocketAddr,
    /// A client was let in: it is the one that brings the configuration.
    has_maker: Mutex<bool>,
    connections: AtomicUsize,
    strangers: AtomicUsize,
}

/// One in a count, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let counted = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PodGate {
    /// Makes a gate before the guest that listens at this address.
    pub fn new(key: VerifyingKey, pod_uid: String, guest: SocketAddr) -> Self {
        let (connections, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { key, pod_uid, guest, has_maker: Mutex::new(false), connections, strangers }
    }

    /// Opens the gate, in threads of its own, for as long as this process lives.
    pub fn open(self, listener: TcpListener) -> io::Result<()> {
        let gate = Arc::new(self);
        thread().spawn(move || gate.accept(&listener)).map(drop)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(REST);
                continue;
            };
            let gate = Arc::clone(self);
            // Without a thread for it, the connection is closed.
            drop(thread().spawn(move || gate.serve(stream)));
        }
    }

    fn serve(&self, stream: TcpStream) {
        let Some(_counted) = Counted::new(&self.connections, MOST_CONNECTIONS) else { return };
        // A client that is gone needs no answer.
        if let Ok(Some((client, guest))) = self.admit(stream) {
            drop(join(client, guest));
        }
    }

    /// Reads the token, and connects to the guest for a client that is let in.
    fn admit(&self, mut client: TcpStream) -> io::Result<Option<(TcpStream, UnixStream)>> {
        let Some(_stranger) = Counted::new(&self.strangers, MOST_STRANGERS) else { return Ok(None) };
        client.set_nodelay(true)?;
        end_when_silent(&client)?;
        client.set_write_timeout(Some(TOKEN_PATIENCE))?;
        let Some(token_use) = self.accepted(&read_in_time(&mut client)?, now_s()) else {
            client.write_all(&[TOKEN_REFUSED])?;
            return Ok(None);
        };
        client.set_read_timeout(None)?;
        client.set_write_timeout(None)?;
        let Some((guest, role)) = self.connect(token_use)? else {
            client.write_all(&[NOT_MADE])?;
            return Ok(None);
        };
        client.write_all(&[role])?;
        Ok(Some((client, guest)))
    }

    /// Returns the use of a token that is valid for this Pod now.
    fn accepted(&self, hello: &[u8; HELLO_BYTES], now_s: u64) -> Option<TokenUse> {
        let PodToken { token_use, expires_s, signature } = read_hello(hello)?;
        let is_in_time = (now_s..=now_s.saturating_add(MAX_TOKEN_S)).contains(&expires_s);
        let signed = signed_bytes(token_use, &self.pod_uid, expires_s);
        let is_valid =
            is_in_time && self.key.verify_strict(&signed, &Signature::from_bytes(&signature)).is_ok();
        is_valid.then_some(token_use)
    }

    /// Connects to the guest, which takes the first connection for its maker's. `None`: this client
    /// is not the maker, who has not come yet.
    fn connect(&self, token_use: TokenUse) -> io::Result<Option<(UnixStream, u8)>> {
        let mut has_maker = self.has_maker.lock().unwrap_or_else(PoisonError::into_inner);
        if !*has_maker && token_use == TokenUse::Connect {
            return Ok(None);
        }
        let stream = UnixStream::connect_addr(&self.guest)?;
        let role = if *has_maker { RELAY_TO_GUEST } else { RELAY_TO_MAKER };
        *has_maker = true;
        Ok(Some((stream, role)))
    }
}

fn thread() -> Builder {
    Builder::new().name("gate".to_owned()).stack_size(STACK_BYTES)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn read_in_time(client: &mut TcpStream) -> io::Result<[u8; HELLO_BYTES]> {
    let given_up = Instant::now() + TOKEN_PATIENCE;
    let mut hello = [0; HELLO_BYTES];
    let mut count = 0;
    while count < HELLO_BYTES {
        let left = given_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut hello[count..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hello)
}

/// Carries bytes both ways until both directions have ended.
fn join(client: TcpStream, guest: UnixStream) -> io::Result<()> {
    let (mut from_client, mut to_guest) = (client.try_clone()?, guest.try_clone()?);
    let inward = thread().spawn(move || {
        // The guest sees the end either way.
        drop(carry(&mut from_client, &mut to_guest));
        drop(to_guest.shutdown(Shutdown::Write));
    })?;
    let (mut from_guest, mut to_client) = (guest, client);
    let carrying = CarriedStream::new();
    let carried = carry(&mut from_guest, &mut to_client);
    drop(carrying);
    // The guest has gone, or the client: the other direction has nothing left to carry.
    drop(to_client.shutdown(Shutdown::Both));
    drop(from_guest.shutdown(Shutdown::Both));
    drop(inward.join());
    carried
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;

    use ed25519_dalek::{Signer, SigningKey};

    use super::*;
    use crate::protocol::pod::hello;

    fn gate(key: &SigningKey) -> PodGate {
        let address = SocketAddr::from_abstract_name("eyot gate of a test").unwrap();
        PodGate::new(key.verifying_key(), "uid-1".to_owned(), address)
    }

    fn token(key: &SigningKey, pod_uid: &str, expires_s: u64) -> [u8; HELLO_BYTES] {
        let signature = key.sign(&signed_bytes(TokenUse::Connect, pod_uid, expires_s)).to_bytes();
        hello(TokenUse::Connect, expires_s, &signature).try_into().unwrap()
    }

    #[test]
    fn a_token_opens_its_own_pod_for_minutes_and_with_the_servers_key_alone() {
        let (key, other) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        let gate = gate(&key);
        let accepts = |token: &[u8; HELLO_BYTES]| gate.accepted(token, 1_000).is_some();
        assert!(accepts(&token(&key, "uid-1", 1_060)));
        let mut other_use = token(&key, "uid-1", 1_060);
        other_use[8] = b'm';
        assert!(!accepts(&other_use), "for another use than was signed");
        assert!(!accepts(&token(&key, "uid-2", 1_060)), "of another Pod");
        assert!(!accepts(&token(&key, "uid-1", 999)), "expired");
        assert!(!accepts(&token(&key, "uid-1", 1_301)), "for too long");
        assert!(!accepts(&token(&other, "uid-1", 1_060)), "of another key");
        assert!(!accepts(&[0; HELLO_BYTES]), "none");
    }

    #[test]
    fn only_the_maker_comes_to_a_guest_without_a_configuration() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let address = SocketAddr::from_abstract_name(format!("eyot gate {}", std::process::id())).unwrap();
        let _guest = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let gate = PodGate::new(key.verifying_key(), "uid-1".to_owned(), address);
        let role = |token_use| gate.connect(token_use).unwrap().map(|(_, role)| role);
        assert_eq!(role(TokenUse::Connect), None);
        assert_eq!(role(TokenUse::Make), Some(RELAY_TO_MAKER));
        assert_eq!(role(TokenUse::Connect), Some(RELAY_TO_GUEST));
        assert_eq!(role(TokenUse::Make), Some(RELAY_TO_GUEST));
    }

    #[test]
    fn strangers_are_counted_until_they_have_gone() {
        let count = AtomicUsize::new(0);
        let one = Counted::new(&count, 1).unwrap();
        assert!(Counted::new(&count, 1).is_none());
        drop(one);
        assert!(Counted::new(&count, 1).is_some());
    }
}
