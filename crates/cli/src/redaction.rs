//! The record of a sandbox without its secrets: the values of variables and the contents of
//! manifest files.

use eyot::{Sandbox, SandboxInfo};
use serde_json::{Map, Value, json};

use crate::errors::Failure;

/// Renders the sandbox's record as JSON. Values of variables become null unless `show_env`;
/// contents become their size in bytes.
pub fn facts(info: &SandboxInfo, show_env: bool) -> Result<Value, Failure> {
    let mut shown = info.clone();
    let files = std::mem::take(&mut shown.spec.manifest.files);
    let mut value =
        serde_json::to_value(&shown).map_err(|error| Failure::host("describe the sandbox", error.into()))?;
    let sizes: Map<String, Value> =
        files.into_iter().map(|(path, content)| (path, json!({ "bytes": content.len() }))).collect();
    value["spec"]["manifest"]["files"] = Value::Object(sizes);
    if !show_env {
        hide_values(&mut value["spec"]["env"]);
        hide_values(&mut value["spec"]["manifest"]["env"]);
    }
    Ok(value)
}

/// Renders the record of a live sandbox as JSON.
pub fn live_facts(sandbox: &Sandbox, show_env: bool) -> Result<Value, Failure> {
    facts(&live_info(sandbox), show_env)
}

/// Returns the record of a live sandbox, with its isolation as its driver reports it now.
pub fn live_info(sandbox: &Sandbox) -> SandboxInfo {
    SandboxInfo { isolation: sandbox.isolation().clone(), ..sandbox.info().clone() }
}

fn hide_values(env: &mut Value) {
    if let Value::Object(variables) = env {
        variables.values_mut().for_each(|value| *value = Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> SandboxInfo {
        let text = r#"{
            "id": "sb_00000000000000000000000000000000", "name": "a", "provider": "native", "status": "running",
            "workdir": "/workspace", "created_ms": 0,
            "spec": {
                "env": {"TOKEN": "hunter2"},
                "manifest": {"files": {"key.pem": "hunter2"}, "env": {"PASSWORD": "hunter2"}}
            },
            "isolation": {
                "provider": "native", "shares_host_kernel": true, "namespaces": ["user"], "identity": "single",
                "no_new_privileges": true, "capabilities": [], "seccomp_instructions": 300, "landlock_abi": null,
                "network": "none", "readonly_rootfs": false, "cgroup_controllers": [],
                "limits": {"memory": "none", "cpus": "none", "pids": "rlimit", "disk": "none"}
            }
        }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn neither_values_of_variables_nor_contents_of_files_are_shown() {
        let value = facts(&info(), false).unwrap();
        assert!(!value.to_string().contains("hunter2"), "{value}");
        assert_eq!(value["spec"]["env"], json!({ "TOKEN": null }));
        assert_eq!(value["spec"]["manifest"]["files"]["key.pem"], json!({ "bytes": 7 }));
    }

    #[test]
    fn values_of_variables_are_shown_when_asked_for_and_contents_never() {
        let value = facts(&info(), true).unwrap();
        assert_eq!(value["spec"]["env"]["TOKEN"], "hunter2");
        assert_eq!(value["spec"]["manifest"]["env"]["PASSWORD"], "hunter2");
        assert_eq!(value["spec"]["manifest"]["files"]["key.pem"], json!({ "bytes": 7 }));
    }
}
