//! Packages that the tests need. If one is missing and can't be installed, its tests show as
//! ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::log::say;
use crate::process::{has, is_root, run};

/// A program that tests run inside sandboxes, and the Debian package that has it.
const NEEDED: [(&str, &str); 13] = [
    ("bash", "bash"),
    ("python3", "python3-minimal"),
    ("git", "git"),
    ("curl", "curl"),
    ("perl", "perl-base"),
    ("strace", "strace"),
    ("gdb", "gdb"),
    ("runuser", "util-linux"),
    ("ip", "iproute2"),
    ("pip3", "python3-pip"),
    ("npm", "npm"),
    ("docker-registry", "docker-registry"),
    ("mmdebstrap", "mmdebstrap"),
];

/// The packages for the virtual machine.
const NEEDED_FOR_MACHINE: [(&str, &str); 3] =
    [("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"), ("mkfs.ext4", "e2fsprogs")];

/// The packages for a Docker Engine of the tests, and its images.
const NEEDED_FOR_ENGINE: [(&str, &str); 5] = [
    ("dockerd", "docker.io"),
    ("iptables", "iptables"),
    ("mmdebstrap", "mmdebstrap"),
    ("busybox", "busybox-static"),
    ("npm", "npm"),
];

/// The packages for a Kubernetes cluster of the tests.
const NEEDED_FOR_CLUSTER: [(&str, &str); 7] = [
    ("pkill", "procps"),
    ("dpkg-source", "dpkg-dev"),
    ("openssl", "openssl"),
    ("nsenter", "util-linux"),
    ("ip", "iproute2"),
    ("mmdebstrap", "mmdebstrap"),
    ("busybox", "busybox-static"),
];

/// The packages for the clients' tests, each with its path: inside their sandboxes `python` is that
/// of `/usr/bin`.
const NEEDED_FOR_SDKS: [(&str, &str); 4] = [
    ("/usr/bin/python3", "python3"),
    ("/usr/bin/python", "python-is-python3"),
    ("npm", "npm"),
    ("/usr/bin/chromium", "chromium"),
];

/// The package for a database of the tests. Its programs are not on the path, but in a folder for each version.
const NEEDED_FOR_DATABASE: &str = "postgresql";
const DATABASE_VERSIONS: &str = "/usr/lib/postgresql";
/// Debian's settings for the database that the package makes and starts when it is installed.
const DATABASE_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";
const NO_DATABASE: &str = "# The programs alone are wanted.\ncreate_main_cluster = false\n";

/// Installs what the clients' tests need and is missing. What can't be had is an error: they are
/// never left out.
pub fn install_for_sdks() -> Result<(), String> {
    install_packages(&missing_for_sdks())?;
    require_for_sdks()
}

/// Fails where something is missing that the clients' tests need: they are never left out.
pub fn require_for_sdks() -> Result<(), String> {
    match missing_for_sdks().as_slice() {
        [] => Ok(()),
        missing => Err(format!("the clients' tests need {}: apt-get install them", missing.join(", "))),
    }
}

fn missing_for_sdks() -> Vec<&'static str> {
    let missing = NEEDED_FOR_SDKS.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package);
    missing.chain((!makes_environments()).then_some("python3-venv")).collect()
}

/// Tells whether the first Python on the path can make virtual environments, which Debian has in a
/// package of its own.
fn makes_environments() -> bool {
    Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .output()
        .is_ok_and(|said| said.status.success())
}

/// Installs what a Docker Engine needs and is missing.
pub fn install_for_engine() -> Result<(), String> {
    install_missing(&NEEDED_FOR_ENGINE)
}

/// Installs what a Kubernetes cluster needs and is missing.
pub fn install_for_cluster() -> Result<(), String> {
    install_missing(&NEEDED_FOR_CLUSTER)
}

/// Installs PostgreSQL if it is missing, where apt is and this is root. No database is made or started: tests make theirs
/// with the programs of [`database_programs`].
pub fn install_for_database() -> Result<(), String> {
    let Some(package) = missing_for_database() else { return Ok(()) };
    if !install_packages(&[package])? {
        say(format_args!("not installed: {package}; the tests that need it show as ignored"));
    }
    Ok(())
}

/// Returns PostgreSQL's package if it is missing. Where Debian's settings can't say that no database is wanted, it is not
/// installed.
fn missing_for_database() -> Option<&'static str> {
    if database_programs().is_some() {
        return None;
    }
    let settings = Path::new(DATABASE_SETTINGS);
    if is_root() && !settings.exists() {
        let folder = settings.parent().unwrap_or(settings);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(settings, NO_DATABASE));
        if let Err(error) = written {
            say(format_args!("not installed: {NEEDED_FOR_DATABASE}: write {DATABASE_SETTINGS}: {error}"));
            return None;
        }
    }
    Some(NEEDED_FOR_DATABASE)
}

/// Returns the folder of PostgreSQL's programs, those of the newest version, if it is installed.
pub fn database_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DATABASE_VERSIONS).ok()?.flatten().map(|entry| entry.path());
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let numbered = versions.filter_map(|path| Some((number(&path)?, path.join("bin"))));
    numbered.filter(|(_, programs)| programs.join("postgres").is_file()).max().map(|(_, programs)| programs)
}

/// Installs what the tests need and is missing, where apt is and this is root.
pub fn install() -> Result<(), String> {
    install_missing(&NEEDED)
}

/// Installs all that any test needs and is missing, at once, where apt is and this is root. Tests
/// whose programs can't be had show as ignored.
pub fn install_for_tests() {
    let programs = NEEDED.iter().chain(&NEEDED_FOR_ENGINE);
    let mut missing: Vec<&str> =
        programs.filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    missing.extend(missing_for_sdks());
    missing.extend(missing_for_database());
    missing.sort_unstable();
    missing.dedup();
    let reason = match install_packages(&missing) {
        Ok(true) => return,
        Ok(false) => "only root can, where apt is".to_owned(),
        Err(error) => error,
    };
    say(format_args!(
        "not installed: {}: {reason}; the tests that need them show as ignored",
        missing.join(" ")
    ));
}

/// Installs what the virtual machine needs and is missing.
pub fn install_for_machine() -> Result<(), String> {
    install_missing(&NEEDED)?;
    install_missing(&NEEDED_FOR_MACHINE)
}

fn install_missing(needed: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> =
        needed.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    if !install_packages(&missing)? {
        say(format_args!("not installed: {}; the tests that need them show as ignored", missing.join(" ")));
    }
    Ok(())
}

/// Installs these Debian packages; whether that could be tried.
fn install_packages(missing: &[&str]) -> Result<bool, String> {
    if missing.is_empty() {
        return Ok(true);
    }
    if !is_root() || !has("apt-get") {
        return Ok(false);
    }
    run(Command::new("apt-get").args(["-q", "update"]))?;
    run(Command::new("apt-get")
        .args(["-q", "-y", "-o", "DPkg::Lock::Timeout=300", "install", "--no-install-recommends"])
        .args(missing))?;
    Ok(true)
}
