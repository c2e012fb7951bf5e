//! Refusals of a real cluster, in its own words, and the rights without which nothing works. These cases have the
//! cluster for themselves: what they change, all Pods meet.

use std::sync::Arc;

use eyot::{ErrorKind, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::admin::{apply, kubectl};
use super::{Cluster, GUEST_IMAGE};
use crate::faults::output;
use crate::tried::{Tried, ensure, failed};
use crate::vendor::block_on;
use eyot_providers::kubernetes::{KubernetesOptions, KubernetesProvider, PodReach};

/// Without this one, names of sandboxes that were never completed stay reserved, which a list says in the log alone.
const RIGHT_OF_SWEEP: &str = "list leases";

type NamedCase = (&'static str, fn(&Arc<Cluster>) -> Tried);

pub fn trials(cluster: &Arc<Cluster>) -> Vec<Trial> {
    let cases: [NamedCase; 7] = [
        ("a_quota_is_told_in_the_clusters_words_and_leaves_nothing", quota),
        ("a_limit_range_is_told_in_the_clusters_words", limit_range),
        ("a_sandbox_that_no_node_has_room_for_is_told_in_the_schedulers_words", room),
        ("an_image_that_can_not_be_fetched_is_told_in_the_clusters_words", image),
        ("without_any_one_of_its_rights_something_is_refused_that_names_it", rights),
        ("the_guest_can_come_with_an_image_of_its_own", guest_image),
        ("port_forward_carries_commands_and_files", forwarded),
    ];
    trials_of(cluster, cases)
}

/// Returns these cases as ones that have the cluster for themselves.
pub fn trials_of<const N: usize>(cluster: &Arc<Cluster>, cases: [NamedCase; N]) -> Vec<Trial> {
    let trial = |(name, case): NamedCase| {
        let cluster = Arc::clone(cluster);
        Trial::test(format!("alone::{name}"), move || case(&cluster))
    };
    cases.into_iter().map(trial).collect()
}

/// Counts the Pods and the reserved names.
pub fn objects() -> Result<usize, String> {
    Ok(kubectl(["get", "pods,leases", "-o", "name"])?.lines().count())
}

fn spec(json: &str) -> SandboxSpec {
    serde_json::from_str(json).expect("a spec")
}

/// Expects a create to be refused, with these words, and to leave nothing.
async fn refused(cluster: &Cluster, json: &str, kind: ErrorKind, words: &str) -> Tried {
    let before = objects()?;
    let error = failed(Sandbox::create(&*cluster.provider(), spec(json)).await)?;
    ensure(error.kind() == kind && error.to_string().contains(words), format!("{error:?}"))?;
    ensure(objects()? <= before, "something was left")
}

fn quota(cluster: &Arc<Cluster>) -> Tried {
    kubectl(["create", "quota", "few", "--hard=pods=0"])?;
    // A new quota is counted before it holds.
    kubectl(["wait", "--for=jsonpath={.status.hard.pods}=0", "quota/few"]).or_else(|_| await_count("few"))?;
    let tried = block_on(refused(
        cluster,
        "{}",
        ErrorKind::Quota,
        "exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0",
    ));
    kubectl(["delete", "quota", "few"])?;
    tried
}

/// Waits for a quota to be counted: `kubectl wait` of that time knows conditions alone.
fn await_count(name: &str) -> Result<String, String> {
    for _ in 0..100 {
        let status = kubectl(["get", "quota", name, "-o", "jsonpath={.status.hard}"])?;
        if !status.is_empty() {
            return Ok(status);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(format!("the quota {name} is not counted"))
}

fn limit_range(cluster: &Arc<Cluster>) -> Tried {
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "small" },
        "spec": { "limits": [{ "type": "Container", "max": { "memory": "256Mi" } }] },
    });
    apply(&limits)?;
    let words = "maximum memory usage per Container is 256Mi, but limit is 900Mi";
    let tried = block_on(refused(cluster, r#"{"limits":{"memory_mib":900}}"#, ErrorKind::Invalid, words));
    kubectl(["delete", "limitrange", "small"])?;
    tried
}

fn room(cluster: &Arc<Cluster>) -> Tried {
    let large = r#"{"limits":{"cpus":500}}"#;
    block_on(refused(cluster, large, ErrorKind::Quota, "Insufficient cpu"))
}

fn image(cluster: &Arc<Cluster>) -> Tried {
    block_on(refused(cluster, r#"{"image":"eyot.local/missing:1"}"#, ErrorKind::Setup, "missing:1"))
}

fn guest_image(cluster: &Arc<Cluster>) -> Tried {
    let options = KubernetesOptions { guest_image: Some(GUEST_IMAGE.to_owned()), ..cluster.options() };
    works(KubernetesProvider::new(options))
}

fn forwarded(cluster: &Arc<Cluster>) -> Tried {
    works(KubernetesProvider::new(KubernetesOptions { reach: PodReach::PortForward, ..cluster.options() }))
}

fn works(provider: Arc<KubernetesProvider>) -> Tried {
    block_on(async {
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let large = vec![7; 1 << 20];
        sandbox.write("large", large.clone()).await?;
        ensure(sandbox.read("large").await?[..] == large[..], "a file has changed on its way")?;
        ensure(output(&sandbox, "echo fine").await? == "fine\n", "it does not work")?;
        Ok(sandbox.destroy().await?)
    })
}

/// Returns every right of a role: the rule's number, and the verb's.
fn rights_of(role: &Value) -> Vec<(usize, usize, String)> {
    let rules = role["rules"].as_array().into_iter().flatten().enumerate();
    rules
        .flat_map(|(rule, body)| {
            let resource = body["resources"][0].as_str().unwrap_or_default().to_owned();
            let verbs = body["verbs"].as_array().cloned().unwrap_or_default();
            verbs.into_iter().enumerate().map(move |(verb, name)| {
                (rule, verb, format!("{} {resource}", name.as_str().unwrap_or_default()))
            })
        })
        .collect()
}

fn rights(cluster: &Arc<Cluster>) -> Tried {
    let role: Value = serde_json::from_str(&kubectl(["get", "role", "eyot", "-o", "json"])?)?;
    let mut without = Vec::new();
    for (rule, verb, right) in rights_of(&role) {
        let path = format!("/rules/{rule}/verbs/{verb}");
        let less = json!([{ "op": "remove", "path": path }]).to_string();
        kubectl(["patch", "role", "eyot", "--type=json", "-p", &less])?;
        let outcome = block_on(misses(cluster, &right));
        let rules = json!([{ "op": "replace", "path": "/rules", "value": role["rules"] }]).to_string();
        kubectl(["patch", "role", "eyot", "--type=json", "-p", &rules])?;
        kubectl(["delete", "pods,leases", "--all", "--wait=true"])?;
        if let Err(error) = outcome {
            without.push(format!("{right}: {}", error.message().unwrap_or_default()));
        }
    }
    ensure(without.is_empty(), without.join("; "))
}

/// Does one of everything, and expects a refusal that names the right; and `doctor` to name it.
async fn misses(cluster: &Cluster, right: &str) -> Tried {
    let provider = cluster.provider();
    // A server takes a moment to know of a changed role.
    let mut missing = provider.missing_rights().await?;
    for _ in 0..100 {
        if missing == [right] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        missing = provider.missing_rights().await?;
    }
    ensure(missing == [right], format!("`doctor` misses {missing:?}"))?;
    if right == RIGHT_OF_SWEEP {
        return Ok(());
    }
    let error = failed(one_of_everything(&provider).await)?;
    let (verb, resource) = right.split_once(' ').unwrap_or_default();
    let words = format!("cannot {verb} resource \"{resource}\"");
    ensure(error.kind() == ErrorKind::Permission && error.to_string().contains(&words), format!("{error:?}"))
}

async fn one_of_everything(provider: &KubernetesProvider) -> eyot::Result<()> {
    let sandbox = Sandbox::create(provider, spec(r#"{"name":"one"}"#)).await?;
    output(&sandbox, "true").await?;
    provider.list().await?;
    // The name is taken: whose it is has to be read.
    if let Err(error) = Sandbox::create(provider, spec(r#"{"name":"one"}"#)).await
        && error.kind() != ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    provider.open("one").await?;
    provider.remove("one").await
}
