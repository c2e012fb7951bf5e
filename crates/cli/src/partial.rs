//! Files and folders of the host that are needed only until a command is done. A killed command
//! leaves them; the next command of its kind in the same place removes them.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempDir};

/// Creates a file in a folder, for its owner alone.
pub fn partial_file(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    eyot_image::sweep_abandoned(folder, prefix)?;
    loop {
        let made = Builder::new().prefix(prefix).tempfile_in(folder)?;
        if eyot_image::keep(made.as_file(), made.path())? {
            return Ok(made);
        }
    }
}

/// Creates a folder in a folder, for its owner alone. It is in use for as long as the file is open.
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
