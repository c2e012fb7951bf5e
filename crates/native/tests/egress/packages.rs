//! The usual reasons for a network: packages from an index, a clone, a download. All servers are
//! the test's own.

use std::path::Path;
use std::process::Command;

use crate::world::{Check, World, cases, ensure, said};

cases! {
    n01_pip_installs_from_an_index_and_the_same_sandbox_reaches_no_canary needs "pip3";
    n01_npm_installs_from_a_registry needs "npm", "node";
    n01_git_clones_over_http needs "git";
    n01_apt_downloads_through_the_proxy needs "apt-helper";
}

/// Makes a wheel, an index that lists it, a tarball and a registry that lists it.
const PACK: &str = r#"
import base64, hashlib, io, json, os, sys, tarfile, zipfile
os.chdir(sys.argv[1])
for folder in ("simple/eyot-tiny", "packages", "npm", "debian"): os.makedirs(folder, exist_ok=True)
wheel = "packages/eyot_tiny-1.0.0-py3-none-any.whl"
files = {
    "eyot_tiny.py": "WORD = 'tiny'\n",
    "eyot_tiny-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: eyot-tiny\nVersion: 1.0.0\n",
    "eyot_tiny-1.0.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
with zipfile.ZipFile(wheel, "w") as z:
    for name, text in files.items(): z.writestr(name, text)
    z.writestr("eyot_tiny-1.0.0.dist-info/RECORD", "".join(f"{n},,\n" for n in files) + "eyot_tiny-1.0.0.dist-info/RECORD,,\n")
open("simple/eyot-tiny/index.html", "w").write('<a href="/packages/eyot_tiny-1.0.0-py3-none-any.whl">eyot_tiny-1.0.0-py3-none-any.whl</a>')
manifest = {"name": "eyot-tiny", "version": "1.0.0", "main": "index.js"}
with tarfile.open("npm/eyot-tiny-1.0.0.tgz", "w:gz") as t:
    for name, text in (("package.json", json.dumps(manifest)), ("index.js", "module.exports = 'tiny'\n")):
        info = tarfile.TarInfo("package/" + name)
        info.size = len(text)
        t.addfile(info, io.BytesIO(text.encode()))
content = open("npm/eyot-tiny-1.0.0.tgz", "rb").read()
dist = {"tarball": "http://index.test/npm/eyot-tiny-1.0.0.tgz", "shasum": hashlib.sha1(content).hexdigest(),
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()}
open("npm/eyot-tiny", "w").write(json.dumps(
    {"name": "eyot-tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {**manifest, "dist": dist}}}))
open("debian/file", "w").write("a file of debian\n")
"#;

fn pack(www: &Path) -> Check {
    let status = Command::new("python3").arg("-c").arg(PACK).arg(www).status()?;
    ensure!(status.success(), "the packages can't be made");
    Ok(())
}

async fn n01_pip_installs_from_an_index_and_the_same_sandbox_reaches_no_canary(world: World) -> Check {
    pack(&world.www()?)?;
    let sandbox = world.sandbox(&[]).await?;
    let install = "python3 -m pip install --no-input --disable-pip-version-check --break-system-packages --user \
                   --index-url http://index.test/simple --trusted-host index.test eyot-tiny 2>&1 \
                   && python3 -c 'import eyot_tiny; print(eyot_tiny.WORD)'";
    let answer = said(&sandbox, install).await?;
    ensure!(answer.trim_end().ends_with("tiny"), "{answer}");
    let line = format!(
        "PORT={} python3 try.py 127.0.0.1 10.200.0.1 10.200.0.2 169.254.169.254 ten.test loop.test",
        world.canary_port()?
    );
    let answer = said(&sandbox, &line).await?;
    ensure!(answer.matches(" 403 403 2").count() == 6, "{answer}");
    world.ensure_canary_lives()?;
    Ok(sandbox.destroy().await?)
}

async fn n01_npm_installs_from_a_registry(world: World) -> Check {
    pack(&world.www()?)?;
    let sandbox = world.sandbox(&["index.test:80"]).await?;
    let install = "npm install --no-audit --no-fund --registry http://index.test/npm/ eyot-tiny 2>&1 \
                   && node -e 'console.log(require(\"eyot-tiny\"))'";
    let answer = said(&sandbox, install).await?;
    ensure!(answer.trim_end().ends_with("tiny"), "{answer}");
    ensure!(!world.hits("GET /npm/eyot-tiny-1.0.0.tgz")?.is_empty(), "npm had it from elsewhere");
    Ok(sandbox.destroy().await?)
}

async fn n01_git_clones_over_http(world: World) -> Check {
    let www = world.www()?;
    let make = "set -e; rm -rf repo repo.git; git init -q repo; cd repo; echo cloned > file; git add file; \
                git -c user.name=t -c user.email=t@test commit -qm one; cd ..; git clone -q --bare repo repo.git; \
                cd repo.git; git update-server-info";
    let status = Command::new("sh").args(["-c", make]).current_dir(&www).status()?;
    ensure!(status.success(), "the repository can't be made");
    let sandbox = world.sandbox(&["pub.test"]).await?;
    let answer = said(&sandbox, "git clone -q http://pub.test/repo.git && cat repo/file").await?;
    ensure!(answer.ends_with("cloned\n"), "{answer}");
    let answer = said(&sandbox, "git clone -q http://other.test/repo.git again 2>&1").await?;
    ensure!(answer.contains("403"), "{answer}");
    Ok(sandbox.destroy().await?)
}

async fn n01_apt_downloads_through_the_proxy(world: World) -> Check {
    pack(&world.www()?)?;
    let sandbox = world.sandbox(&["pub.test:80"]).await?;
    let line = "/usr/lib/apt/apt-helper -o APT::Sandbox::User=user download-file http://pub.test/debian/file got 2>&1; cat got";
    let answer = said(&sandbox, line).await?;
    ensure!(answer.ends_with("a file of debian\n"), "{answer}");
    Ok(sandbox.destroy().await?)
}
