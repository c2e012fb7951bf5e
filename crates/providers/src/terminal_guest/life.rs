//! One guest of a sandbox, and the secret by which it is reached.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The secret that both sides of a stream to a guest must know. The debug form hides it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestSecret {
    client: [u8; 16],
    guest: [u8; 16],
}

impl GuestSecret {
    fn generate() -> Self {
        let (client, guest) = (*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes());
        Self { client, guest }
    }

    /// Returns the client's nonce and the guest's.
    pub fn nonces(&self) -> ([u8; 16], [u8; 16]) {
        (self.client, self.guest)
    }
}

impl fmt::Debug for GuestSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuestSecret")
    }
}

/// One guest of a sandbox: the first, or one that was started when that had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestLife {
    /// A text of this guest's alone: letters and digits.
    pub key: String,
    pub secret: GuestSecret,
}

impl GuestLife {
    pub fn generate() -> Self {
        Self { key: Uuid::new_v4().simple().to_string(), secret: GuestSecret::generate() }
    }

    /// Returns the directory of the guest in its sandbox.
    pub fn directory(&self) -> String {
        format!("/tmp/.eyot-{}", self.key)
    }
}
