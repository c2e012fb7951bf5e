//! The servers of `contrib/kubernetes/server.yaml` on the cluster, which share the database of its node, and calls to
//! each of them.

use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use libtest_mimic::Failed;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::admin::{apply_text, contributed, kubectl, run_kubectl};
use super::{Cluster, GUEST_IMAGE, IMAGE};
use crate::tried::{Tried, ensure};
use crate::vendor::block_on;

/// The image of the servers.
const SERVER_IMAGE: &str = "eyot.local/eyot:1";
/// The name by which they are called, one of those in the manifest.
const HOST: &str = "eyot.sandboxes";
const PORT: u16 = 7070;
/// The label of their Pods, as in the manifest.
const LABEL: &str = "app.kubernetes.io/name=eyot";
/// The objects that a case makes beside Pods.
const OBJECTS: [&str; 5] =
    ["service/eyot", "configmap/eyot", "poddisruptionbudget/eyot", "secret/eyot-database", "secret/eyot-key"];

/// Servers that run.
pub struct Servers {
    pub cluster: Arc<Cluster>,
    pub replicas: [Replica; 2],
}

/// A Pod of the servers, and the way to it.
pub struct Replica {
    pod: String,
    container: String,
    address: SocketAddr,
    client: reqwest::Client,
}

/// The answer to a call.
#[derive(Debug)]
pub struct CallAnswer {
    pub status: StatusCode,
    pub body: Value,
}

impl Servers {
    /// Runs a case over new servers, and removes them and their sandboxes.
    pub fn with(cluster: &Arc<Cluster>, case: impl AsyncFnOnce(&Self) -> Tried) -> Tried {
        let tried = Self::start(cluster).and_then(|servers| block_on(case(&servers)));
        let removed = remove();
        tried?;
        removed
    }

    fn start(cluster: &Arc<Cluster>) -> Result<Self, Failed> {
        make_secrets(cluster)?;
        apply_text(&server_manifest()?)?;
        apply_text(&disruption_manifest()?)?;
        kubectl(["rollout", "status", "deployment/eyot", "--timeout=120s"])?;
        let pods: Value = serde_json::from_str(&kubectl(["get", "pods", "-l", LABEL, "-o", "json"])?)?;
        let pods = pods["items"].as_array().into_iter().flatten();
        let replicas: Vec<Replica> = pods.map(Replica::of).collect::<Result<_, _>>()?;
        let replicas = replicas.try_into().map_err(|_| "there are not two servers")?;
        Ok(Self { cluster: Arc::clone(cluster), replicas })
    }

    /// Makes a key in the Pod of the first server.
    pub fn make_key(&self, name: &str, pool: &str) -> Result<String, String> {
        self.replicas[0].run(["eyot", "keys", "create", name, "--pool", pool])
    }
}

impl Replica {
    fn of(pod: &Value) -> Result<Self, Failed> {
        let text =
            |value: &Value| value.as_str().map(str::to_owned).ok_or(format!("a Pod without it: {pod}"));
        let address: IpAddr = text(&pod["status"]["podIP"])?.parse()?;
        let container = text(&pod["status"]["containerStatuses"][0]["containerID"])?;
        let address = SocketAddr::new(address, PORT);
        let client = reqwest::Client::builder().no_proxy().resolve(HOST, address).build()?;
        Ok(Self {
            pod: text(&pod["metadata"]["name"])?,
            container: container.trim_start_matches("containerd://").to_owned(),
            address,
            client,
        })
    }

    /// Returns its address, and the name by which it is called.
    pub fn address(&self) -> (SocketAddr, &'static str) {
        (self.address, HOST)
    }

    /// Runs a program in the Pod.
    pub fn run<const N: usize>(&self, program: [&str; N]) -> Result<String, String> {
        run_kubectl(&[&["exec", &self.pod, "-c", "eyot", "--"], &program[..]].concat(), "")
    }

    /// Kills the server's process, which the cluster then starts again.
    pub async fn kill(&self, cluster: &Arc<Cluster>) -> Result<(), String> {
        cluster.order_beside(&format!("kill {}", self.container)).await
    }

    /// Prepares a request with a key. `path` begins below `/v1`.
    pub fn request(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{HOST}:{PORT}/v1/{path}")).bearer_auth(key)
    }

    /// Calls the server.
    pub async fn call(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<CallAnswer, Failed> {
        let request = self.request(key, method, path);
        let request = if body.is_null() { request } else { request.body(body.to_string()) };
        let answer = request.send().await?;
        let (status, bytes) = (answer.status(), answer.bytes().await?);
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes)? };
        Ok(CallAnswer { status, body })
    }

    /// Looks something up.
    pub async fn get(&self, key: &str, path: &str) -> Result<CallAnswer, Failed> {
        self.call(key, Method::GET, path, &Value::Null).await
    }

    /// Calls the server, and expects a status.
    pub async fn expect(
        &self,
        status: u16,
        key: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, Failed> {
        let answer = self.call(key, method, path, body).await?;
        ensure(answer.status == status, format!("{path}: not {status}, but {answer:?}"))?;
        Ok(answer.body)
    }
}

/// Makes the two Secrets, as the manifest says.
fn make_secrets(cluster: &Cluster) -> Tried {
    let url = fs::read_to_string(cluster.folder.join("database"))?;
    kubectl(["create", "secret", "generic", "eyot-database", &format!("--from-literal=url={}", url.trim())])?;
    // One for all cases: the database belongs to the sandboxes of one key.
    let file = cluster.folder.join("signing-key");
    if !file.exists() {
        let mut key = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        fs::write(&file, key)?;
    }
    kubectl(["create", "secret", "generic", "eyot-key", &format!("--from-file=key={}", file.display())])?;
    Ok(())
}

/// Returns the manifest with the images of the cluster.
fn server_manifest() -> Result<String, Failed> {
    let manifest = fs::read_to_string(contributed("server.yaml"))?;
    let images = [
        ("REGISTRY/eyot:VERSION", SERVER_IMAGE),
        ("REGISTRY/eyot-guest:VERSION", GUEST_IMAGE),
        ("python:3.13-bookworm", IMAGE),
    ];
    images.into_iter().try_fold(manifest, |manifest, (placeholder, image)| {
        ensure(manifest.contains(placeholder), format!("server.yaml names no {placeholder}"))?;
        Ok(manifest.replace(placeholder, image))
    })
}

/// Returns the manifest in the version that this cluster serves.
fn disruption_manifest() -> Result<String, Failed> {
    let manifest = fs::read_to_string(contributed("disruption.yaml"))?;
    let versions = kubectl(["api-versions"])?;
    let is_new = versions.lines().any(|version| version == "policy/v1");
    let (current, old) = ("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n");
    Ok(if is_new { manifest } else { manifest.replace(current, old) })
}

/// Removes the servers, their sandboxes and all else that a case has made. Pods go last: a Deployment would make new ones.
fn remove() -> Tried {
    for owner in ["deployments", "replicasets"] {
        kubectl(["delete", owner, "-l", LABEL, "--cascade=orphan"])?;
    }
    kubectl(["delete", "pods,leases", "--all", "--grace-period=1"])?;
    for object in OBJECTS {
        kubectl(["delete", object, "--ignore-not-found"])?;
    }
    Ok(())
}
