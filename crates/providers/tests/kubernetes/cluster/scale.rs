//! Many creates of one name, a thousand objects, and how long commands take.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eyot::{Command, ErrorKind, ExecOptions, Sandbox, SandboxId, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Cluster;
use super::admin::{apply, kubectl};
use super::refusals::{objects, trials_of};
use crate::tried::{Tried, ensure};
use crate::vendor::block_on;

/// The creates of one name at the same time, over two providers.
const CREATES: usize = 1_000;
const OBJECTS: usize = 1_000;
/// The most that a command may take in the cluster's network.
const COMMAND: Duration = Duration::from_millis(2);
const COMMANDS: usize = 200;

pub fn trials(cluster: &Arc<Cluster>) -> Vec<Trial> {
    trials_of(
        cluster,
        [
            ("a_thousand_creates_of_one_name_make_one_pod", one_name),
            ("a_command_takes_two_milliseconds_at_most", command),
            ("a_thousand_sandboxes_are_listed_and_their_names_stay", many),
        ],
    )
}

fn one_name(cluster: &Arc<Cluster>) -> Tried {
    let done = block_on(async {
        let replicas = [cluster.provider(), cluster.provider()];
        let creates = (0..CREATES).map(|number| {
            let provider = Arc::clone(&replicas[number % 2]);
            let spec: SandboxSpec = serde_json::from_str(r#"{"name":"same"}"#).expect("a spec");
            async move { Sandbox::create(&*provider, spec).await }
        });
        futures_util::future::join_all(creates).await
    });
    let left = objects()?;
    let (made, refused): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
    let kinds: Vec<ErrorKind> =
        refused.iter().filter_map(|made| made.as_ref().err()).map(|error| error.kind()).collect();
    for sandbox in made.into_iter().flatten() {
        block_on(sandbox.destroy())?;
    }
    ensure(kinds == [ErrorKind::AlreadyExists; CREATES - 1], format!("{kinds:?}"))?;
    ensure(left == 2, format!("{left} objects, not one Pod and one name"))
}

/// Returns the time in the middle.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn command(cluster: &Arc<Cluster>) -> Tried {
    let (mut creates, mut destroys, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    let pod = block_on(async {
        let provider = cluster.provider();
        for _ in 0..5 {
            let began = Instant::now();
            let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
            creates.push(began.elapsed());
            let began = Instant::now();
            sandbox.destroy().await?;
            destroys.push(began.elapsed());
        }
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        for _ in 0..COMMANDS {
            let began = Instant::now();
            sandbox.exec(Command::argv(["true"]), ExecOptions::default()).await?;
            commands.push(began.elapsed());
        }
        Ok::<_, eyot::Error>(sandbox)
    })?;
    let name = kubectl(["get", "pods", "-o", "name"])?;
    let mut by_kubectl = Vec::new();
    for _ in 0..10 {
        let began = Instant::now();
        kubectl(["exec", &name, "--", "true"])?;
        by_kubectl.push(began.elapsed());
    }
    block_on(pod.destroy())?;
    let (create, destroy, command) = (median(creates), median(destroys), median(commands));
    let by_kubectl = median(by_kubectl);
    println!("create {create:?}, command {command:?}, `kubectl exec` {by_kubectl:?}, destroy {destroy:?}");
    ensure(command <= COMMAND, format!("a command takes {command:?}"))
}

/// Makes Pods that no node takes, with the marks and the record of a real one, and their names.
fn many(cluster: &Arc<Cluster>) -> Tried {
    let provider = cluster.provider();
    let first = block_on(Sandbox::create(&*provider, serde_json::from_str(r#"{"name":"s0"}"#)?))?;
    let read = |plural: &str| -> Result<Value, Failed> {
        let list: Value = serde_json::from_str(&kubectl(["get", plural, "-o", "json"])?)?;
        let items = list["items"].as_array().into_iter().flatten();
        let mut of_first = items.filter(|item| item.to_string().contains(first.id().as_str()));
        Ok(of_first.next().ok_or("it is not there")?.clone())
    };
    let (pod, lease) = (read("pods")?, read("leases")?);
    let owner = pod["metadata"]["labels"]["eyot.dev/owner"].as_str().unwrap_or_default();
    let items = (1..OBJECTS).flat_map(|number| {
        let (id, name) = (SandboxId::generate().to_string(), format!("s{number}"));
        let with = |object: &Value, named: &[&str]| copy(object, (first.id().as_str(), &id), &name, named);
        [with(&pod, &["pod", &id]), with(&lease, &["name", owner, &name])]
    });
    let began = Instant::now();
    apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>() }))?;
    let made = began.elapsed();
    let mut lists = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let listed = block_on(provider.list())?;
        lists.push(began.elapsed());
        ensure(listed.len() == OBJECTS, format!("{} are listed", listed.len()))?;
    }
    let began = Instant::now();
    let found = block_on(provider.info("s999"))?;
    let looked = began.elapsed();
    ensure(found.name.as_str() == "s999", "another one was found")?;
    // No node has the copies, so the server forgets them at once; their names are as old as those of abandoned creates.
    kubectl(["delete", "--raw", "/api/v1/namespaces/sandboxes/pods"])?;
    let began = Instant::now();
    block_on(provider.list())?;
    let swept = began.elapsed();
    let (listed, left) = (median(lists), kubectl(["get", "leases", "-o", "name"])?.lines().count());
    println!(
        "{OBJECTS} Pods: made by `kubectl apply` in {made:?}, listed in {listed:?}, one found in {looked:?}, their \
         names freed in {swept:?}; {} KiB of memory at the most",
        peak_kib()?
    );
    kubectl(["delete", "leases", "--all"])?;
    ensure(left <= 1, format!("{left} names are left"))
}

/// Returns the most memory that this process has had.
fn peak_kib() -> Result<u64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()).ok_or("the kernel does not say")?;
    Ok(number.parse()?)
}

/// Copies an object as one of another sandbox, which no node takes.
fn copy(object: &Value, (old, id): (&str, &str), name: &str, named: &[&str]) -> Value {
    let record = (r#"\"name\":\"s0\""#, format!(r#"\"name\":\"{name}\""#));
    let text = object.to_string().replace(old, id).replace(record.0, &record.1);
    let mut copy: Value = serde_json::from_str(&text).expect("JSON");
    let metadata = copy["metadata"].as_object_mut().expect("an object");
    metadata.retain(|field, _| ["annotations", "labels"].contains(&field.as_str()));
    metadata.insert("name".to_owned(), object_name(named).into());
    if let Some(made) = metadata.get_mut("annotations").and_then(|marks| marks.get_mut("eyot.dev/made-ms")) {
        *made = "0".into();
    }
    if copy["kind"] == "Pod" {
        copy.as_object_mut().expect("an object").remove("status");
        let spec = copy["spec"].as_object_mut().expect("an object");
        spec.remove("nodeName");
        spec.insert("nodeSelector".to_owned(), json!({ "nowhere": "yes" }));
    }
    copy
}

/// Returns the name of an object, as the provider makes it.
fn object_name(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    format!("eyot-{}", hex::encode(&digest.finalize()[..16]))
}
