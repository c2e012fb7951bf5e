//! The files with the host's name. The interpreter has such files too, but rebuilds its whole `/etc` for each new name.

use std::path::Path;

/// The directory that lists the files, and their names.
pub(super) const FOLDER: &str = "/etc";
pub(super) const IN_FOLDER: [&str; 2] = ["hostname", "hosts"];

/// Returns the content of such a file, or `None` for any other path.
pub(super) fn content(path: &Path, host_name: &str) -> Option<Vec<u8>> {
    let text = match path.to_str()? {
        "/etc/hostname" | "/proc/sys/kernel/hostname" => format!("{host_name}\n"),
        "/etc/hosts" => format!(
            "127.0.0.1\tlocalhost\n127.0.1.1\t{host_name}\n::1\tlocalhost ip6-localhost ip6-loopback\n"
        ),
        _ => return None,
    };
    Some(text.into_bytes())
}
