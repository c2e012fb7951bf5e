//! The contract of a guest in a Pod of Kubernetes, beyond that of a [container](super::container).
//!
//! The Pod's program is `<GUEST_DIR>/eyot-guest pod`. It listens on one TCP port. A client sends
//! [`hello`]: a token that a server has signed, for this Pod and for minutes. The guest knows the
//! public key and the Pod's uid, so no secret lies in the Pod. It answers with one byte: the
//! relay's first one, or [`TOKEN_REFUSED`]. Everything after that is the same as through a relay.

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
pub const HELLO_BYTES: usize = MAGIC.len() + 8 + SIGNATURE_BYTES;
/// The longest time for which a token may be valid, in seconds.
pub const MAX_TOKEN_S: u64 = 300;

/// The answer to a token that is not valid for this Pod.
pub const TOKEN_REFUSED: u8 = b'x';

/// The first bytes of every client.
const MAGIC: [u8; 8] = *b"eyotpod1";
/// Separates these signatures from every other use of the key.
const DOMAIN: &[u8] = b"eyot pod token 1";

/// Returns the bytes that a server signs.
pub fn signed_bytes(pod_uid: &str, expires_s: u64) -> Vec<u8> {
    [DOMAIN, &expires_s.to_le_bytes(), pod_uid.as_bytes()].concat()
}

/// Returns the first message of a client.
pub fn hello(expires_s: u64, signature: &[u8; SIGNATURE_BYTES]) -> Vec<u8> {
    [&MAGIC[..], &expires_s.to_le_bytes(), signature].concat()
}

/// Reads the first message of a client: when its token expires, and the signature.
pub fn read_hello(bytes: &[u8; HELLO_BYTES]) -> Option<(u64, [u8; SIGNATURE_BYTES])> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (expires, signature) = rest.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*expires), signature.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_was_written_and_other_bytes_are_none() {
        let written = hello(1_234, &[7; SIGNATURE_BYTES]);
        let bytes: [u8; HELLO_BYTES] = written.try_into().unwrap();
        assert_eq!(read_hello(&bytes), Some((1_234, [7; SIGNATURE_BYTES])));
        assert_eq!(read_hello(&[0; HELLO_BYTES]), None);
    }

    #[test]
    fn another_pod_or_another_time_is_another_text() {
        assert_ne!(signed_bytes("a", 1), signed_bytes("b", 1));
        assert_ne!(signed_bytes("a", 1), signed_bytes("a", 2));
    }
}
