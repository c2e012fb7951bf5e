//! The fields in which a spec asks for more than a sandbox always has: a provider honours each of them or refuses it.

use serde_json::Value;

use super::{Limits, Manifest, SandboxSpec, ValidSpec};
use crate::error::{Error, ErrorKind, Result, SandboxOperationUnsupported};

impl SandboxSpec {
    /// Names the fields that are not as by default and that a provider must honour or refuse, such as `image` or
    /// `limits.memory_mib`. The fields that every sandbox has are left out: `id`, `name`, `workdir`, `manifest`, `env`,
    /// `metadata`, `labels`, and the limits of calls, which the handle keeps.
    ///
    /// # Errors
    /// `Internal`: the spec can't be written down.
    pub fn requests(&self) -> Result<Vec<String>> {
        let asked = Self {
            id: None,
            name: None,
            workdir: None,
            manifest: Manifest::default(),
            env: Default::default(),
            metadata: Default::default(),
            labels: Default::default(),
            limits: Limits {
                timeout_ms: None,
                max_output_bytes: None,
                max_file_bytes: None,
                ..self.limits.clone()
            },
            ..self.clone()
        };
        let (asked, default) = (written(&asked)?, written(&Self::default())?);
        let mut names = Vec::new();
        for (field, value) in entries(&asked) {
            let usual = default.get(field).unwrap_or(&Value::Null);
            match (value, usual) {
                (Value::Object(_), Value::Object(_)) => names.extend(
                    entries(value)
                        .filter(|(name, value)| usual.get(name) != Some(value))
                        .map(|(name, _)| format!("{field}.{name}")),
                ),
                _ if value != usual => names.push(field.to_owned()),
                _ => {}
            }
        }
        Ok(names)
    }
}

impl ValidSpec {
    /// Refuses, as `unsupported`, a spec that asks for anything but what `honoured` names. To be called first in
    /// [`crate::SandboxProvider::create`], so that a field that was added after the provider was written is refused, too.
    /// A name stands for the field and for all in it: `limits` for `limits.memory_mib`.
    ///
    /// ```
    /// # use eyot::{Limits, SandboxSpec};
    /// let limits = Limits { memory_mib: Some(64), timeout_ms: Some(1000), ..Limits::default() };
    /// let spec = SandboxSpec { limits, ..SandboxSpec::default() }.validate()?;
    /// spec.refuse_all_but("mine", &["limits.memory_mib"])?;
    /// let refused = spec.refuse_all_but("mine", &["image"]).unwrap_err();
    /// assert_eq!(refused.to_string(), "mine does not support create with \"limits.memory_mib\"");
    /// # Ok::<(), eyot::Error>(())
    /// ```
    pub fn refuse_all_but(&self, provider: &str, honoured: &[&str]) -> Result<()> {
        let is_honoured = |asked: &str| {
            honoured.iter().any(|name| {
                asked.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let mut refused = self.spec().requests()?;
        refused.retain(|asked| !is_honoured(asked));
        match refused.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            refused => Err(SandboxOperationUnsupported::new("create", provider, refused).into()),
        }
    }
}

fn written(spec: &SandboxSpec) -> Result<Value> {
    let broken = |error| Error::new(ErrorKind::Internal, "write a spec down").with_source(error);
    serde_json::to_value(spec).map_err(broken)
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(text: &str) -> Vec<String> {
        serde_json::from_str::<SandboxSpec>(text).unwrap().requests().unwrap()
    }

    #[test]
    fn a_spec_asks_for_what_differs_from_the_default() {
        assert_eq!(requests("{}"), [""; 0]);
        let everybody_has = r#"{"name":"a","workdir":"/srv","env":{"A":"1"},"labels":{"a":"b"},"metadata":{"c":"d"},
            "manifest":{"files":{"f":[1]}},"limits":{"timeout_ms":1,"max_output_bytes":2,"max_file_bytes":3}}"#;
        assert_eq!(requests(everybody_has), [""; 0]);
        let text = r#"{"image":"node","user":"root","hostname":"h","network":"host","require":["memory"],
            "limits":{"pids":9},"lifecycle":{"ttl_ms":5},"workspace":{"mode":"persistent","id":"w"},
            "security":{"readonly_rootfs":true},"container":{"runtime":"runsc"},
            "mounts":[{"source":"/a","target":"/b"}]}"#;
        let asked = [
            "container.runtime",
            "hostname",
            "image",
            "lifecycle.ttl_ms",
            "limits.pids",
            "mounts",
            "network",
            "require",
            "security.readonly_rootfs",
            "user",
            "workspace.id",
            "workspace.mode",
        ];
        let mut found: Vec<String> =
            requests(text).into_iter().filter(|name| !name.starts_with("workspace.destroy")).collect();
        found.sort();
        assert_eq!(found, asked);
    }

    #[test]
    fn a_name_stands_for_the_field_and_for_all_in_it() {
        let spec: SandboxSpec =
            serde_json::from_str(r#"{"limits":{"pids":9,"disk_mib":9},"lifecycle":{"ttl_ms":5}}"#).unwrap();
        let spec = spec.validate().unwrap();
        spec.refuse_all_but("demo", &["limits", "lifecycle.ttl_ms"]).unwrap();
        let error = spec.refuse_all_but("demo", &["limit", "limits.pids"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let named = |field: &str| error.to_string().contains(&format!("\"{field}\""));
        assert!(named("limits.disk_mib") && named("lifecycle.ttl_ms") && !named("limits.pids"), "{error}");
    }
}
