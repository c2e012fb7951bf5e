//! The Pod of a sandbox. It is computed from the record and touches nothing.

use eyot::{Error, ErrorKind, NetworkMode, Result, SandboxSpec};
use eyot_guest::protocol::container::{GUEST_DIR, GUEST_FILE};
use eyot_guest::protocol::pod::{GUEST_PORT, INSTALL, KEY_VARIABLE, POD, UID_VARIABLE};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::options::KubernetesOptions;
use super::pod_state::CONTAINER;
use super::record::{ID, MAKING, NETWORK, OWNER, PodRecord, RECORD};

/// The home directory of everything in a Pod.
pub(super) const HOME: &str = "/home/user";
/// The guest in the image that brings it along.
const GUEST_IN_IMAGE: &str = "/eyot-guest";
/// The time that Kubernetes waits before it gives up a Pod whose node is lost, in seconds.
const TOLERATION_S: u32 = 15;
/// The needs that the scheduler is told of a sandbox whose spec has no limit.
const REQUESTS: [(&str, &str); 3] = [("cpu", "100m"), ("memory", "128Mi"), ("ephemeral-storage", "256Mi")];

/// The parts of a Pod that are no part of its spec.
pub(super) struct PodFacts<'a> {
    pub owner: &'a str,
    pub making: &'a str,
    pub public_key: &'a str,
    pub namespace: &'a str,
}

/// Computes the Pod.
pub(super) fn body(record: &PodRecord, options: &KubernetesOptions, facts: &PodFacts<'_>) -> Result<Pod> {
    let spec = &record.spec;
    let mut body = json!({
        "metadata": {
            "name": record.pod_name(),
            "namespace": facts.namespace,
            "labels": { OWNER: facts.owner, ID: record.id.as_str(), NETWORK: network(spec) },
            "annotations": { RECORD: record.text()?, MAKING: facts.making },
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            // A server takes no name that ends so.
            "hostname": spec.hostname.as_ref().unwrap_or(&record.name).as_str().trim_end_matches('-'),
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": options.user_id, "runAsGroup": options.user_id,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "tolerations": [toleration("not-ready"), toleration("unreachable")],
            "containers": [container(record, options, facts)],
            "volumes": volumes(spec, options),
        },
    });
    let pod = &mut body["spec"];
    if let Some(class) = spec.container.runtime.as_ref().or(options.runtime_class.as_ref()) {
        pod["runtimeClassName"] = json!(class);
    }
    if options.user_namespaces {
        pod["hostUsers"] = json!(false);
    }
    if let Some(age_s) = options.max_age_s {
        pod["activeDeadlineSeconds"] = json!(age_s);
    }
    if let Some(image) = &options.guest_image {
        pod["initContainers"] = json!([installer(image)]);
    }
    let wrong = |error| Error::new(ErrorKind::Internal, "write a Pod").with_source(error);
    serde_json::from_value(body).map_err(wrong)
}

fn network(spec: &SandboxSpec) -> &'static str {
    if spec.network == NetworkMode::None { "none" } else { "bridge" }
}

fn toleration(of: &str) -> Value {
    json!({
        "key": format!("node.kubernetes.io/{of}"), "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": TOLERATION_S,
    })
}

fn container(record: &PodRecord, options: &KubernetesOptions, facts: &PodFacts<'_>) -> Value {
    json!({
        "name": CONTAINER,
        "image": record.spec.image.as_deref().unwrap_or(&options.image),
        "command": [format!("{GUEST_DIR}/{GUEST_FILE}"), POD],
        "workingDir": "/",
        "env": [
            { "name": UID_VARIABLE, "valueFrom": { "fieldRef": { "fieldPath": "metadata.uid" } } },
            { "name": KEY_VARIABLE, "value": facts.public_key },
        ],
        "ports": [{ "name": "guest", "containerPort": GUEST_PORT }],
        "securityContext": confined(),
        "resources": { "requests": requests(&record.spec), "limits": limits(&record.spec) },
        "volumeMounts": mounts(record, options),
    })
}

fn confined() -> Value {
    json!({ "allowPrivilegeEscalation": false, "privileged": false, "capabilities": { "drop": ["ALL"] } })
}

fn installer(image: &str) -> Value {
    json!({
        "name": "guest",
        "image": image,
        "command": [GUEST_IN_IMAGE, INSTALL, GUEST_DIR],
        "securityContext": confined(),
        "resources": { "requests": requests(&SandboxSpec::default()), "limits": { "memory": "128Mi" } },
        "volumeMounts": [{ "name": "guest", "mountPath": GUEST_DIR }],
    })
}

fn limits(spec: &SandboxSpec) -> Value {
    let limits = &spec.limits;
    let mut all = json!({});
    if let Some(mib) = limits.memory_mib {
        all["memory"] = json!(format!("{mib}Mi"));
    }
    if let Some(cpus) = limits.cpus {
        all["cpu"] = json!(format!("{}m", (cpus * 1000.0).ceil() as u64));
    }
    if let Some(mib) = limits.disk_mib {
        all["ephemeral-storage"] = json!(format!("{mib}Mi"));
    }
    all
}

/// Asks for what is limited, and for a little of what is not.
fn requests(spec: &SandboxSpec) -> Value {
    let mut all = limits(spec);
    for (resource, least) in REQUESTS {
        if all.get(resource).is_none() {
            all[resource] = json!(least);
        }
    }
    all
}

fn volumes(spec: &SandboxSpec, options: &KubernetesOptions) -> Value {
    let volume = |name: &str| match spec.limits.disk_mib {
        Some(mib) => json!({ "name": name, "emptyDir": { "sizeLimit": format!("{mib}Mi") } }),
        None => json!({ "name": name, "emptyDir": {} }),
    };
    let mut all = vec![volume("workspace"), volume("home")];
    if options.guest_image.is_some() {
        all.push(json!({ "name": "guest", "emptyDir": {} }));
    }
    json!(all)
}

fn mounts(record: &PodRecord, options: &KubernetesOptions) -> Value {
    let workdir = record.workdir().to_string();
    let mut all = vec![json!({ "name": "workspace", "mountPath": workdir })];
    if workdir != HOME {
        all.push(json!({ "name": "home", "mountPath": HOME }));
    }
    if options.guest_image.is_some() {
        all.push(json!({ "name": "guest", "mountPath": GUEST_DIR, "readOnly": true }));
    }
    json!(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(json: &str, change: impl FnOnce(&mut KubernetesOptions)) -> Value {
        let mut options = KubernetesOptions::new("/nowhere");
        change(&mut options);
        let spec: SandboxSpec = serde_json::from_str(json).unwrap();
        let record = PodRecord::new(&spec.validate().unwrap(), 1);
        let facts = PodFacts { owner: "o", making: "m", public_key: "k", namespace: "n" };
        serde_json::to_value(body(&record, &options, &facts).unwrap()).unwrap()["spec"].clone()
    }

    #[test]
    fn a_pod_has_no_token_no_privileges_and_no_secret() {
        let pod = made("{}", |_| {});
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["restartPolicy"], "Never");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let context = &pod["containers"][0]["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
        let names: Vec<_> =
            pod["containers"][0]["env"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["EYOT_POD_UID", "EYOT_PUBLIC_KEY"]);
        assert!(pod.get("runtimeClassName").is_none() && pod.get("hostUsers").is_none());
    }

    #[test]
    fn limits_are_limits_and_requests() {
        let pod = made(r#"{"limits":{"memory_mib":64,"cpus":1.5,"disk_mib":10}}"#, |_| {});
        let resources = &pod["containers"][0]["resources"];
        assert_eq!(
            resources["limits"],
            json!({"memory": "64Mi", "cpu": "1500m", "ephemeral-storage": "10Mi"})
        );
        assert_eq!(resources["requests"], resources["limits"]);
        assert_eq!(pod["volumes"][0]["emptyDir"]["sizeLimit"], "10Mi");
    }

    #[test]
    fn the_guest_comes_with_the_image_or_from_one_of_its_own_and_is_read_only_then() {
        assert!(made("{}", |_| {}).get("initContainers").is_none());
        let pod = made("{}", |options| options.guest_image = Some("guest:1".to_owned()));
        assert_eq!(pod["initContainers"][0]["command"], json!(["/eyot-guest", "install", "/.eyot-guest"]));
        assert_eq!(pod["containers"][0]["volumeMounts"][2]["readOnly"], true);
    }

    #[test]
    fn what_the_operator_chose_is_asked_for_and_a_spec_may_name_another_runtime() {
        let pod = made(r#"{"container":{"runtime":"kata"}}"#, |options| {
            options.runtime_class = Some("gvisor".to_owned());
            options.user_namespaces = true;
            options.max_age_s = Some(60);
        });
        assert_eq!((&pod["runtimeClassName"], &pod["hostUsers"]), (&json!("kata"), &json!(false)));
        assert_eq!(pod["activeDeadlineSeconds"], 60);
    }
}
