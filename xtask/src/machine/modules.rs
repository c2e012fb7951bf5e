//! The kernel's modules that the machine needs, in the order in which they can be loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules to load: disks, the file systems of sandboxes, loop devices, and networks of tests.
const NEEDED: [&str; 6] = ["virtio_mmio", "virtio_blk", "overlay", "loop", "veth", "dummy"];

/// The modules' names and files, each after those that it depends on.
///
/// # Errors
/// A module that is nowhere below `folder`, or can't be read.
pub fn in_order(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let mut known = BTreeMap::new();
    collect(folder, &mut known).map_err(|error| format!("read {}: {error}", folder.display()))?;
    let mut order = Vec::new();
    for name in NEEDED {
        add(name, &known, &mut order)?;
    }
    Ok(order)
}

fn collect(folder: &Path, into: &mut BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if fs::symlink_metadata(&path)?.is_dir() {
            collect(&path, into)?;
        } else if let Some(name) = name.strip_suffix(".ko") {
            // In names of modules `-` and `_` are the same.
            into.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

fn add(
    name: &str,
    known: &BTreeMap<String, PathBuf>,
    order: &mut Vec<(String, PathBuf)>,
) -> Result<(), String> {
    if order.iter().any(|(added, _)| added == name) {
        return Ok(());
    }
    let path = known.get(name).ok_or_else(|| format!("the kernel has no module `{name}`"))?;
    let bytes = fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))?;
    for needed in depends(&bytes) {
        add(&needed.replace('-', "_"), known, order)?;
    }
    order.push((name.to_owned(), path.clone()));
    Ok(())
}

/// Returns the dependencies that a module names: `depends=a,b` among the NUL-terminated texts in
/// it.
fn depends(module: &[u8]) -> Vec<String> {
    const MARK: &[u8] = b"\0depends=";
    let Some(at) = module.windows(MARK.len()).position(|window| window == MARK) else {
        return Vec::new();
    };
    let text: Vec<u8> = module[at + MARK.len()..].iter().copied().take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_depends_on_is_read_from_it() {
        assert_eq!(depends(b"x\0depends=virtio_ring,virtio\0y"), ["virtio_ring", "virtio"]);
        assert!(depends(b"x\0depends=\0").is_empty() && depends(b"").is_empty());
    }
}
