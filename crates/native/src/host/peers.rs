//! Programs that Eyot can do without.

use std::collections::BTreeMap;

/// The other sandbox tools to look for: `eyot bench` compares with them, and other providers use
/// them.
const PEERS: [&str; 5] = ["bwrap", "crun", "docker", "qemu-system-x86_64", "runc"];

/// Finds their paths in `PATH`.
pub(super) fn find() -> BTreeMap<String, Option<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let locate = |name: &str| {
        let mut folders = std::env::split_paths(&path);
        let found = folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()));
        found.map(|program| program.to_string_lossy().into_owned())
    };
    PEERS.iter().map(|name| ((*name).to_owned(), locate(name))).collect()
}
