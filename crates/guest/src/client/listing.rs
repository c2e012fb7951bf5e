//! The entries of a directory, which come in chunks. Names are checked, because programs that copy
//! a tree out join them to paths of the host.

use std::future::poll_fn;

use eyot::{DirEntry, Error, ErrorKind, MAX_NAME_BYTES, Result};

use super::call::Call;
use super::convert::dir_entry;
use crate::protocol::{FileEntry, decode};

/// The most entries that a listing may have.
const MAX_ENTRIES: usize = 1_000_000;

/// Why a listing can't be had.
pub(super) enum ListingError {
    /// As the error says.
    Failed(Error),
    /// The guest sent what no directory can hold.
    Broken(String),
}

/// The entries of a call that has been opened, in the order in which they come.
pub(super) async fn collect(call: &Call) -> Result<Vec<DirEntry>, ListingError> {
    let mut entries = Vec::new();
    while let Some(piece) = poll_fn(|context| call.poll_piece(context)).await {
        let chunk: Vec<FileEntry> = decode(&piece.bytes).map_err(ListingError::Broken)?;
        if entries.len() + chunk.len() > MAX_ENTRIES {
            let message = format!("the directory has more than {MAX_ENTRIES} entries");
            return Err(ListingError::Failed(Error::new(ErrorKind::TooLarge, message)));
        }
        chunk.iter().try_for_each(check_name)?;
        entries.extend(chunk.into_iter().map(dir_entry));
    }
    call.reply().await.map_err(ListingError::Failed)?;
    Ok(entries)
}

fn check_name(entry: &FileEntry) -> Result<(), ListingError> {
    let name = entry.name.as_slice();
    let special = matches!(name, b"" | b"." | b"..") || name.iter().any(|byte| matches!(byte, b'/' | 0));
    if special || name.len() > MAX_NAME_BYTES {
        Err(ListingError::Broken("a listing with a name that no file can have".to_owned()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileKind;

    #[test]
    fn names_that_no_directory_can_hold_are_refused() {
        let check =
            |name: &[u8]| check_name(&FileEntry { name: name.to_vec(), kind: FileKind::File, size: 0 });
        for name in [&b""[..], b".", b"..", b"a/b", b"../../etc/passwd", b"a\0", &[b'x'; 256]] {
            assert!(check(name).is_err(), "{name:?}");
        }
        for name in [&b"..."[..], b"a b", b"\xff\xfe", b"new\nline", &[b'x'; 255]] {
            assert!(check(name).is_ok(), "{name:?}");
        }
    }
}
