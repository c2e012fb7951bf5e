//! The beginning of every sandbox in memory: directories, devices and accounts.

use eyot::Result;

use super::node::{Device, FileNode, NodeContent, NodeId, NodeOwner};
use super::tree::FileTree;
use super::walk::{Last, find};

/// Directories of root's, with their modes.
const OF_ROOT: [(&str, u32); 17] = [
    ("/bin", 0o755),
    ("/dev", 0o755),
    ("/dev/shm", 0o1777),
    ("/etc", 0o755),
    ("/home", 0o755),
    ("/mnt", 0o755),
    ("/opt", 0o755),
    ("/root", 0o700),
    ("/srv", 0o755),
    ("/tmp", 0o1777),
    ("/usr", 0o755),
    ("/usr/bin", 0o755),
    ("/usr/local", 0o755),
    ("/usr/local/bin", 0o755),
    ("/usr/share", 0o755),
    ("/var", 0o755),
    ("/var/tmp", 0o1777),
];
const OF_USER: [&str; 2] = ["/home/user", "/run"];
const DEVICES: [(&str, Device); 5] = [
    ("/dev/null", Device::Null),
    ("/dev/zero", Device::Zero),
    ("/dev/full", Device::Full),
    ("/dev/random", Device::Random),
    ("/dev/urandom", Device::Random),
];
const FILES: [(&str, &str); 3] = [
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\n"),
    ("/etc/group", "root:x:0:\nuser:x:1000:\n"),
    ("/etc/os-release", "PRETTY_NAME=\"Eyot, in memory\"\nNAME=\"Eyot\"\nID=eyot\n"),
];

/// Makes a root with all of it. What has no room in the quota is left out.
pub(super) fn furnished(tree: &mut FileTree, max_bytes: u64) -> NodeId {
    let root = tree.add_apart(NodeOwner::Root, max_bytes);
    if let Err(error) = furnish(tree, root) {
        tracing::warn!(%error, max_bytes, "files in memory have no room for the usual directories");
    }
    root
}

fn furnish(tree: &mut FileTree, root: NodeId) -> Result<()> {
    for (path, mode) in OF_ROOT {
        add(tree, root, path, FileNode { owner: NodeOwner::Root, ..FileNode::directory(mode) })?;
    }
    for path in OF_USER {
        add(tree, root, path, FileNode::directory(0o755))?;
    }
    for (path, device) in DEVICES {
        let node = FileNode::new(NodeContent::Device(device), 0o666);
        add(tree, root, path, FileNode { owner: NodeOwner::Root, ..node })?;
    }
    for (path, text) in FILES {
        add(
            tree,
            root,
            path,
            FileNode { owner: NodeOwner::Root, ..FileNode::file(text.as_bytes().to_vec(), 0o644) },
        )?;
    }
    Ok(())
}

fn add(tree: &mut FileTree, root: NodeId, path: &str, node: FileNode) -> Result<()> {
    let place = find(tree, root, path.as_bytes(), Last::Keep, None)?;
    tree.add_unchecked(&place, node).map(drop)
}

/// Makes a directory of the user's, and those above it that are missing.
pub(super) fn make_directory(tree: &mut FileTree, root: NodeId, path: &str) -> Result<()> {
    let mut at = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at.push('/');
        at.push_str(name);
        let place = find(tree, root, at.as_bytes(), Last::Follow, None)?;
        if place.node.is_none() {
            let owner = if at == path { NodeOwner::User } else { NodeOwner::Root };
            tree.add_unchecked(&place, FileNode { owner, ..FileNode::directory(0o755) })?;
        }
    }
    Ok(())
}

/// The most bytes that one read of `/dev/zero` gives. They take no memory before they are used.
const ZERO_BYTES: usize = 64 << 20;
/// The most bytes that one read of `/dev/urandom` gives.
const RANDOM_BYTES: usize = 4 << 20;

/// Returns what one read of a device gives, perhaps less than all that is asked for.
pub(super) fn device_bytes(device: Device, most: usize) -> Vec<u8> {
    match device {
        Device::Null => Vec::new(),
        Device::Zero | Device::Full => vec![0; most.min(ZERO_BYTES)],
        Device::Random => {
            let mut state = u64::from_le_bytes(seed());
            let words = std::iter::repeat_with(move || {
                // Splitmix64: fast, and no secret in a sandbox hangs on it.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (word ^ (word >> 31)).to_le_bytes()
            });
            words.take(most.min(RANDOM_BYTES).div_ceil(8)).flatten().take(most).collect()
        }
    }
}

fn seed() -> [u8; 8] {
    let mut seed = [0; 8];
    seed.copy_from_slice(&uuid::Uuid::new_v4().into_bytes()[..8]);
    seed
}
