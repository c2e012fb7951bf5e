//! The page at `/`, built from `web/` into the files that the server embeds. Those are kept in the
//! repository, so that building the server takes no npm; whoever changes `web/` builds them, and
//! the check says when somebody has not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{root, target_directory};
use crate::sdks::{step, typescript};

/// The task.
pub fn run(arguments: &[String]) -> Result<(), String> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => build(&built()),
        ["--check"] => check(),
        other => Err(format!("`web` takes --check or nothing, not {}", other.join(" "))),
    }
}

/// Returns the folder of the page's source.
pub fn folder() -> PathBuf {
    root().join("web")
}

/// Returns the folder in which the server finds the built page.
fn built() -> PathBuf {
    root().join("crates/server/web-dist")
}

fn build(to: &Path) -> Result<(), String> {
    typescript::install(&folder())?;
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "build", "--", "--outDir"]).arg(to).current_dir(folder());
    step("npm run build (the page)", &mut npm)
}

/// Checks that the committed page is the built one.
pub fn check() -> Result<(), String> {
    let fresh = target_directory()?.join("web-check");
    build(&fresh)?;
    let (there, fresh) = (files(&built())?, files(&fresh)?);
    let names = there.keys().chain(fresh.keys());
    let mut stale: Vec<&str> =
        names.filter(|name| there.get(*name) != fresh.get(*name)).map(String::as_str).collect();
    stale.sort_unstable();
    stale.dedup();
    match stale.as_slice() {
        [] => Ok(()),
        stale => Err(format!(
            "crates/server/web-dist is not what web/ builds: {}; run cargo xtask web",
            stale.join(", ")
        )),
    }
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let failed = |path: &Path, error: std::io::Error| format!("read {}: {error}", path.display());
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(|error| failed(&next, error))? {
            let path = entry.map_err(|error| failed(&next, error))?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| failed(&path, error))?;
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            found.insert(name, bytes);
        }
    }
    Ok(found)
}
