//! `/etc` of the image `host`: generated files, and copies of host files from an allowlist. Secrets
//! and the configuration of the host's own tools (`environment`, `pip.conf`, `npmrc`, `gitconfig`,
//! `apt`) are not on it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::state::make_dir;

/// The host files that are copied, if they exist and are world-readable. A `*` at the end stands
/// for any ending.
const COPIED: [&str; 31] = [
    "alternatives",
    "bindresvport.blacklist",
    "chromium",
    "chromium.d",
    "debian_version",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "java-*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "lsb-release",
    "magic",
    "magic.mime",
    "mime.types",
    "nanorc",
    "networks",
    "openal",
    "os-release",
    "perl",
    "protocols",
    "python3*",
    "rpc",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "vim",
];

const GENERATED: [(&str, &str); 10] = [
    (
        "passwd",
        "root:x:0:0:root:/root:/bin/bash\n\
         daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
         user:x:1000:1000:user:/home/user:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nusers:x:100:\nuser:x:1000:\nnogroup:x:65534:\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n",
    ),
    ("machine-id", ""),
    ("shells", "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n"),
    ("profile", "[ -r /etc/bash.bashrc ] && [ -n \"$BASH\" ] && . /etc/bash.bashrc\n"),
    ("bash.bashrc", "[ -z \"$PS1\" ] || PS1='\\u@\\h:\\w\\$ '\n"),
    ("fstab", ""),
    ("timezone", "Etc/UTC\n"),
    (
        "pam.d/other",
        "auth sufficient pam_rootok.so\nauth required pam_deny.so\naccount required pam_permit.so\n\
         password required pam_unix.so\nsession required pam_permit.so\n",
    ),
];

/// Fills an `etc` that holds at most empty directories, `pam.d` among them.
pub(super) fn fill(etc: &Path) -> io::Result<()> {
    for (name, content) in GENERATED {
        fs::write(etc.join(name), content)?;
    }
    symlink("/proc/sys/kernel/hostname", etc.join("hostname"))?;
    for source in sources()? {
        let Ok(relative) = source.strip_prefix("/etc") else {
            continue;
        };
        let target = etc.join(relative);
        if let Some(parent) = target.parent() {
            make_dir(parent, 0o755)?;
        }
        copy(&source, &target)?;
    }
    Ok(())
}

/// Lists the paths on the host that [`COPIED`] stands for.
fn sources() -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in COPIED {
        match name.strip_suffix('*') {
            None => found.push(Path::new("/etc").join(name)),
            Some(prefix) => {
                for entry in fs::read_dir("/etc")? {
                    let entry = entry?;
                    if entry.file_name().to_string_lossy().starts_with(prefix) {
                        found.push(entry.path());
                    }
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a tree: links as links, regular files and directories if they are world-readable, nothing
/// else.
fn copy(source: &Path, target: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(source) else {
        return Ok(());
    };
    if found.is_symlink() {
        return symlink(fs::read_link(source)?, target);
    }
    if found.is_dir() && found.mode() & 0o005 == 0o005 {
        make_dir(target, 0o755)?;
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            copy(&entry.path(), &target.join(entry.file_name()))?;
        }
    } else if found.is_file() && found.mode() & 0o004 != 0 {
        fs::copy(source, target)?;
        fs::set_permissions(target, fs::Permissions::from_mode(found.mode() & 0o755))?;
    }
    Ok(())
}

/// Computes a number that changes with the host's side of `/etc`, from the path, time and size of
/// each source.
pub(super) fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    for source in sources().unwrap_or_default() {
        if let Ok(found) = fs::symlink_metadata(&source) {
            (source, found.mtime(), found.mtime_nsec(), found.size(), found.ino()).hash(&mut hasher);
        }
    }
    COPIED.hash(&mut hasher);
    GENERATED.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_sets_up_the_hosts_own_tools_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("pam.d")).unwrap();
        fill(dir.path()).unwrap();
        for name in
            ["environment", "pip.conf", "npmrc", "gitconfig", "apt", "shadow", "gshadow", "sudoers", "ssh"]
        {
            assert!(!dir.path().join(name).exists(), "{name}");
        }
        assert_eq!(fs::read(dir.path().join("machine-id")).unwrap(), b"");
    }

    #[test]
    fn what_is_not_world_readable_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (secret, target) = (dir.path().join("secret"), dir.path().join("copy"));
        fs::write(&secret, "x").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
        copy(&secret, &target).unwrap();
        assert!(!target.exists());
    }
}
