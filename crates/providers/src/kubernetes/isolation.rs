//! The protections of a Pod: what the server kept of what was asked for, and what the guest found in
//! force. What the server dropped, without a word as servers do, is not reported as held.

use eyot::{
    DiskEnforcement, Enforcement, Error, ErrorKind, Isolation, LimitsEnforced, NetworkMode, Result,
    SandboxSpec, UserCounts,
};
use eyot_guest::protocol::Protections;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use super::NAME;
use super::options::KubernetesOptions;
use super::pod_state::CONTAINER;

/// Reads the protections off a Pod, without its guest: `no_new_privs` and seccomp are not known.
pub(super) fn declared(pod: &Pod) -> Isolation {
    let spec = pod.spec.as_ref();
    let container =
        spec.and_then(|spec| spec.containers.iter().find(|container| container.name == CONTAINER));
    let limits = container.map_or(Isolation::none(NAME).limits, limits);
    let held = [("memory", limits.memory), ("cpu", limits.cpus)];
    let controllers = held.into_iter().filter(|(_, held)| *held == Enforcement::Cgroup);
    Isolation {
        // Another kernel, as of a runtime with virtual machines, is not found out.
        shares_host_kernel: true,
        namespaces: spec.map(namespaces).unwrap_or_default(),
        capabilities: if container.is_some_and(drops_capabilities) {
            Vec::new()
        } else {
            vec!["those of the cluster's runtime".to_owned()]
        },
        // Whether policies are enforced is not found out.
        network: if spec.is_some_and(|spec| spec.host_network == Some(true)) {
            NetworkMode::Host
        } else {
            NetworkMode::Bridge
        },
        cgroup_controllers: controllers.map(|(name, _)| name.to_owned()).collect(),
        limits,
        runtime: spec.and_then(|spec| spec.runtime_class_name.clone()),
        // Commands are of the guest's own user.
        guest_out_of_reach: false,
        user_counts: Some(UserCounts::Shared),
        ..Isolation::none(NAME)
    }
}

/// Adds what the guest found in force. Fails unless all that the spec requires holds.
pub(super) fn found(spec: &SandboxSpec, pod: &Pod, protections: Option<&Protections>) -> Result<Isolation> {
    let silent = || Error::new(ErrorKind::Setup, "the sandbox's guest does not say what protects it");
    let protections = protections.ok_or_else(silent)?;
    if spec.security.no_new_privileges && !protections.no_new_privileges {
        let message =
            "`allowPrivilegeEscalation: false` was asked of the cluster and does not hold in the Pod";
        return Err(Error::new(ErrorKind::Setup, message));
    }
    let isolation = Isolation {
        no_new_privileges: protections.no_new_privileges,
        seccomp: protections.seccomp,
        readonly_rootfs: protections.readonly_rootfs,
        ..declared(pod)
    };
    check_required(spec, &isolation)?;
    Ok(isolation)
}

/// Predicts the protections of a Pod of the default spec.
pub(super) fn predicted(options: &KubernetesOptions) -> Isolation {
    let namespaces = ["mount", "pid", "ipc", "uts", "network"].map(str::to_owned).to_vec();
    Isolation {
        namespaces,
        network: NetworkMode::Bridge,
        runtime: options.runtime_class.clone(),
        user_counts: Some(UserCounts::Shared),
        ..Isolation::none(NAME)
    }
}

fn check_required(spec: &SandboxSpec, isolation: &Isolation) -> Result<()> {
    match spec.require.iter().find(|requirement| !isolation.holds(**requirement)) {
        None => Ok(()),
        Some(missing) => {
            let name = serde_json::to_string(missing).unwrap_or_default();
            let message = format!("`require` asks for {name}, which does not hold on this cluster");
            let hint = "a limit must be asked for to be held, and a server may drop what it does not know";
            Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
        }
    }
}

fn limits(container: &Container) -> LimitsEnforced {
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let is_limited = |resource: &str| limits.is_some_and(|limits| limits.contains_key(resource));
    let by_group = |held: bool| if held { Enforcement::Cgroup } else { Enforcement::None };
    LimitsEnforced {
        memory: by_group(is_limited("memory")),
        cpus: by_group(is_limited("cpu")),
        pids: Enforcement::None,
        // The kubelet measures now and then, and evicts.
        disk: if is_limited("ephemeral-storage") {
            DiskEnforcement::Monitored
        } else {
            DiskEnforcement::None
        },
    }
}

/// Returns the namespaces of the Pod's own, as the server has kept it. A user namespace is not among them:
/// older kubelets and runtimes ignore `hostUsers` without a word.
fn namespaces(spec: &PodSpec) -> Vec<String> {
    let shared = |flag: Option<bool>| flag == Some(true);
    let own = [
        ("mount", true),
        ("pid", !shared(spec.host_pid)),
        ("ipc", !shared(spec.host_ipc)),
        ("uts", !shared(spec.host_network)),
        ("network", !shared(spec.host_network)),
    ];
    own.into_iter().filter(|(_, is_own)| *is_own).map(|(name, _)| name.to_owned()).collect()
}

fn drops_capabilities(container: &Container) -> bool {
    let context = container.security_context.as_ref();
    if context.is_some_and(|context| context.privileged == Some(true)) {
        return false;
    }
    let capabilities = context.and_then(|context| context.capabilities.as_ref());
    capabilities.is_some_and(|capabilities| {
        capabilities.drop.iter().flatten().any(|name| name == "ALL")
            && capabilities.add.iter().flatten().next().is_none()
    })
}

#[cfg(test)]
mod tests {
    use eyot::Requirement;
    use serde_json::json;

    use super::*;

    fn pod(limits: &serde_json::Value) -> Pod {
        let context = json!({"capabilities": {"drop": ["ALL"]}});
        let container =
            json!({"name": "sandbox", "resources": {"limits": limits}, "securityContext": context});
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"containers": [container]}}))
            .unwrap()
    }

    fn protections() -> Protections {
        let kernel_release = "6.1".to_owned();
        Protections { no_new_privileges: true, seccomp: false, readonly_rootfs: false, kernel_release }
    }

    #[test]
    fn a_limit_that_the_server_dropped_is_not_held_and_refused_where_it_is_required() {
        let mut spec = SandboxSpec::default();
        spec.limits.memory_mib = Some(64);
        let kept = found(&spec, &pod(&json!({"memory": "64Mi"})), Some(&protections())).unwrap();
        assert_eq!(kept.limits.memory, Enforcement::Cgroup);
        let dropped = found(&spec, &pod(&json!({})), Some(&protections())).unwrap();
        assert_eq!(dropped.limits.memory, Enforcement::None);
        spec.require = [Requirement::Memory].into();
        let error = found(&spec, &pod(&json!({})), Some(&protections())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn what_the_guest_does_not_find_is_not_reported() {
        let less = Protections { no_new_privileges: false, ..protections() };
        let refused = found(&SandboxSpec::default(), &pod(&json!({})), Some(&less)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Setup);
        assert!(!found(&SandboxSpec::default(), &pod(&json!({})), Some(&protections())).unwrap().seccomp);
    }
}
