//! Reading files of an image from the host. The links in an image are hostile: they are resolved
//! inside it, and only small regular files are read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::Lower;

/// The most that is read of one file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the text of a file in an image, with links resolved as if the image were `/`. A missing
/// file gives an empty text.
///
/// # Errors
/// If it is not a regular file, is longer than 1 MiB, is not UTF-8, or can't be read.
pub(crate) fn read_of_image(lower: &Lower, relative: &str) -> io::Result<String> {
    // Only looked at until it is known to be a file: opening a device or a FIFO would already do something.
    let found = match lower.find(relative) {
        Err(Errno::NOENT) => return Ok(String::new()),
        found => found?,
    };
    if !fs::metadata(handle(&found))?.is_file() {
        return Err(io::Error::other(format!("/{relative} of the image is not a regular file")));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(CWD, handle(&found), flags, Mode::empty())?);
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("/{relative} of the image is longer than 1 MiB")));
    }
    Ok(text)
}

/// Returns a path to exactly the file that is open, even if another file has its name by now.
pub(super) fn handle(open: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(lower: &std::path::Path, relative: &str) -> io::Result<String> {
        read_of_image(&Lower::one(lower.to_str().unwrap()), relative)
    }

    fn image() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let lower = folder.path().join("lower");
        fs::create_dir_all(lower.join("etc")).unwrap();
        (folder, lower)
    }

    #[test]
    fn a_link_of_the_image_leads_nowhere_but_inside_it() {
        let (folder, lower) = image();
        let secret = folder.path().join("secret");
        fs::write(&secret, "host").unwrap();
        symlink(&secret, lower.join("etc/passwd")).unwrap();
        symlink("../../secret", lower.join("etc/group")).unwrap();
        for file in ["etc/passwd", "etc/group"] {
            assert_eq!(read(&lower, file).unwrap(), "", "{file}");
        }
        fs::write(lower.join("real"), "inside").unwrap();
        symlink("/real", lower.join("etc/linked")).unwrap();
        assert_eq!(read(&lower, "etc/linked").unwrap(), "inside");
    }

    #[test]
    fn what_is_no_small_regular_file_is_an_error() {
        let (_folder, lower) = image();
        let fifo = lower.join("etc/fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(lower.join("etc/long"), vec![b'a'; (1 << 20) + 1]).unwrap();
        fs::write(lower.join("etc/full"), vec![b'a'; 1 << 20]).unwrap();
        fs::write(lower.join("etc/binary"), [0xff]).unwrap();
        symlink("loop", lower.join("etc/loop")).unwrap();
        for file in ["etc", "etc/fifo", "etc/long", "etc/binary", "etc/loop", "etc/full/x"] {
            assert!(read(&lower, file).is_err(), "{file}");
        }
        assert_eq!(read(&lower, "etc/full").unwrap().len(), 1 << 20);
        assert_eq!(read(&lower, "nowhere/passwd").unwrap(), "");
    }
}
