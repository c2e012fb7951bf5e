//! The body of the request that makes a sandbox's container. It is computed from the record and
//! touches nothing.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountTmpfsOptions, MountType, PortBinding,
};
use eyot::{Limits, NetworkMode, Result, SandboxSpec};
use eyot_guest::protocol::container::{GUEST_DIR, GUEST_FILE, INIT, RUN_DIR};

use super::engine::EngineFacts;
use super::image::EngineImage;
use super::labels::Record;
use super::life::writable_directories;
use super::published::LOOPBACK;
use super::seal::Seal;
use super::{covered, guest_volume, isolation, workspace};

/// The capacity of the directory with the guest's sockets, in bytes.
const RUN_DIR_BYTES: i64 = 64 * 1024;
/// The number of processes for the guest and its streams, beyond those of commands: the Engine
/// counts all together.
const GUEST_PIDS: i64 = 32;
/// The unit in which the Engine counts processor time.
const NANOS_PER_CPU: f64 = 1e9;

/// Computes the request for a sandbox's container.
pub(crate) fn body(
    record: &Record,
    image: &EngineImage,
    seal: &Seal,
    facts: &EngineFacts,
) -> Result<ContainerCreateBody> {
    let spec = &record.spec;
    let ports: Vec<String> = spec.container.ports.iter().map(|port| format!("{port}/tcp")).collect();
    Ok(ContainerCreateBody {
        image: Some(image.id.clone()),
        hostname: Some(record.spec.hostname.as_ref().unwrap_or(&record.name).to_string()),
        // The guest becomes a user of its own, and whoever runs commands for each.
        user: Some("0:0".to_owned()),
        entrypoint: Some(vec![format!("{GUEST_DIR}/{GUEST_FILE}"), INIT.to_owned()]),
        cmd: Some(Vec::new()),
        // The image's may be gone by the next start, and then the Engine would refuse it.
        working_dir: Some("/".to_owned()),
        labels: Some(record.labels(seal, image.labels.iter().cloned())?),
        exposed_ports: (!ports.is_empty()).then_some(ports),
        healthcheck: Some(bollard::models::HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..bollard::models::HealthConfig::default()
        }),
        stop_signal: Some("SIGTERM".to_owned()),
        host_config: Some(host_config(record, facts)),
        ..ContainerCreateBody::default()
    })
}

fn host_config(record: &Record, facts: &EngineFacts) -> HostConfig {
    let spec = &record.spec;
    let memory = spec.limits.memory_mib.map(|mib| i64::try_from(mib << 20).unwrap_or(i64::MAX));
    let no_new_privileges = spec.security.no_new_privileges.then(|| vec!["no-new-privileges".to_owned()]);
    let hosts =
        spec.container.extra_hosts.iter().map(|(name, address)| format!("{name}:{address}")).collect();
    HostConfig {
        mounts: Some(mounts(record)),
        network_mode: Some(network(spec)),
        port_bindings: Some(port_bindings(&spec.container.ports)),
        extra_hosts: Some(hosts),
        memory,
        // As much memory and no swap beside it: else the limit would be twice what was asked for.
        memory_swap: memory,
        // Half of it: what fills `/dev/shm` belongs to no process, and could not be killed to make room.
        shm_size: memory.map(|bytes| bytes / 2),
        nano_cpus: spec.limits.cpus.map(|cpus| (cpus * NANOS_PER_CPU) as i64),
        pids_limit: spec
            .limits
            .pids
            .map(|pids| i64::try_from(pids.min(Limits::MAX)).unwrap_or(i64::MAX) + GUEST_PIDS),
        readonly_rootfs: Some(spec.security.readonly_rootfs),
        security_opt: no_new_privileges,
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(isolation::container_capabilities(&spec.security)),
        masked_paths: Some(covered::masked(facts)),
        readonly_paths: Some(covered::read_only()),
        runtime: spec.container.runtime.clone(),
        // The guest is the init; and what it prints, only when it fails, is to be found.
        init: Some(false),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(log_limits()),
        }),
        ..HostConfig::default()
    }
}

fn log_limits() -> HashMap<String, String> {
    [("max-size", "1m"), ("max-file", "1")].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn network(spec: &SandboxSpec) -> String {
    match spec.network {
        NetworkMode::None => "none".to_owned(),
        NetworkMode::Host => "host".to_owned(),
        NetworkMode::Egress | NetworkMode::Bridge => {
            spec.container.network.clone().unwrap_or_else(|| "bridge".to_owned())
        }
    }
}

/// Publishes each port on the loopback of the Engine's host, on a port that the Engine chooses.
fn port_bindings(ports: &[u16]) -> HashMap<String, Option<Vec<PortBinding>>> {
    let binding = || PortBinding { host_ip: Some(LOOPBACK.to_owned()), host_port: Some(String::new()) };
    ports.iter().map(|port| (format!("{port}/tcp"), Some(vec![binding()]))).collect()
}

fn mounts(record: &Record) -> Vec<Mount> {
    let workdir = record.workdir().to_string();
    let mut mounts = vec![guest_volume::mount(), in_memory(RUN_DIR, RUN_DIR_BYTES)];
    if !record.has_own_workdir() {
        mounts.push(workspace::mount(&record.spec, &workdir));
    }
    if record.spec.security.readonly_rootfs {
        mounts.extend(writable_directories(record).map(workspace::volume_at));
        mounts.push(Mount { tmpfs_options: None, ..in_memory("/run", 0) });
    }
    let memory = &record.spec.container.tmpfs_mib;
    mounts.extend(
        memory
            .iter()
            .map(|(path, mib)| in_memory(path.as_str(), i64::try_from(mib << 20).unwrap_or(i64::MAX))),
    );
    mounts
}

fn in_memory(path: &str, size_bytes: i64) -> Mount {
    Mount {
        target: Some(path.to_owned()),
        typ: Some(MountType::TMPFS),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: Some(size_bytes),
            ..MountTmpfsOptions::default()
        }),
        ..Mount::default()
    }
}

#[cfg(test)]
mod tests {
    use eyot::Security;

    use super::*;
    use crate::docker::labels::tests::record;

    fn image() -> EngineImage {
        let user = "0".to_owned();
        EngineImage { id: "sha256:1".to_owned(), user, env: Vec::new(), labels: Vec::new() }
    }

    fn made(json: &str) -> (ContainerCreateBody, HostConfig) {
        let record = record(serde_json::from_str(json).unwrap());
        let body = body(&record, &image(), &Seal::new([1; 32]), &EngineFacts::default()).unwrap();
        let host = body.host_config.clone().unwrap();
        (body, host)
    }

    fn targets(host: &HostConfig) -> Vec<String> {
        host.mounts.iter().flatten().filter_map(|mount| mount.target.clone()).collect()
    }

    #[test]
    fn the_defaults_are_no_network_no_capabilities_no_limits_and_one_volume() {
        let (body, host) = made(r#"{"name":"dev"}"#);
        assert_eq!(body.entrypoint.unwrap(), ["/.eyot-guest/eyot-guest", "init"]);
        assert_eq!(body.hostname.as_deref(), Some("dev"));
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!((host.memory, host.nano_cpus, host.pids_limit), (None, None, None));
        assert_eq!(host.security_opt.unwrap(), ["no-new-privileges"]);
        assert_eq!(host.cap_drop.as_deref(), Some(&["ALL".to_owned()][..]));
        assert_eq!(host.readonly_rootfs, Some(false));
        assert!(host.port_bindings.unwrap().is_empty());
    }

    #[test]
    fn the_guest_is_read_only_and_both_of_its_directories_are_mounts() {
        let (_, host) = made("{}");
        assert_eq!(targets(&host), ["/.eyot-guest", "/.eyot-run", "/workspace"]);
        let mounts = host.mounts.unwrap();
        assert_eq!(mounts[0].read_only, Some(true));
        assert_eq!(mounts[1].typ, Some(MountType::TMPFS));
        assert_eq!(mounts[2].source, None);
    }

    #[test]
    fn limits_are_what_was_asked_for_and_memory_comes_without_swap() {
        let (_, host) = made(r#"{"limits":{"memory_mib":64,"cpus":1.5,"pids":32}}"#);
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
        assert_eq!((host.nano_cpus, host.pids_limit), (Some(1_500_000_000), Some(64)));
        assert_eq!(host.shm_size, Some(32 << 20));
    }

    #[test]
    fn networks_and_ports_are_passed_on_and_ports_are_on_loopback() {
        for (json, network) in [
            (r#"{"network":false}"#, "none"),
            (r#"{"network":"none"}"#, "none"),
            (r#"{"network":true}"#, "bridge"),
            (r#"{"network":{"mode":"bridge"}}"#, "bridge"),
            (r#"{"network":"host"}"#, "host"),
            (r#"{"network":"bridge","container":{"network":"lan"}}"#, "lan"),
        ] {
            assert_eq!(made(json).1.network_mode.as_deref(), Some(network), "{json}");
        }
        let (body, host) = made(r#"{"network":true,"container":{"ports":[3000]}}"#);
        assert_eq!(body.exposed_ports.unwrap(), ["3000/tcp"]);
        let bound = host.port_bindings.unwrap().remove("3000/tcp").flatten().unwrap();
        assert_eq!(bound[0].host_ip.as_deref(), Some("127.0.0.1"));
    }

    #[test]
    fn a_read_only_root_keeps_home_and_the_temporary_directories_writable() {
        let (_, host) = made(r#"{"security":{"readonly_rootfs":true}}"#);
        let wanted = ["/.eyot-guest", "/.eyot-run", "/workspace", "/tmp", "/var/tmp", "/home/user", "/run"];
        assert_eq!(targets(&host), wanted);
        let (_, host) = made(r#"{"workdir":"/home/user","security":{"readonly_rootfs":true}}"#);
        assert_eq!(targets(&host).iter().filter(|target| *target == "/home/user").count(), 1);
        let (_, host) = made(
            r#"{"workdir":"/var/tmp","container":{"tmpfs_mib":{"/tmp":8}},"security":{"readonly_rootfs":true}}"#,
        );
        for path in ["/tmp", "/var/tmp"] {
            assert_eq!(targets(&host).iter().filter(|target| *target == path).count(), 1, "{path}");
        }
    }

    #[test]
    fn a_persistent_workspace_is_a_volume_of_its_id_and_the_rest_is_passed_on() {
        let (_, host) = made(r#"{"workspace":{"mode":"persistent","id":"w1"}}"#);
        assert_eq!(host.mounts.unwrap()[2].source.as_deref(), Some("eyot-workspace-w1"));
        let (_, host) = made(
            r#"{"container":{"runtime":"runsc","extra_hosts":{"db":"10.0.0.7"},"tmpfs_mib":{"/scratch":8}}}"#,
        );
        assert_eq!(host.runtime.as_deref(), Some("runsc"));
        assert_eq!(host.extra_hosts.as_deref(), Some(&["db:10.0.0.7".to_owned()][..]));
        assert!(targets(&host).contains(&"/scratch".to_owned()));
    }

    #[test]
    fn security_can_be_loosened_only_by_asking() {
        let loose =
            Security { no_new_privileges: false, drop_capabilities: Vec::new(), ..Security::default() };
        let record = record(SandboxSpec { security: loose, ..SandboxSpec::default() });
        let host = body(&record, &image(), &Seal::new([1; 32]), &EngineFacts::default())
            .unwrap()
            .host_config
            .unwrap();
        assert_eq!(host.security_opt, None);
        assert_eq!(host.cap_add.unwrap().len(), 14);
    }
}
