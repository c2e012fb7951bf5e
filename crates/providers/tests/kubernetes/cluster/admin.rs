//! The cluster's administrator: `kubectl`, and orders to its node.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use super::{Cluster, NAMESPACE};

/// The manifests: the rights of the provider, and the policies of its Pods.
const MANIFESTS: [&str; 3] = ["role.yaml", "port-forward.yaml", "network.yaml"];
/// The account in them.
const ACCOUNT: &str = "eyot";
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `kubectl` and returns what it says.
pub fn kubectl<const N: usize>(arguments: [&str; N]) -> Result<String, String> {
    run_kubectl(&arguments, "")
}

/// Gives `kubectl` a manifest.
pub fn apply(manifest: &Value) -> Result<(), String> {
    apply_text(&manifest.to_string())
}

/// Gives `kubectl` manifests as they stand in a file.
pub fn apply_text(manifests: &str) -> Result<(), String> {
    run_kubectl(&["apply", "-f", "-"], manifests).map(drop)
}

/// Returns the path of a file of `contrib/kubernetes`.
pub fn contributed(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/kubernetes").join(file)
}

/// Runs `kubectl` with an input.
pub fn run_kubectl(arguments: &[&str], input: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("kubectl {arguments:?}: {error}");
    let mut command = Command::new("kubectl");
    // Not in the home directory of whoever runs the tests.
    command.arg("--cache-dir").arg(std::env::temp_dir().join("kubectl-cache"));
    command.args(["--namespace", NAMESPACE]).args(arguments).stdin(Stdio::piped());
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(mut stdin) = running.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let done = running.wait_with_output().map_err(failed)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() {
        Ok(text(&done.stdout))
    } else {
        Err(format!("kubectl {arguments:?}: {}", text(&done.stderr)))
    }
}

/// Applies the manifests of `contrib/kubernetes` as they are.
pub fn apply_manifests() {
    for manifest in MANIFESTS {
        kubectl(["apply", "-f", &contributed(manifest).to_string_lossy()])
            .expect("a manifest that can be applied");
    }
}

/// Writes a file with which the account of the manifests is used.
pub fn write_kubeconfig(path: &Path) {
    let mut config: Value =
        serde_json::from_str(&kubectl(["config", "view", "--raw", "-o", "json"]).expect("a configuration"))
            .expect("JSON");
    config["users"][0]["user"] = json!({ "token": token() });
    fs::write(path, config.to_string()).expect("room for a file");
}

/// Returns the account's token. A server of 1.24 or later makes none by itself.
fn token() -> String {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "eyot-test", "annotations": { "kubernetes.io/service-account.name": ACCOUNT } },
    });
    apply(&secret).expect("a secret for the account");
    let given_up = Instant::now() + PATIENCE;
    loop {
        let token =
            kubectl(["get", "secret", "eyot-test", "-o", "jsonpath={.data.token}"]).expect("a secret");
        if !token.is_empty() {
            let bytes = base64::engine::general_purpose::STANDARD.decode(token).expect("base64");
            return String::from_utf8(bytes).expect("text");
        }
        assert!(Instant::now() < given_up, "the account gets no token");
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Cluster {
    /// Gives the node an order, and returns when it is done.
    pub fn order(&self, order: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("order the node to {order}: {error}");
        let mut control = File::options().append(true).open(self.folder.join("control")).map_err(failed)?;
        writeln!(control, "{order}").map_err(failed)?;
        let mut answer = String::new();
        let answers = File::open(self.folder.join("answer")).map_err(failed)?;
        BufReader::new(answers).read_line(&mut answer).map_err(failed)?;
        if answer == "done\n" { Ok(()) } else { Err(format!("the node could not {order}")) }
    }

    /// Gives the node an order beside what else happens.
    pub async fn order_beside(self: &Arc<Self>, order: &str) -> Result<(), String> {
        let (cluster, order) = (Arc::clone(self), order.to_owned());
        tokio::task::spawn_blocking(move || cluster.order(&order)).await.map_err(|error| error.to_string())?
    }
}
