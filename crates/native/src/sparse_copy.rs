//! A copy of one file's content, holes included.

use std::fs::File;
use std::io;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// The unit in which the kernel counts the blocks of a file, in bytes.
pub(crate) const BLOCK_BYTES: u64 = 512;

/// Makes an empty file a copy of another one. What a program reads never passes through this process.
pub(crate) fn copy_sparse(from: &File, to: &File) -> io::Result<()> {
    // Where the host's file system can, both share what they have until one changes.
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    to.set_len(from.metadata()?.len())?;
    let mut at = 0;
    loop {
        let start = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(from, SeekFrom::Hole(start))?;
        copy_extent(from, to, start, at)?;
    }
}

fn copy_extent(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    rustix::fs::seek(to, SeekFrom::Start(start))?;
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX);
        let copied = rustix::io::retry_on_intr(|| {
            let mut next = at;
            let copied = rustix::fs::sendfile(to, from, Some(&mut next), wanted)?;
            at = next;
            Ok(copied)
        })?;
        if copied == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn a_copy_has_the_same_bytes_and_holes() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true).open(folder.path().join(name)).unwrap()
        });
        from.set_len(64 << 20).unwrap();
        for (at, text) in [(0, "first"), (5 << 20, "second"), ((64 << 20) - 4, "last")] {
            from.write_all_at(text.as_bytes(), at).unwrap();
        }
        copy_sparse(&from, &to).unwrap();
        let [a, b] = ["from", "to"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(a == b);
        assert!(to.metadata().unwrap().blocks() * BLOCK_BYTES < 1 << 20);
    }
}
