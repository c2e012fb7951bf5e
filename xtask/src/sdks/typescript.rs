//! The TypeScript client: its types against the API's document, its tests on the oldest and the
//! newest Node, the drop-in for Anvia on Docker and natively, and the adapter for Flue on the real
//! runtimes, with an agent on the newest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Ground, step};
use crate::engine::Engine;
use crate::process::root;

/// The folders in which npm installs: the client's own packages, then the old runtime with the
/// newer Node, then the older Node.
const FOLDERS: [&str; 3] = ["", "test/flue-v1", "test/node-20"];

/// The folder of the newer Node.
const NEWER: &str = "test/flue-v1/node_modules/node/bin";
/// The folder of the older Node.
const OLDER: &str = "test/node-20/node_modules/node/bin";

/// Scripts of `package.json`, and which Node they run on.
const SCRIPTS: [(&str, &str); 8] = [
    ("generate:check", NEWER),
    ("build:test", NEWER),
    ("test:client", NEWER),
    ("test:client", OLDER),
    ("test:anvia:rules", OLDER),
    ("test:flue:v2", NEWER),
    ("test:flue:v1", NEWER),
    ("test:flue:v1:types", NEWER),
];

/// Installs and tests it.
pub(super) fn run(ground: &Ground) -> Result<(), String> {
    let client = root().join("sdks/typescript");
    for folder in FOLDERS {
        install(&client.join(folder))?;
    }
    let path = |node: &Path| -> Result<_, String> {
        let rest = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(node.to_owned()).chain(env::split_paths(&rest));
        env::join_paths(folders).map_err(|error| error.to_string())
    };
    // For the drop-in; without one its tests on Docker show as skipped.
    let _engine = Engine::ready();
    // What the compiler no longer writes must not be tested or packed.
    for built in ["dist", ".test-build"] {
        remove(&client.join(built))?;
    }
    let run = |script: &str, node: PathBuf| -> Result<(), String> {
        let mut npm = ground.program("npm");
        npm.args(["run", "--silent", script]).current_dir(&client).env("PATH", path(&node)?);
        step(&format!("npm run {script} ({})", version(&node)?), &mut npm)
    };
    SCRIPTS.iter().try_for_each(|(script, node)| run(script, client.join(node)))
}

/// Returns the version that a Node reports.
fn version(node: &Path) -> Result<String, String> {
    let said = crate::process::output(Command::new(node.join("node")).arg("--version"))?;
    Ok(format!("Node {}", said.trim()))
}

/// Has npm install exactly what the lock file says, unless it is there.
pub fn install(folder: &Path) -> Result<(), String> {
    let lock = folder.join("package-lock.json");
    let wanted = fs::read(&lock).map_err(|error| format!("read {}: {error}", lock.display()))?;
    let stamp = folder.join("node_modules/.installed-by-xtask");
    if fs::read(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    step("npm ci", npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder))?;
    fs::write(&stamp, wanted).map_err(|error| format!("write {}: {error}", stamp.display()))
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}
