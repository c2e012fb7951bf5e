//! The programs of the cluster: Debian's packages, downloaded and unpacked but not installed, and Kubernetes,
//! built from Debian's source once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::log::say;
use crate::process::{output, run};

/// The folder of the programs. Its number changes with the lists below.
const PARTS: &str = "parts-1";
/// The packages whose programs are run.
const PACKAGES: [&str; 4] = ["etcd-server", "containerd", "runc", "containernetworking-plugins"];
/// The compiler of the source, which needs an old one.
const COMPILER: [&str; 2] = ["golang-1.19-go", "golang-1.19-src"];
const SOURCE: &str = "kubernetes";
/// The programs that are built.
const PROGRAMS: [&str; 5] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];
/// The package whose code is not in the source: it is generated from marks in the others.
const GENERATED: &str = "k8s.io/kubernetes/pkg/generated/openapi";
/// The mark of the packages that it is generated from.
const MARK: &str = "+k8s:openapi-gen=";
const LISTS: &str = "/etc/apt/sources.list";
const LISTS_FOLDER: &str = "/etc/apt/sources.list.d";

/// Returns the folder of the programs, made if it is not there: `usr` as Debian has it, and `bin` with those of Kubernetes.
pub fn ready(cache: &Path) -> Result<PathBuf, String> {
    let (parts, work) = (cache.join(PARTS), cache.join("parts.new"));
    if work.exists() {
        fs::remove_dir_all(&work).map_err(|error| format!("remove {}: {error}", work.display()))?;
    }
    if parts.is_dir() {
        return Ok(parts);
    }
    say("     Building Kubernetes of Debian's source, once: some five minutes");
    run(apt(cache).arg("update"))?;
    let made = work.join("parts");
    fs::create_dir_all(made.join("bin")).map_err(|error| format!("make {}: {error}", made.display()))?;
    unpack(&work, &PACKAGES, &made)?;
    unpack(&work, &COMPILER, &work.join("compiler"))?;
    let version = download_source(&work)?;
    build(&work, &version, &made.join("bin"))?;
    fs::rename(&made, &parts).map_err(|error| format!("keep {}: {error}", parts.display()))?;
    fs::remove_dir_all(&work).map_err(|error| format!("remove {}: {error}", work.display()))?;
    Ok(parts)
}

fn apt(folder: &Path) -> Command {
    let mut apt = Command::new("apt-get");
    // As root, because apt's own user may not write to a folder of ours.
    apt.args(["-q", "-o", "APT::Sandbox::User=root"]).current_dir(folder);
    apt
}

fn unpack(work: &Path, packages: &[&str], into: &Path) -> Result<(), String> {
    for package in packages {
        let aside = work.join("packages").join(package);
        fs::create_dir_all(&aside).map_err(|error| format!("make {}: {error}", aside.display()))?;
        run(apt(&aside).args(["download", package]))?;
        let found = fs::read_dir(&aside).map_err(|error| error.to_string())?.flatten().next();
        let archive = found.ok_or_else(|| format!("apt downloaded no {package}"))?.path();
        run(Command::new("dpkg-deb").arg("-x").arg(archive).arg(into))?;
    }
    Ok(())
}

/// Downloads and unpacks the source to the place where its build expects it. Returns its version.
fn download_source(work: &Path) -> Result<String, String> {
    let (lists, state) = (work.join("sources"), work.join("lists"));
    for folder in [&lists, &state, &work.join("go/src/k8s.io")] {
        fs::create_dir_all(folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    }
    copy_lists(&lists).map_err(|error| format!("read apt's lists: {error}"))?;
    let of_sources = |mut command: Command| {
        command.arg("-o").arg("Dir::Etc::sourcelist=/dev/null");
        command.arg("-o").arg(format!("Dir::Etc::sourceparts={}", lists.display()));
        command.arg("-o").arg(format!("Dir::State::lists={}", state.display()));
        command.args(["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]);
        command
    };
    run(of_sources(apt(work)).arg("update"))?;
    run(of_sources(apt(work)).args(["source", "--download-only", SOURCE]))?;
    let files = fs::read_dir(work).map_err(|error| error.to_string())?.flatten().map(|entry| entry.path());
    let is_description = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "dsc");
    let description = files.into_iter().find(is_description).ok_or("apt downloaded no source")?;
    run(Command::new("dpkg-source").args(["--no-check", "-x"]).arg(&description).arg(source_in(work)))?;
    let text = fs::read_to_string(&description).map_err(|error| error.to_string())?;
    version(&text).ok_or_else(|| format!("{} names no version", description.display()))
}

/// Copies apt's lists of packages as lists of sources, whose places are the same.
fn copy_lists(into: &Path) -> std::io::Result<()> {
    let folder = fs::read_dir(LISTS_FOLDER).into_iter().flatten().flatten().map(|entry| entry.path());
    for list in folder.chain([PathBuf::from(LISTS)]).filter(|path| path.is_file()) {
        let text = fs::read_to_string(&list)?;
        fs::write(into.join(list.file_name().unwrap_or_default()), of_sources(&text))?;
    }
    Ok(())
}

fn of_sources(list: &str) -> String {
    let line = |line: &str| match line.strip_prefix("deb ") {
        Some(rest) => format!("deb-src {rest}\n"),
        None if line.trim_end() == "Types: deb" => "Types: deb-src\n".to_owned(),
        None => format!("{line}\n"),
    };
    list.lines().map(line).collect()
}

/// Reads the version of Kubernetes off Debian's description: `1.20.5+really1.20.2-1.1` is 1.20.2.
fn version(description: &str) -> Option<String> {
    let line = description.lines().find_map(|line| line.strip_prefix("Version: "))?;
    let upstream = line.split('-').next()?;
    Some(upstream.rsplit("really").next()?.trim().to_owned())
}

fn source_in(work: &Path) -> PathBuf {
    work.join("go/src/k8s.io/kubernetes")
}

fn go(work: &Path) -> Command {
    let root = work.join("compiler/usr/lib/go-1.19");
    let mut go = Command::new(root.join("bin/go"));
    in_go(&mut go, work).env("GOROOT", &root);
    go
}

fn in_go<'a>(command: &'a mut Command, work: &Path) -> &'a mut Command {
    let root = work.join("compiler/usr/lib/go-1.19");
    command.current_dir(source_in(work)).env("GOROOT", &root).env("GOPATH", work.join("go"));
    command.env("GOCACHE", work.join("cache")).env("GOTOOLCHAIN", "local").env("GO111MODULE", "off");
    command.env("GOFLAGS", "").env("CGO_ENABLED", "0")
}

fn build(work: &Path, version: &str, into: &Path) -> Result<(), String> {
    generate(work)?;
    let mut build = go(work);
    build.args(["build", "-ldflags", &flags(version), "-o"]).arg(format!("{}/", into.display()));
    run(build.args(PROGRAMS.map(|program| format!("./cmd/{program}"))))
}

/// Tells the programs which version they are.
fn flags(version: &str) -> String {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let facts = [
        ("gitVersion", format!("v{version}")),
        ("gitMajor", major.to_owned()),
        ("gitMinor", minor.to_owned()),
    ];
    let places = ["client-go/pkg/version", "component-base/version"];
    let settings = places.iter().flat_map(|place| {
        facts
            .iter()
            .map(move |(name, value)| format!(" -X k8s.io/kubernetes/vendor/k8s.io/{place}.{name}={value}"))
    });
    format!("-s -w{}", settings.collect::<String>())
}

fn generate(work: &Path) -> Result<(), String> {
    let generator = work.join("openapi-gen");
    run(go(work).args(["build", "-o"]).arg(&generator).arg("./vendor/k8s.io/kube-openapi/cmd/openapi-gen"))?;
    let mut search = Command::new("grep");
    search.args(["-rl", "--include=*.go", MARK, "staging/src/k8s.io", "pkg"]).current_dir(source_in(work));
    let marked = packages_of(&output(&mut search)?).join(",");
    let mut generate = Command::new(generator);
    in_go(&mut generate, work).args([
        "--logtostderr",
        "-O",
        "zz_generated.openapi",
        "-p",
        GENERATED,
        "-i",
        &marked,
    ]);
    generate
        .args(["-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt", "-r"])
        .arg(work.join("violations"));
    run(&mut generate)
}

/// Returns the packages of these files, without those of examples, of tests and of generators.
fn packages_of(files: &str) -> Vec<String> {
    let others = ["/code-generator/", "/sample-", "_test.go", "/testdata/", "zz_generated", "kube-openapi"];
    let wanted = files.lines().filter(|file| !others.iter().any(|other| file.contains(other)));
    let folders = wanted.filter_map(|file| Path::new(file).parent()?.to_str());
    let mut packages: Vec<String> = folders
        .map(|folder| match folder.strip_prefix("staging/src/") {
            Some(staged) => format!("k8s.io/kubernetes/vendor/{staged}"),
            None => format!("k8s.io/kubernetes/{folder}"),
        })
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_packages_becomes_one_of_sources() {
        assert_eq!(
            of_sources("deb [signed-by=/k] http://d.test x main\n"),
            "deb-src [signed-by=/k] http://d.test x main\n"
        );
        assert_eq!(of_sources("Types: deb\nURIs: http://d.test\n"), "Types: deb-src\nURIs: http://d.test\n");
    }

    #[test]
    fn the_version_is_that_of_the_code() {
        let text = "Source: kubernetes\nVersion: 1.20.5+really1.20.2-1.1+deb12u1\n";
        assert_eq!(version(text).as_deref(), Some("1.20.2"));
        assert_eq!(version("Version: 1.33.1-1\n").as_deref(), Some("1.33.1"));
        assert!(flags("1.20.2").ends_with("component-base/version.gitMinor=20"));
    }

    #[test]
    fn marked_files_are_told_by_their_packages() {
        let files = "staging/src/k8s.io/api/apps/v1/doc.go\npkg/a/doc.go\npkg/a/b_test.go\npkg/a/types.go\n";
        assert_eq!(
            packages_of(files),
            ["k8s.io/kubernetes/pkg/a", "k8s.io/kubernetes/vendor/k8s.io/api/apps/v1"]
        );
    }
}
