//! The TypeScript client: its types against the API's document, its tests on the oldest
//! Node (on the newest in the soak), natively and in memory, the drop-in for Anvia on Docker and natively, and the adapter for Flue on the real
//! runtimes, with an agent on the newest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{Ground, step};
use crate::process::root;

/// The folders in which npm installs: the client's own packages, then the old runtime with the
/// newer Node, then the older Node.
const FOLDERS: [&str; 3] = ["", "test/flue-v1", "test/node-20"];

/// The folder of the newer Node.
const NEWER: &str = "test/flue-v1/node_modules/node/bin";
/// The folder of the older Node.
const OLDER: &str = "test/node-20/node_modules/node/bin";

/// Scripts of `package.json`, and which Node they run on. The soak runs [`CLIENT_ON_NEWER`], too.
const SCRIPTS: [(&str, &str); 6] = [
    ("generate:check", NEWER),
    ("test:client", OLDER),
    ("test:memory", OLDER),
    ("test:flue:v2", NEWER),
    ("test:flue:v1", NEWER),
    ("test:flue:v1:types", NEWER),
];

/// The client's own tests on the newer Node, which runs the adapter for Flue, and so the client, in
/// every run.
const CLIENT_ON_NEWER: (&str, &str) = ("test:client", NEWER);

/// Installs what it needs, and compiles it and its tests.
pub(super) fn prepare(_folder: &Path) -> Result<(), String> {
    // Once in a run: what is tested must not be compiled anew meanwhile.
    static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
    PREPARED.get_or_init(install_and_build).clone()
}

fn install_and_build() -> Result<(), String> {
    let client = client();
    FOLDERS.iter().try_for_each(|folder| install(&client.join(folder)))?;
    // What the compiler no longer writes must not be tested or packed.
    for built in ["dist", ".test-build"] {
        remove(&client.join(built))?;
    }
    run_script(Command::new("npm"), "build:test", NEWER)
}

/// Tests it, but for the drop-in.
pub(super) fn run(ground: &Ground) -> Result<(), String> {
    SCRIPTS.iter().try_for_each(|(script, node)| run_script(ground.program("npm"), script, node))
}

/// Tests the client on the Node that [`run`] leaves out.
pub(super) fn run_on_newer(ground: &Ground) -> Result<(), String> {
    let (script, node) = CLIENT_ON_NEWER;
    run_script(ground.program("npm"), script, node)
}

/// Tests the drop-in for Anvia on the older Node.
pub(super) fn run_anvia(ground: &Ground) -> Result<(), String> {
    run_script(ground.program("npm"), "test:anvia:rules", OLDER)
}

fn client() -> PathBuf {
    root().join("sdks/typescript")
}

fn run_script(mut npm: Command, script: &str, node: &str) -> Result<(), String> {
    let node = client().join(node);
    let rest = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(node.clone()).chain(env::split_paths(&rest));
    let path = env::join_paths(folders).map_err(|error| error.to_string())?;
    npm.args(["run", "--silent", script]).current_dir(client()).env("PATH", path);
    step(&format!("npm run {script} ({})", version(&node)?), &mut npm)
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
