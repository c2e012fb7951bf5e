//! Which crate uses which: read off their manifests, as cargo knows them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::edges::Edge;
use crate::process::{cargo, output};

/// The folder of floors that the crates are in.
const FOLDER: &str = "crates";

/// Returns the uses between crates. What the tests of a crate use alone does not count.
pub fn edges() -> Result<BTreeSet<Edge>, String> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    Ok(between(&metadata))
}

fn between(metadata: &Value) -> BTreeSet<Edge> {
    let mut found = BTreeSet::new();
    for package in list(&metadata["packages"]) {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let Some(from) = manifest.parent().and_then(name) else { continue };
        let uses = list(&package["dependencies"]).iter().filter(|use_of| use_of["kind"] != "dev");
        let uses = uses.filter_map(|use_of| name(Path::new(use_of["path"].as_str()?)));
        found.extend(uses.map(|to| Edge { folder: FOLDER.to_owned(), from: from.clone(), to }));
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the name of a crate's folder.
fn name(folder: &Path) -> Option<String> {
    folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_by_folder_and_those_of_tests_alone_do_not_count() {
        let metadata = serde_json::json!({ "packages": [{
            "manifest_path": "/r/crates/engine/Cargo.toml",
            "dependencies": [
                { "name": "eyot", "kind": null, "path": "/r/crates/eyot" },
                { "name": "eyot-embed", "kind": "build", "path": "/r/crates/embed" },
                { "name": "eyot-tools", "kind": "dev", "path": "/r/crates/tools" },
                { "name": "serde", "kind": null },
            ],
        }] });
        let edge = |to: &str| Edge { folder: "crates".into(), from: "engine".into(), to: to.into() };
        assert_eq!(between(&metadata), BTreeSet::from([edge("embed"), edge("eyot")]));
    }
}
