//! Programs that Eyot can do without.

use std::collections::BTreeMap;

/// What is looked for: other means to isolate, that `eyot bench` compares with and other providers use.
const PEERS: [&str; 5] = ["bwrap", "crun", "docker", "qemu-system-x86_64", "runc"];

/// Where they are, if they are on the path.
pub(super) fn find() -> BTreeMap<String, Option<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let locate = |name: &str| {
        let mut folders = std::env::split_paths(&path);
        let found = folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()));
        found.map(|program| program.to_string_lossy().into_owned())
    };
    PEERS.iter().map(|name| ((*name).to_owned(), locate(name))).collect()
}
