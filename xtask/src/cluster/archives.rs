//! The images of the cluster, as archives that containerd imports: no registry is asked for anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::images;
use crate::process::{has, output, run};

/// The first container of each Pod. It does nothing until it is killed.
const PAUSE: &str = "eyot.local/pause:1";
/// A Debian with what the tests of sandboxes use, and the guest.
const SANDBOX: &str = "eyot.local/sandbox:1";
/// The guest alone, as the option `guest_image` takes it.
const GUEST: &str = "eyot.local/guest:1";
/// A server, as the Dockerfile of `contrib/container` makes it.
const EYOT: &str = "eyot.local/eyot:1";
const PACKAGES: &str = "bash,curl,git,procps,python3";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The programs of this build that are in the images.
pub struct Programs {
    /// `eyot`.
    pub eyot: PathBuf,
    /// The guest.
    pub guest: PathBuf,
}

/// Writes the archives to a folder. The Debian is made once and kept in the cache.
pub fn write(cache: &Path, folder: &Path, programs: &Programs) -> Result<(), String> {
    let debian = cache.join("debian.tar");
    if !debian.is_file() {
        let aside = cache.join("debian.new");
        let file = fs::File::create(&aside).map_err(|error| format!("make {}: {error}", aside.display()))?;
        run_into(&mut images::debian_with_user(PACKAGES, None)?, file)?;
        fs::rename(&aside, &debian).map_err(|error| format!("keep {}: {error}", debian.display()))?;
    }
    let scratch = folder.join("layers");
    remove(&scratch)?;
    let lay_out = || -> std::io::Result<()> {
        fs::create_dir_all(scratch.join("pause"))?;
        images::lay_out_busybox(&scratch.join("pause"))?;
        fs::create_dir_all(scratch.join("guest"))?;
        fs::copy(&programs.guest, scratch.join("guest/eyot-guest"))?;
        fs::create_dir_all(scratch.join("inside/.eyot-guest"))?;
        fs::copy(&programs.guest, scratch.join("inside/.eyot-guest/eyot-guest"))?;
        fs::create_dir_all(scratch.join("server/usr/local/bin"))?;
        fs::copy(&programs.eyot, scratch.join("server/usr/local/bin/eyot")).map(drop)
    };
    lay_out().map_err(|error| format!("lay out the images: {error}"))?;
    if has("strip") {
        run(Command::new("strip").arg(scratch.join("server/usr/local/bin/eyot")))?;
    }
    for name in ["pause", "guest", "inside", "server"] {
        let mut tar = Command::new("tar");
        tar.args(["--owner=0", "--group=0", "--mode=go-w", "-C"]).arg(scratch.join(name));
        run(tar.arg("-cf").arg(scratch.join(format!("{name}.tar"))).arg("."))?;
    }
    let layer = |name: &str| scratch.join(format!("{name}.tar"));
    let runs = |command: &[&str]| json!({ "Env": [PATH], "Cmd": command });
    archive(folder, PAUSE, &[&layer("pause")], runs(&["/bin/sleep", "1000000000"]))?;
    archive(folder, GUEST, &[&layer("guest")], runs(&["/eyot-guest"]))?;
    archive(folder, SANDBOX, &[&debian, &layer("inside")], runs(&["/bin/bash"]))?;
    let server = json!({
        "Env": [PATH, "EYOT_STATE=/var/lib/eyot", "HOME=/var/lib/eyot", "EYOT_LOG=warn"],
        "User": "65532:65532", "Entrypoint": ["/usr/local/bin/eyot"], "Cmd": ["serve", "--listen", "0.0.0.0:7070"],
    });
    archive(folder, EYOT, &[&debian, &layer("server")], server)?;
    remove(&scratch)
}

/// Removes a folder, which a task that was killed may have left.
fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes an image as `docker save` does it.
fn archive(folder: &Path, reference: &str, layers: &[&Path], run_as: Value) -> Result<(), String> {
    let name = reference.rsplit('/').next().unwrap_or_default().replace(':', "-");
    let aside = folder.join(&name);
    remove(&aside)?;
    fs::create_dir_all(&aside).map_err(|error| format!("make {}: {error}", aside.display()))?;
    let mut digests = Vec::new();
    let mut files = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let file = format!("{number}.tar");
        fs::hard_link(layer, aside.join(&file))
            .map_err(|error| format!("link {}: {error}", layer.display()))?;
        let said = output(Command::new("sha256sum").arg(layer))?;
        digests.push(format!("sha256:{}", said.split(' ').next().unwrap_or_default()));
        files.push(file);
    }
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": architecture, "os": "linux", "config": run_as,
        "rootfs": { "type": "layers", "diff_ids": digests },
    });
    let manifest = json!([{ "Config": "config.json", "RepoTags": [reference], "Layers": files }]);
    for (file, text) in [("config.json", config), ("manifest.json", manifest)] {
        fs::write(aside.join(file), text.to_string()).map_err(|error| format!("write {file}: {error}"))?;
    }
    run(Command::new("tar")
        .arg("-C")
        .arg(&aside)
        .arg("-cf")
        .arg(folder.join(format!("{name}.tar")))
        .arg("."))?;
    remove(&aside)
}

fn run_into(command: &mut Command, file: fs::File) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.stdin(Stdio::null()).stdout(file).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}
