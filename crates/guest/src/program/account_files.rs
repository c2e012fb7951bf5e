//! The sandbox's own `passwd` and `group`, as they are now. Root inside can replace them with
//! anything. So only a regular file is opened, nothing is waited for, and the length is bounded.

use std::io::Read;

use super::files::open_regular;

/// The list of users.
pub const PASSWD: &str = "/etc/passwd";
/// The list of groups.
pub const GROUP: &str = "/etc/group";

/// The most that is read of either, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Reads one of the files. The text is empty if there is no file, and bytes that are not UTF-8 are
/// replaced. It reads no more than the file's size. Files that the kernel makes up while they are
/// read, some of which keep a reader waiting, have size 0.
///
/// # Errors
/// A sentence: it is not a regular file, can't be read, or is longer than 1 MiB.
pub fn read(path: &str) -> Result<String, String> {
    let Some((file, size)) = open_regular(path).map_err(|reason| sentence(path, reason))? else {
        return Ok(String::new());
    };
    if size > MOST_BYTES {
        return Err(sentence(path, format!("is longer than {MOST_BYTES} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes).map_err(|error| sentence(path, error))?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn sentence(path: &str, reason: impl std::fmt::Display) -> String {
    format!("look for the user in the sandbox's `{path}`: {reason}")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> String {
            self.0.path().join(name).to_str().unwrap().to_owned()
        }
    }

    #[test]
    fn what_is_no_text_is_replaced_and_what_is_missing_is_empty() {
        let folder = Folder::new();
        fs::write(folder.path("f"), b"caf\xe9:x\n").unwrap();
        assert_eq!(read(&folder.path("f")).unwrap(), "caf\u{fffd}:x\n");
        assert_eq!(read(&folder.path("none")).unwrap(), "");
    }

    #[test]
    fn a_file_is_read_up_to_the_limit_and_not_beyond() {
        let folder = Folder::new();
        let file = File::create(folder.path("f")).unwrap();
        file.set_len(MOST_BYTES).unwrap();
        assert_eq!(read(&folder.path("f")).unwrap().len() as u64, MOST_BYTES);
        file.set_len(MOST_BYTES + 1).unwrap();
        assert!(read(&folder.path("f")).unwrap_err().contains("longer than"));
    }

    #[test]
    fn what_is_not_a_regular_file_is_not_opened() {
        let folder = Folder::new();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.path("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
        symlink("/dev/zero", folder.path("device")).unwrap();
        symlink("loop", folder.path("loop")).unwrap();
        for name in ["fifo", "device", "loop", ""] {
            assert!(read(&folder.path(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn what_the_kernel_makes_up_is_empty() {
        let folder = Folder::new();
        symlink("/proc/self/status", folder.path("f")).unwrap();
        assert_eq!(read(&folder.path("f")).unwrap(), "");
    }
}
