//! The initial file system of the kernel: busybox, the modules, and a script that finds the real
//! disks.

use std::fs;
use std::path::{Path, PathBuf};

use super::cpio::Archive;
use super::kernel::Kernel;
use super::modules;

const INIT: &str = include_str!("init.sh");

/// Writes the archive and says where it is.
///
/// # Errors
/// A module or busybox that can't be read, an archive that can't be written.
pub fn write(folder: &Path, kernel: &Kernel) -> Result<PathBuf, String> {
    let mut archive = Archive::default();
    for directory in ["bin", "dev", "proc", "sys", "root", "modules"] {
        archive.directory(directory);
    }
    // Without it the first program has nowhere to write to.
    archive.device("dev/console", 5, 1);
    archive.program("bin/busybox", &read(&busybox()?)?);
    archive.program("init", INIT.as_bytes());
    for (index, (name, path)) in modules::in_order(&kernel.modules)?.into_iter().enumerate() {
        archive.program(&format!("modules/{index:02}-{name}.ko"), &read(&path)?);
    }
    let path = folder.join("initramfs");
    fs::write(&path, archive.finish()).map_err(|error| format!("write {}: {error}", path.display()))?;
    Ok(path)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))
}

fn busybox() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("busybox")).find(|file| file.is_file());
    found.ok_or_else(|| "there is no busybox here".to_owned())
}
