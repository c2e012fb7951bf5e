//! Tells builds apart: `eyot --version` prints what this finds out.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=EYOT_BUILD={}", build());
}

/// Returns the commit and its date. A debug build, which is made anew after each edit, is called by that alone: it would
/// be compiled again for each commit.
fn build() -> String {
    if std::env::var("PROFILE").as_deref() == Ok("debug") {
        return "debug build".to_owned();
    }
    commit().unwrap_or_default()
}

/// Returns `None` where there is no `git`, and in sources that are not those of a clone of this project.
fn commit() -> Option<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    let top = git(&sources, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != sources {
        return None;
    }
    // It changes with every commit and every change of branch.
    let log = git(&sources, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&sources, &["show", "--no-patch", "--abbrev=10", "--format=%h %cs", "HEAD"])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
