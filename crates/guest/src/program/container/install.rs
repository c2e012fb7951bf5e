//! The program as a file of a Pod: an init container copies it into a directory that it shares with
//! the sandbox's container, where the sandbox's image does not bring it along.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use crate::protocol::container::GUEST_FILE;

/// Copies this program into the directory of the second argument. The file has its name when it is whole.
pub fn install() -> io::Result<ExitCode> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "which directory is it to be copied into?");
    let directory = std::env::args().nth(2).ok_or_else(missing)?;
    install_into(Path::new(&directory)).map(|()| ExitCode::SUCCESS)
}

fn install_into(directory: &Path) -> io::Result<()> {
    let draft = directory.join(format!(".{GUEST_FILE}"));
    fs::copy("/proc/self/exe", &draft)?;
    fs::set_permissions(&draft, Permissions::from_mode(0o555))?;
    fs::rename(draft, directory.join(GUEST_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_copied_whole_and_can_be_run_but_not_written() {
        let folder = tempfile::tempdir().unwrap();
        install_into(folder.path()).unwrap();
        let made = fs::metadata(folder.path().join(GUEST_FILE)).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o555);
        assert_eq!(made.len(), fs::metadata("/proc/self/exe").unwrap().len());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
