//! Debian's cloud kernel: downloaded by apt and unpacked into a folder of ours. It is never
//! installed; the host keeps its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::log::say;
use crate::process::{output, run};

/// The package that depends on the newest kernel of its kind.
const PACKAGE: &str = "linux-image-cloud-amd64";

/// An unpacked kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The image that QEMU boots.
    pub image: PathBuf,
    /// The folder of its modules.
    pub modules: PathBuf,
}

/// The kernel, from the last run or downloaded.
///
/// # Errors
/// When apt knows none, can't download it, or it can't be unpacked.
pub fn kernel(folder: &Path) -> Result<Kernel, String> {
    let name = newest()?;
    let unpacked = folder.join(&name);
    if !unpacked.join("boot").is_dir() {
        download(folder, &name, &unpacked)?;
    }
    let version = name.trim_start_matches("linux-image-");
    say(format_args!("     Kernel: {version}"));
    Ok(Kernel {
        image: unpacked.join(format!("boot/vmlinuz-{version}")),
        modules: unpacked.join(format!("lib/modules/{version}")),
    })
}

fn newest() -> Result<String, String> {
    let depends = output(Command::new("apt-cache").args(["depends", PACKAGE]))?;
    let kernel = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    kernel.map(|version| format!("linux-image-{version}")).ok_or_else(|| {
        format!("apt knows no {PACKAGE} here: the machine needs a Debian host, and `apt-get update` first")
    })
}

fn download(folder: &Path, name: &str, unpacked: &Path) -> Result<(), String> {
    let aside = folder.join(format!("{name}.download"));
    let failed = |error| format!("unpack {name}: {error}");
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(failed)?;
    }
    fs::create_dir(&aside).map_err(failed)?;
    // As root, because apt's own user may not write to a folder of ours.
    let mut apt = Command::new("apt-get");
    run(apt.args(["-q", "-o", "APT::Sandbox::User=root", "download", name]).current_dir(&aside))?;
    let package = fs::read_dir(&aside).map_err(failed)?.flatten().map(|entry| entry.path()).next();
    let package = package.ok_or_else(|| format!("apt downloaded no {name}"))?;
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(aside.join("unpacked")))?;
    fs::rename(aside.join("unpacked"), unpacked).map_err(failed)?;
    fs::remove_dir_all(&aside).map_err(failed)
}
