//! The signing key of the servers, and what is derived from it: tokens, the nonces of a life, and the
//! public id of whoever holds the key.

use std::path::Path;

use ed25519_dalek::{Signer, SigningKey};
use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result};
use eyot_guest::protocol::pod::{MAX_TOKEN_S, TokenUse, hello, signed_bytes};
use sha2::{Digest, Sha256};

use super::options::KubernetesOptions;
use crate::state_secret::{SECRET_BYTES, failed, make_folder, mounted_secret, secret};

const FOLDER: &str = "kubernetes";
const NONCE_DOMAIN: &str = "eyot pod nonce 1";
/// The time for which a token is valid, in seconds. Clocks may differ by the rest of what a Pod takes.
const TOKEN_S: u64 = MAX_TOKEN_S / 2;
/// The number of bytes of a digest that make up an id.
const ID_BYTES: usize = 8;

/// The signing key.
pub(super) struct ServerKey(SigningKey);

impl std::fmt::Debug for ServerKey {
    /// Leaves the key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServerKey").field(&self.owner()).finish()
    }
}

impl ServerKey {
    /// Reads the key of the options' file, or that of the state folder, which is made the first time.
    pub(super) async fn open(options: &KubernetesOptions) -> Result<Self> {
        let (file, folder) = (options.key_file.clone(), options.state.join(FOLDER));
        let read = tokio::task::spawn_blocking(move || match file {
            Some(file) => Self::read(&file),
            None => make_folder(&folder).and_then(|()| secret(&folder)).map_err(unreadable).map(Self::of),
        });
        read.await
            .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))?
    }

    /// Reads the key of a file. Blocks.
    pub(super) fn read(file: &Path) -> Result<Self> {
        mounted_secret(file).map_err(unreadable).map(Self::of)
    }

    fn of(secret: [u8; SECRET_BYTES]) -> Self {
        Self(SigningKey::from_bytes(&secret))
    }

    /// Returns the public key, as hexadecimal digits.
    pub(super) fn public(&self) -> String {
        hex::encode(self.0.verifying_key().as_bytes())
    }

    /// Returns the id of whoever holds the key.
    pub(super) fn owner(&self) -> String {
        hex::encode(&Sha256::digest(self.0.verifying_key().as_bytes())[..ID_BYTES])
    }

    /// Returns the first message to the guest of a Pod.
    pub(super) fn hello(&self, pod_uid: &str, with: TokenUse) -> Vec<u8> {
        let expires_s = u64::try_from(now_ms() / 1000).unwrap_or(0) + TOKEN_S;
        hello(with, expires_s, &self.0.sign(&signed_bytes(with, pod_uid, expires_s)).to_bytes())
    }

    /// Returns the client's nonce and the guest's answer, which only the guest of this Pod knows.
    pub(super) fn nonces(&self, pod_uid: &str) -> ([u8; 16], [u8; 16]) {
        (self.nonce(pod_uid, "client"), self.nonce(pod_uid, "guest"))
    }

    fn nonce(&self, pod_uid: &str, role: &str) -> [u8; 16] {
        let digest = Sha256::new()
            .chain_update(NONCE_DOMAIN)
            .chain_update(self.0.as_bytes())
            .chain_update(role)
            .chain_update([0])
            .chain_update(pod_uid);
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&digest.finalize()[..16]);
        nonce
    }
}

fn unreadable(error: std::io::Error) -> Error {
    failed("read the key of Kubernetes' sandboxes", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_depends_on_the_key_and_nothing_shows_it() {
        let (one, other) =
            (ServerKey(SigningKey::from_bytes(&[1; 32])), ServerKey(SigningKey::from_bytes(&[2; 32])));
        assert_ne!(one.owner(), other.owner());
        assert_ne!(one.nonces("a"), other.nonces("a"));
        assert_ne!(one.nonces("a"), one.nonces("b"));
        assert_ne!(one.nonces("a").0, one.nonces("a").1);
        assert_eq!(format!("{one:?}"), format!("ServerKey(\"{}\")", one.owner()));
    }
}
