//! The machine's two disks. The one with the system is made of the host's own packages, copied file
//! by file, so that the tests find the libraries that they were built with; it is kept until one of
//! the packages changes. The other has the test programs.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{COMMANDS, LEFT_OUT, SLOWNESS, Wanted, closure};
use crate::log::say;
use crate::process::{output, run};
use crate::programs::Built;

/// A small Debian, and what tests run inside sandboxes. What these depend on comes along.
const PACKAGES: [&str; 24] = [
    "base-files",
    "bash",
    "coreutils",
    "curl",
    "dash",
    "diffutils",
    "e2fsprogs",
    "findutils",
    "gdb",
    "git",
    "grep",
    "gzip",
    "hostname",
    "iproute2",
    "libgcc-s1",
    "login",
    "mount",
    "passwd",
    "perl-base",
    "procps",
    "python3-minimal",
    "strace",
    "tar",
    "util-linux",
];
/// Folders that nothing reads.
const UNREAD: [&str; 6] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/locale/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/bug/",
];
const TESTS_SH: &str = include_str!("tests.sh");
/// Room that the sandboxes of the tests have, in MiB.
const ROOM_MIB: u64 = 3072;
const USERS: [(&str, &str); 3] = [
    (
        "passwd",
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
        nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\ntester:x:1000:1000::/home/tester:/bin/bash\n",
    ),
    ("group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nshadow:x:42:\nnogroup:x:65534:\ntester:x:1000:\n"),
    ("shadow", "root:*:19000:0:99999:7:::\ntester:*:19000:0:99999:7:::\n"),
];

/// The disk with the tests.
#[derive(Debug)]
pub struct Tests {
    /// The image.
    pub disk: PathBuf,
    /// The mark at the beginning of the machine's own lines on the console.
    pub mark: String,
}

/// The disk with the system.
///
/// # Errors
/// When a package is missing, or a file can't be copied.
pub fn root(folder: &Path) -> Result<PathBuf, String> {
    let packages = closure::installed(&PACKAGES)?;
    let mut hasher = DefaultHasher::new();
    (&packages, USERS, UNREAD, ROOM_MIB).hash(&mut hasher);
    let image = folder.join(format!("root-{:016x}.img", hasher.finish()));
    if image.exists() {
        return Ok(image);
    }
    say(format_args!("     Making the machine's disk of {} packages", packages.len()));
    remove_older(folder)?;
    let tree = Tree::new(folder.join("root"))?;
    copy(&files(&packages)?, &tree.0)?;
    furnish(&tree.0).map_err(|error| format!("furnish {}: {error}", tree.0.display()))?;
    make(&image, "eyot-root", &tree.0, ROOM_MIB)?;
    Ok(image)
}

/// The disk with the test programs, `eyot`, and what is to be done with them.
///
/// # Errors
/// When a program was not built, or the disk can't be written.
pub fn tests(folder: &Path, built: &[Built], wanted: &Wanted) -> Result<Tests, String> {
    let tree = Tree::new(folder.join("tests"))?;
    let mut programs = wanted.programs();
    programs.retain(|name| !COMMANDS.contains(name));
    programs.push("eyot");
    for name in programs {
        let found = built.iter().find(|built| built.name == name && built.is_test() == (name != "eyot"));
        let found = found.ok_or_else(|| format!("there is no program `{name}`"))?;
        put(&tree.0.join(name), &read(&found.path)?, 0o755)?;
    }
    let mark = mark();
    put(&tree.0.join("settings"), settings(&mark, wanted).as_bytes(), 0o644)?;
    put(&tree.0.join("tests.sh"), TESTS_SH.as_bytes(), 0o755)?;
    let disk = folder.join("tests.img");
    make(&disk, "eyot-tests", &tree.0, 64)?;
    Ok(Tests { disk, mark })
}

/// Something that no test can guess.
fn mark() -> String {
    use std::hash::BuildHasher;
    format!("%{:016x}%", std::hash::RandomState::new().hash_one(std::process::id()))
}

fn settings(mark: &str, wanted: &Wanted) -> String {
    let skips: Vec<String> = LEFT_OUT.iter().map(|(name, _)| format!("--skip {name}")).collect();
    let runs: Vec<String> = wanted
        .runs()
        .iter()
        .map(|run| format!("'{} {} {}'", run.program, run.user, run.filter.replace(['\'', ' '], "")))
        .collect();
    format!("mark='{mark}'\nruns=({})\nskips=({})\nslowness={SLOWNESS}\n", runs.join(" "), skips.join(" "))
}

/// The packages' files, those under `/bin` and its like where they really are.
fn files(packages: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let names = packages.iter().filter_map(|package| package.split(' ').next());
    let listed = output(Command::new("dpkg-query").arg("-L").args(names))?;
    let mut files = BTreeSet::new();
    for file in listed.lines().filter(|line| line.starts_with('/') && *line != "/.") {
        let merged = ["/bin/", "/sbin/", "/lib/", "/lib64/"].iter().any(|start| file.starts_with(start));
        let file = if merged { format!("/usr{file}") } else { file.to_owned() };
        if !UNREAD.iter().any(|unread| file.starts_with(unread)) && fs::symlink_metadata(&file).is_ok() {
            files.insert(file);
        }
    }
    // Made when packages were installed, and in none of them.
    files.extend(["/etc/ld.so.cache", "/etc/alternatives"].map(str::to_owned));
    Ok(files.into_iter().collect())
}

/// Copies with owners, permissions and links. tar(1) does that, of the names that it is told and no
/// others.
fn copy(files: &[String], tree: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("copy the system: {error}");
    let mut pack = Command::new("tar");
    pack.args(["-C", "/", "--no-recursion", "-T", "-", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut packing = pack.spawn().map_err(failed)?;
    let (input, archive) = (packing.stdin.take(), packing.stdout.take());
    let (mut input, archive) = input.zip(archive).ok_or("tar has no pipes")?;
    let list: String = files.iter().map(|file| format!("{}\n", file.trim_start_matches('/'))).collect();
    let telling = std::thread::spawn(move || input.write_all(list.as_bytes()));
    run(Command::new("tar").arg("-C").arg(tree).args(["-x", "-p", "--numeric-owner"]).stdin(archive))?;
    telling.join().map_err(|_| "tar's list was not written")?.map_err(failed)?;
    if packing.wait().map_err(failed)?.success() {
        Ok(())
    } else {
        Err("copy the system: tar failed".to_owned())
    }
}

/// Adds the files that a system has beside its packages' files.
fn furnish(tree: &Path) -> std::io::Result<()> {
    for name in ["bin", "sbin", "lib", "lib64"].into_iter().filter(|name| !tree.join(name).is_symlink()) {
        symlink(format!("usr/{name}"), tree.join(name))?;
    }
    for name in
        ["dev", "proc", "sys", "run", "mnt", "tmp", "root", "home/tester", "var/tmp", "var/lib", "opt", "etc"]
    {
        fs::create_dir_all(tree.join(name))?;
    }
    for (name, content) in USERS {
        fs::write(tree.join("etc").join(name), content)?;
    }
    fs::set_permissions(tree.join("etc/shadow"), fs::Permissions::from_mode(0o600))?;
    fs::set_permissions(tree.join("root"), fs::Permissions::from_mode(0o700))?;
    fs::write(tree.join("etc/hostname"), "eyot-machine\n")?;
    fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost eyot-machine\n::1 localhost\n")?;
    fs::write(tree.join("etc/machine-id"), "0123456789abcdef0123456789abcdef\n")?;
    std::os::unix::fs::chown(tree.join("home/tester"), Some(1000), Some(1000))?;
    for name in ["tmp", "var/tmp"] {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o1777))?;
    }
    Ok(())
}

/// Makes a disk of a tree, with so much room besides.
fn make(image: &Path, label: &str, tree: &Path, room_mib: u64) -> Result<(), String> {
    let used = output(Command::new("du").args(["-sm", "--apparent-size"]).arg(tree))?;
    let used: u64 = used.split_whitespace().next().and_then(|size| size.parse().ok()).unwrap_or(0);
    let aside = image.with_extension("part");
    if aside.exists() {
        fs::remove_file(&aside).map_err(|error| format!("remove {}: {error}", aside.display()))?;
    }
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(["-q", "-L", label, "-m", "0", "-O", "^has_journal", "-d"]).arg(tree).arg(&aside);
    run(mkfs.arg(format!("{}M", used * 5 / 4 + room_mib)))?;
    fs::rename(&aside, image).map_err(|error| format!("rename {}: {error}", aside.display()))
}

fn remove_older(folder: &Path) -> Result<(), String> {
    let failed = |error| format!("remove older disks: {error}");
    for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("root-") && name.ends_with(".img") {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))
}

fn put(path: &Path, content: &[u8], mode: u32) -> Result<(), String> {
    fs::write(path, content)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(|error| format!("write {}: {error}", path.display()))
}

/// A folder that becomes a disk, and goes away then.
struct Tree(PathBuf);

impl Tree {
    fn new(path: PathBuf) -> Result<Self, String> {
        let failed = |error| format!("make {}: {error}", path.display());
        if path.exists() {
            fs::remove_dir_all(&path).map_err(failed)?;
        }
        fs::create_dir(&path).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("xtask: remove {}: {error}", self.0.display());
        }
    }
}
