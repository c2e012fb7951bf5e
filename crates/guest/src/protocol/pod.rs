//! The contract of a guest in a Pod of Kubernetes, beyond that of a [container](super::container).
//!
//! The Pod's program is `<GUEST_DIR>/eyot-guest pod`. It listens on one TCP port. A client sends
//! [`hello`]: a token that a server has signed, for this Pod and for minutes. The guest knows the
//! public key and the Pod's uid, so no secret lies in the Pod. It answers with one byte: the
//! relay's first one, [`TOKEN_REFUSED`] or [`NOT_MADE`]. Everything after that is the same as through a relay.

/// The argument that makes the program the first one of a Pod.
pub const POD: &str = "pod";
/// The argument that makes the program copy itself into the directory that follows, from an init container.
pub const INSTALL: &str = "install";

/// The port of a Pod on which its guest listens.
pub const GUEST_PORT: u16 = 17_770;
/// The variable with the Pod's uid.
pub const UID_VARIABLE: &str = "EYOT_POD_UID";
/// The variable with the public key of the servers, as hexadecimal digits.
pub const KEY_VARIABLE: &str = "EYOT_PUBLIC_KEY";

/// The size of a public key, in bytes.
pub const KEY_BYTES: usize = 32;
/// The size of a signature, in bytes.
pub const SIGNATURE_BYTES: usize = 64;
/// The size of the first message of a client, in bytes.
pub const HELLO_BYTES: usize = MAGIC.len() + 1 + 8 + SIGNATURE_BYTES;
/// The longest time for which a token may be valid, in seconds.
pub const MAX_TOKEN_S: u64 = 300;

/// The answer to a token that is not valid for this Pod.
pub const TOKEN_REFUSED: u8 = b'x';
/// The answer to a token to connect with, while the guest waits for its configuration.
pub const NOT_MADE: u8 = b'u';

/// The first bytes of every client.
const MAGIC: [u8; 8] = *b"eyotpod1";
/// Separates these signatures from every other use of the key.
const DOMAIN: &[u8] = b"eyot pod token 1";

/// The use that a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// To bring the configuration, once, to the guest of a Pod that was just made; or to connect to it.
    Make,
    /// To connect to a guest that has its configuration.
    Connect,
}

impl TokenUse {
    const fn byte(self) -> u8 {
        match self {
            Self::Make => b'm',
            Self::Connect => b'c',
        }
    }

    const fn of(byte: u8) -> Option<Self> {
        match byte {
            b'm' => Some(Self::Make),
            b'c' => Some(Self::Connect),
            _ => None,
        }
    }
}

/// A token, as a client shows it in its first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodToken {
    /// The use that it is for.
    pub token_use: TokenUse,
    /// The time at which it expires, in seconds since 1970.
    pub expires_s: u64,
    /// The signature of a server.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// Returns the bytes that a server signs.
pub fn signed_bytes(token_use: TokenUse, pod_uid: &str, expires_s: u64) -> Vec<u8> {
    [DOMAIN, &[token_use.byte()], &expires_s.to_le_bytes(), pod_uid.as_bytes()].concat()
}

/// Returns the first message of a client.
pub fn hello(token_use: TokenUse, expires_s: u64, signature: &[u8; SIGNATURE_BYTES]) -> Vec<u8> {
    [&MAGIC[..], &[token_use.byte()], &expires_s.to_le_bytes(), signature].concat()
}

/// Reads the first message of a client.
pub fn read_hello(bytes: &[u8; HELLO_BYTES]) -> Option<PodToken> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (use_byte, rest) = rest.split_first()?;
    let (expires, signature) = rest.split_first_chunk::<8>()?;
    let (token_use, expires_s) = (TokenUse::of(*use_byte)?, u64::from_le_bytes(*expires));
    Some(PodToken { token_use, expires_s, signature: signature.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_was_written_and_other_bytes_are_none() {
        for token_use in [TokenUse::Make, TokenUse::Connect] {
            let written = hello(token_use, 1_234, &[7; SIGNATURE_BYTES]);
            let bytes: [u8; HELLO_BYTES] = written.try_into().unwrap();
            let read = PodToken { token_use, expires_s: 1_234, signature: [7; SIGNATURE_BYTES] };
            assert_eq!(read_hello(&bytes), Some(read));
        }
        assert_eq!(read_hello(&[0; HELLO_BYTES]), None);
    }

    #[test]
    fn another_pod_another_time_or_another_use_is_another_text() {
        let signed = signed_bytes(TokenUse::Make, "a", 1);
        assert_ne!(signed, signed_bytes(TokenUse::Make, "b", 1));
        assert_ne!(signed, signed_bytes(TokenUse::Make, "a", 2));
        assert_ne!(signed, signed_bytes(TokenUse::Connect, "a", 1));
    }
}
