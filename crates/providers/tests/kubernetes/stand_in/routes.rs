//! The calls of the stand-in.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::{SinkExt, StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Cluster;
use super::refusals::{
    absent, answer, changed_quota, exceeded_quota, exists, expired, forbidden_right, invalid_hostname,
    refuse, unmet, violations,
};

type Shared = State<Arc<Cluster>>;
type Asked = Query<HashMap<String, String>>;

/// The pause without changes after which a bookmark is sent.
const BOOKMARK: Duration = Duration::from_millis(500);

/// A kind of object.
#[derive(Clone, Copy)]
struct Kind {
    plural: &'static str,
    group: &'static str,
    kind: &'static str,
    version: &'static str,
}

const PODS: Kind = Kind { plural: "pods", group: "", kind: "Pod", version: "v1" };
const LEASES: Kind =
    Kind { plural: "leases", group: "coordination.k8s.io", kind: "Lease", version: "coordination.k8s.io/v1" };

pub fn router(cluster: Arc<Cluster>) -> Router {
    let version = json!({ "major": "1", "minor": "33", "gitVersion": "v1.33.0-stand-in", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "linux/amd64" });
    let router = Router::new()
        .route("/version", get(move || async move { answer(200, &version) }))
        .route("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", post(review))
        .route("/api/v1/namespaces/{namespace}/pods/{name}/portforward", get(forward));
    let router = objects(router, "/api/v1/namespaces/{namespace}/pods", PODS);
    objects(router, "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", LEASES).with_state(cluster)
}

fn objects(router: Router<Arc<Cluster>>, path: &str, kind: Kind) -> Router<Arc<Cluster>> {
    let many = get(move |state: Shared, path: Path<String>, asked: Asked| list(kind, state, path, asked))
        .post(move |state: Shared, path: Path<String>, body: Bytes| create(kind, state, path, body));
    let one = get(move |state: Shared, path: Path<(String, String)>| read(kind, state, path)).delete(
        move |state: Shared, path: Path<(String, String)>, body: Bytes| delete(kind, state, path, body),
    );
    router.route(path, many).route(&format!("{path}/{{name}}"), one)
}

fn denied(cluster: &Cluster, kind: Kind, verb: &str, namespace: &str) -> Option<Response> {
    let mut policy = cluster.policy();
    let is_unknown = policy.unknown_rights > 0;
    policy.unknown_rights -= usize::from(is_unknown);
    let is_denied = is_unknown || policy.denied.contains(&format!("{verb} {}", kind.plural));
    is_denied.then(|| forbidden_right(verb, kind.plural, kind.group, namespace))
}

async fn read(
    kind: Kind,
    State(cluster): Shared,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    if let Some(refusal) = denied(&cluster, kind, "get", &namespace) {
        return refusal;
    }
    match cluster.store.get(kind.plural, &name) {
        Some(object) => answer(200, &object),
        None => absent(kind.plural, &name),
    }
}

async fn create(kind: Kind, State(cluster): Shared, Path(namespace): Path<String>, body: Bytes) -> Response {
    if let Some(refusal) = denied(&cluster, kind, "create", &namespace) {
        return refusal;
    }
    let Ok(mut object) = serde_json::from_slice::<Value>(&body) else {
        return refuse(400, "BadRequest", "the object provided is unrecognized");
    };
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.version);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if kind.plural == "pods" {
        // A server looks for the name first.
        if cluster.store.get(kind.plural, &name).is_some() {
            return exists(kind.plural, &name);
        }
        if let Some(refusal) = admit(&cluster, &name, &mut object) {
            return refusal;
        }
        object["status"] = json!({ "phase": "Pending" });
    }
    let Some(made) = cluster.store.create(kind.plural, &name, object) else {
        return exists(kind.plural, &name);
    };
    if kind.plural == "pods" {
        cluster.node.spawn(Arc::clone(&cluster.kubelet).run(made.clone()));
        let mut policy = cluster.policy();
        if policy.lost_creates > 0 {
            policy.lost_creates -= 1;
            return refuse(504, "Timeout", "Timeout: request did not complete within requested timeout");
        }
    }
    answer(201, &made)
}

/// Refuses a Pod as a LimitRange, Pod Security and a quota do, and drops what this server does not hold.
fn admit(cluster: &Cluster, name: &str, pod: &mut Value) -> Option<Response> {
    let begin = format!("pods \"{name}\" is forbidden");
    let mut policy = cluster.policy();
    if policy.quota_conflicts > 0 {
        policy.quota_conflicts -= 1;
        return Some(changed_quota());
    }
    let hostname = pod["spec"]["hostname"].as_str().unwrap_or_default();
    if hostname.ends_with('-') {
        return Some(invalid_hostname(name, hostname));
    }
    let memory = pod["spec"]["containers"][0]["resources"]["limits"]["memory"].as_str();
    let mib = memory.and_then(|text| text.strip_suffix("Mi")).and_then(|text| text.parse::<u64>().ok());
    if let (Some(mib), Some(most)) = (mib, policy.most_memory_mib)
        && mib > most
    {
        let message =
            format!("{begin}: maximum memory usage per Container is {most}Mi, but limit is {mib}Mi");
        return Some(refuse(403, "Forbidden", &message));
    }
    let violations = violations(pod);
    if !violations.is_empty() {
        let message =
            format!("{begin}: violates PodSecurity \"restricted:latest\": {}", violations.join(", "));
        return Some(refuse(403, "Forbidden", &message));
    }
    let used = cluster.store.list("pods").0.len();
    if let Some(limit) = policy.quota.filter(|limit| used >= *limit) {
        return Some(exceeded_quota(name, used, limit));
    }
    pod["spec"]["containers"][0]["resources"]["limits"] = json!({});
    None
}

async fn delete(
    kind: Kind,
    State(cluster): Shared,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    if let Some(refusal) = denied(&cluster, kind, "delete", &namespace) {
        return refusal;
    }
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    cluster.policy().deletes.push(asked.clone());
    cluster.delete_came.notify_one();
    let held = cluster.policy().deletes_may_go_on.clone();
    if let Some(mut may_go_on) = held {
        drop(may_go_on.wait_for(|go_on| *go_on).await);
    }
    // As a server does it, a Pod without grace is forgotten at once.
    let at_once = kind.plural != "pods" || asked["gracePeriodSeconds"] == 0;
    match cluster.store.delete(kind.plural, &name, &asked, at_once) {
        Ok(object) => answer(200, &object),
        Err(why) => unmet(kind.plural, &name, why),
    }
}

/// Tells whether an object has the labels and fields that were asked for.
fn is_selected(object: &Value, asked: &HashMap<String, String>) -> bool {
    let pairs = |of: &str| {
        let text = asked.get(of).cloned().unwrap_or_default();
        text.split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<Vec<_>>()
    };
    let has_labels =
        pairs("labelSelector").iter().all(|(key, value)| object["metadata"]["labels"][key] == json!(value));
    let has_name = pairs("fieldSelector")
        .iter()
        .all(|(key, value)| key == "metadata.name" && object["metadata"]["name"] == json!(value));
    has_labels && has_name
}

async fn list(
    kind: Kind,
    State(cluster): Shared,
    Path(namespace): Path<String>,
    Query(asked): Asked,
) -> Response {
    let is_watch = asked.get("watch").is_some_and(|text| text == "true" || text == "1");
    let verb = if is_watch { "watch" } else { "list" };
    if let Some(refusal) = denied(&cluster, kind, verb, &namespace) {
        return refusal;
    }
    if is_watch {
        return watch(kind, cluster, asked);
    }
    let (mut items, version) = cluster.store.list(kind.plural);
    items.retain(|object| is_selected(object, &asked));
    answer(
        200,
        &json!({
            "kind": format!("{}List", kind.kind), "apiVersion": kind.version,
            "metadata": { "resourceVersion": version.to_string() }, "items": items,
        }),
    )
}

struct Watch {
    kind: Kind,
    cluster: Arc<Cluster>,
    asked: HashMap<String, String>,
    version: u64,
    ends: tokio::time::Instant,
    is_over: bool,
}

fn watch(kind: Kind, cluster: Arc<Cluster>, asked: HashMap<String, String>) -> Response {
    let version = asked.get("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0);
    if cluster.store.since(kind.plural, version).is_none() {
        return answer(410, &expired(version));
    }
    let seconds = asked.get("timeoutSeconds").and_then(|text| text.parse().ok()).unwrap_or(290);
    let ends = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let begun = Watch { kind, cluster, asked, version, ends, is_over: false };
    let lines = stream::unfold(begun, |mut watch| async move {
        let lines = watch.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(lines)), watch))
    });
    Response::builder()
        .header("content-type", "application/json")
        .body(Body::from_stream(lines))
        .expect("a response")
}

impl Watch {
    /// Returns the next lines; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        let mut versions = self.cluster.store.versions();
        while !self.is_over {
            versions.borrow_and_update();
            let Some((changes, newest)) = self.cluster.store.since(self.kind.plural, self.version) else {
                self.is_over = true;
                return Some(line("ERROR", &expired(self.version)));
            };
            self.version = newest;
            let selected = changes.iter().filter(|change| is_selected(&change.object, &self.asked));
            let lines: String = selected.map(|change| line(change.kind, &change.object)).collect();
            if !lines.is_empty() {
                return Some(lines);
            }
            let bookmarks = self.asked.get("allowWatchBookmarks").is_some_and(|text| text == "true");
            tokio::select! {
                _ = versions.changed() => {}
                () = tokio::time::sleep_until(self.ends) => self.is_over = true,
                () = tokio::time::sleep(BOOKMARK), if bookmarks => return Some(self.bookmark()),
            }
        }
        None
    }

    fn bookmark(&self) -> String {
        line(
            "BOOKMARK",
            &json!({
                "kind": self.kind.kind, "apiVersion": self.kind.version,
                "metadata": { "resourceVersion": self.version.to_string(), "creationTimestamp": null },
            }),
        )
    }
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": kind, "object": object }))
}

async fn review(State(cluster): Shared, body: Bytes) -> Response {
    let mut review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let asked = &review["spec"]["resourceAttributes"];
    let text = |name: &str| asked[name].as_str().unwrap_or_default();
    let allowed = !cluster.policy().denied.contains(&format!("{} {}", text("verb"), text("resource")));
    review["status"] = json!({ "allowed": allowed });
    answer(201, &review)
}

async fn forward(
    State(cluster): Shared,
    Path((_, name)): Path<(String, String)>,
    Query(asked): Asked,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(pod) = cluster.store.get("pods", &name) else { return absent("pods", &name) };
    let address = pod["status"]["podIP"].as_str().unwrap_or_default().to_owned();
    let port = asked.get("ports").and_then(|text| text.parse().ok()).unwrap_or(0);
    upgrade.protocols(["v4.channel.k8s.io"]).on_upgrade(move |socket| carry(socket, address, port))
}

/// Carries the bytes of a port: channel 0 has them, channel 1 errors, and each begins with the port.
async fn carry(socket: WebSocket, address: String, port: u16) {
    let (mut to_client, mut from_client) = socket.split();
    let Ok(stream) = TcpStream::connect((address.as_str(), port)).await else { return };
    for channel in [0, 1] {
        let [low, high] = port.to_le_bytes();
        if to_client.send(Message::Binary(Bytes::from(vec![channel, low, high]))).await.is_err() {
            return;
        }
    }
    let (mut from_pod, mut to_pod) = stream.into_split();
    let outward = async {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(count @ 1..) = from_pod.read(&mut buffer).await {
            let bytes = [&[0], &buffer[..count]].concat();
            if to_client.send(Message::Binary(bytes.into())).await.is_err() {
                break;
            }
        }
    };
    let inward = async {
        while let Some(Ok(message)) = from_client.next().await {
            let Message::Binary(bytes) = message else { continue };
            if bytes.first() != Some(&0) || to_pod.write_all(&bytes[1..]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = outward => {}
        () = inward => {}
    }
}
