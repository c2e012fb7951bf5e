//! Repair of a disk whose host went down while it was mounted. Its file system has no journal, so
//! it is checked before it is mounted again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The offset of `s_state` in the image, in bytes. Its bit [`IS_CLEAN`] says that the file system was
/// unmounted.
const STATE_AT: u64 = 1024 + 0x3A;
const IS_CLEAN: u16 = 1;
/// The bits of `fsck`'s exit code that mean that everything was repaired.
const MENDED: i32 = 1 | 2;

/// Repairs the file system in an image if it was not unmounted cleanly. Nothing may have it
/// mounted.
pub(super) fn mend_if_unclean(image: &File, path: &Path, mkfs: &Path) -> io::Result<()> {
    let mut state = [0; 2];
    image.read_exact_at(&mut state, STATE_AT)?;
    if u16::from_le_bytes(state) & IS_CLEAN != 0 {
        return Ok(());
    }
    // They come in one package.
    let mut command = Command::new(mkfs.with_file_name("fsck.ext4"));
    let output = command.arg("-fy").arg(path).env_clear().stdin(Stdio::null()).output()?;
    match output.status.code() {
        Some(code) if code & !MENDED == 0 => Ok(()),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("fsck.ext4: {}: {}", output.status, said.trim())))
        }
    }
}
