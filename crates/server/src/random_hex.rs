//! Random secrets.

use eyot::{Error, ErrorKind, Result};

/// Returns this many random bytes, in hexadecimal.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String> {
    let mut bytes = [0_u8; BYTES];
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    if got.is_err() || got.is_ok_and(|got| got != BYTES) {
        return Err(Error::new(ErrorKind::Internal, "the system gave no random numbers"));
    }
    Ok(hex::encode(bytes))
}
