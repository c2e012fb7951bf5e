//! A folder in memory for what the tests write. They make and remove many thousands of small files
//! and sync them; on a disk that takes more of the processor than the tests themselves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;

/// The file system in memory that nearly every Linux has.
const MEMORY: &str = "/dev/shm";
const MOUNTS: &str = "/proc/mounts";
/// The beginning of the folder's name; the number of the process that made it follows.
const PREFIX: &str = "eyot-xtask-";
/// The memory that must be free, and the space in the file system. A whole run needs less than half.
const MIN_FREE_KIB: u64 = 6 << 20;
/// The first kernel whose file system in memory keeps users' extended attributes. Layers need them.
const MIN_KERNEL: (u32, u32) = (6, 6);

/// A folder that is removed with this value.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one, or returns `None` where `TMPDIR` names another place or memory is not fit for it.
    /// What runs that were killed left there is removed.
    pub fn new() -> Option<Self> {
        if std::env::var_os("TMPDIR").is_some() {
            return None;
        }
        if let Err(reason) = unfit() {
            println!("     The tests write to the disk, which is slower: {reason}");
            return None;
        }
        remove_abandoned();
        let path = Path::new(MEMORY).join(format!("{PREFIX}{}", std::process::id()));
        // Programs that run as another user write there, too.
        let made =
            fs::create_dir(&path).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o1777)));
        match made {
            Ok(()) => Some(Self { path }),
            Err(error) => {
                println!("     The tests write to the disk, which is slower: {}: {error}", path.display());
                None
            }
        }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has a command keep its temporary files here.
    pub fn set(&self, command: &mut Command) {
        command.env("TMPDIR", &self.path);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            eprintln!("xtask: remove {}: {error}", self.path.display());
        }
    }
}

/// Removes a scratch folder. Tests leave folders that are closed to their owner, as the kernel's own
/// work folder of an overlay is: only root removes those as they are.
fn remove(folder: &Path) -> std::io::Result<()> {
    fs::remove_dir_all(folder).or_else(|_| {
        Command::new("chmod").args(["-R", "u+rwx"]).arg(folder).status()?;
        fs::remove_dir_all(folder)
    })
}

/// Says why memory is no place for the tests.
fn unfit() -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("read {path}: {error}"));
    is_mounted_for_programs(&read(MOUNTS)?)?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    if version(&kernel) < Some(MIN_KERNEL) {
        return Err(format!("Linux {} keeps no extended attributes in memory", kernel.trim()));
    }
    let free = free_kib(&read("/proc/meminfo")?).unwrap_or(0).min(space_kib()?);
    if free < MIN_FREE_KIB {
        return Err(format!("{} MiB of memory are free; it takes {}", free >> 10, MIN_FREE_KIB >> 10));
    }
    Ok(())
}

fn is_mounted_for_programs(mounts: &str) -> Result<(), String> {
    let options = options(mounts).ok_or_else(|| format!("{MEMORY} is not in memory"))?;
    match options.split(',').find(|option| *option == "noexec") {
        Some(_) => Err(format!("no program may run in {MEMORY}")),
        None => Ok(()),
    }
}

/// Tells whether a scratch folder may hold device nodes, as the root of a Debian does.
pub fn has_devices() -> bool {
    let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
    options(&mounts).is_some_and(|options| !options.split(',').any(|option| option == "nodev"))
}

/// Returns the options of the file system in memory.
fn options(mounts: &str) -> Option<&str> {
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    match lines.rfind(|fields| fields.get(1) == Some(&MEMORY))?.as_slice() {
        [_, _, "tmpfs", options, ..] => Some(options),
        _ => None,
    }
}

fn version(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn free_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn space_kib() -> Result<u64, String> {
    let said = output(Command::new("df").args(["-k", "--output=avail", MEMORY]))?;
    let last = said.lines().last().unwrap_or_default().trim();
    last.parse().map_err(|_| format!("df says `{last}` of {MEMORY}"))
}

/// Removes the folders of processes that have ended.
fn remove_abandoned() {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let has_ended = |process: &str| !Path::new("/proc").join(process).exists();
        if process.is_some_and(has_ended)
            && let Err(error) = remove(&entry.path())
        {
            eprintln!("xtask: remove {}: {error}", entry.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_is_not_in_memory_or_runs_no_programs_is_unfit() {
        assert!(is_mounted_for_programs("tmpfs /dev/shm tmpfs rw,nosuid 0 0\n").is_ok());
        assert!(is_mounted_for_programs("tmpfs /dev/shm tmpfs rw,noexec 0 0\n").is_err());
        assert!(is_mounted_for_programs("/dev/sda1 / ext4 rw 0 0\n").is_err());
        assert!(is_mounted_for_programs("tmpfs /dev/shm tmpfs rw 0 0\nx /dev/shm ext4 rw 0 0\n").is_err());
    }

    #[test]
    fn a_kernels_version_is_compared_by_its_numbers() {
        assert!(version("6.18.44-fc") > Some(MIN_KERNEL) && version("6.1.0-18-amd64") < Some(MIN_KERNEL));
        assert_eq!(version("unknown"), None);
        assert_eq!(free_kib("MemTotal: 9 kB\nMemAvailable:   8123 kB\n"), Some(8123));
    }
}
