//! Files and folders of the host that are needed only until a command is done. A command that is killed leaves them, and the
//! next one of its kind that uses the same place removes them.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempDir};

/// A new file in a folder, for its owner alone.
pub fn partial_file(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    eyot_image::sweep_abandoned(folder, prefix)?;
    loop {
        let made = Builder::new().prefix(prefix).tempfile_in(folder)?;
        if eyot_image::keep(made.as_file(), made.path())? {
            return Ok(made);
        }
    }
}

/// A new folder in a folder, for its owner alone, which is in use as long as the file is open.
pub fn partial_folder(folder: &Path, prefix: &str) -> io::Result<(TempDir, File)> {
    eyot_image::sweep_abandoned(folder, prefix)?;
    loop {
        let made = Builder::new().prefix(prefix).tempdir_in(folder)?;
        let open = File::open(made.path())?;
        if eyot_image::keep(&open, made.path())? {
            return Ok((made, open));
        }
    }
}
