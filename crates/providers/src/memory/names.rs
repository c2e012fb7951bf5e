//! Names of files are bytes. Text is made of them for people, and paths for the interpreter.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

/// A name in a directory.
pub(super) type FileName = Vec<u8>;

/// The bytes, where they are no text. The contract shows text, and these beside it.
pub(super) fn odd_bytes(name: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(name).is_err().then(|| name.to_vec())
}

/// A name as it is shown.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Joins names by slashes.
pub(super) fn joined(names: &[FileName]) -> Vec<u8> {
    names.join(&b'/')
}

/// The bytes of a path of the interpreter.
#[cfg(unix)]
pub(super) fn bytes_of(path: &OsStr) -> Cow<'_, [u8]> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::as_bytes(path))
}

/// A name as the interpreter takes it.
#[cfg(unix)]
pub(super) fn os_string(name: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(name.to_vec())
}

/// The bytes of a path of the interpreter; it has no others than text here.
#[cfg(not(unix))]
pub(super) fn bytes_of(path: &OsStr) -> Cow<'_, [u8]> {
    Cow::Owned(path.to_string_lossy().replace('\\', "/").into_bytes())
}

/// A name as the interpreter takes it.
#[cfg(not(unix))]
pub(super) fn os_string(name: &[u8]) -> OsString {
    shown(name).into()
}
