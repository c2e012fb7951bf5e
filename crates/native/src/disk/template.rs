//! An empty file system of each size, made once by `mkfs.ext4` and then copied: a copy is a few small writes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::image::aside;
use crate::state::make_dir;

/// Counts the forms that templates have had: one of another form is not used.
const FORM: u32 = 1;
/// Named one by one, so that they do not depend on the host's configuration. No journal: nothing outlives a crash here.
const FEATURES: &str = "none,filetype,sparse_super,large_file,dir_index,ext_attr,extent,flex_bg,huge_file,dir_nlink,\
                        extra_isize,64bit,metadata_csum";
const BYTES_PER_INODE: &str = "8192";

const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin", "/run/current-system/sw/bin"];

/// Where the program is that makes file systems. Not by `PATH`: it runs as root.
pub(super) fn find_mkfs() -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join("mkfs.ext4")).find(|path| path.is_file())
}

/// The template of this size, in MiB; made if need be.
pub(super) fn of_size(layers: &Path, mib: u64, mkfs: &Path) -> io::Result<File> {
    let template = layers.join(format!("disk-{FORM}-{mib}"));
    if !template.exists() {
        let building = aside(&template);
        let built = build(&building, mib, mkfs).and_then(|()| match fs::rename(&building, &template) {
            // Another process was faster.
            Err(_) if template.exists() => eyot_image::remove_tree(&building),
            other => other,
        });
        if let Err(error) = built {
            if let Err(left) = eyot_image::remove_tree(&building) {
                tracing::warn!(error = %left, "remove a half-made disk");
            }
            return Err(error);
        }
    }
    File::open(template.join(IMAGE))
}

const IMAGE: &str = "image";

fn build(folder: &Path, mib: u64, mkfs: &Path) -> io::Result<()> {
    make_dir(folder, 0o700)?;
    let path = folder.join(IMAGE);
    File::create_new(&path)?.set_len(mib << 20)?;
    let mut command = Command::new(mkfs);
    command.args(["-q", "-F", "-b", "4096", "-I", "256", "-m", "0", "-i", BYTES_PER_INODE, "-O", FEATURES]);
    command.args(["-E", "lazy_itable_init=1,nodiscard,root_owner=0:0"]).arg(&path);
    let output = command.env_clear().stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("mkfs.ext4: {}: {}", output.status, said.trim())))
        }
    }
}

/// Makes an empty file a copy of another one, holes included.
pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
    // Where the host's file system can, both share what they have until one changes.
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    to.set_len(from.metadata()?.len())?;
    let mut at = 0;
    loop {
        let start = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(from, SeekFrom::Hole(start))?;
        copy_extent(from, to, start, at)?;
    }
}

fn copy_extent(from: &File, to: &File, mut at: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; 128 * 1024];
    while at < end {
        let wanted = usize::try_from(end - at).map_or(buffer.len(), |left| left.min(buffer.len()));
        from.read_exact_at(&mut buffer[..wanted], at)?;
        to.write_all_at(&buffer[..wanted], at)?;
        at += wanted as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_has_the_same_bytes_and_the_same_holes() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            File::options().read(true).write(true).create_new(true).open(folder.path().join(name)).unwrap()
        };
        let (from, to) = (open("from"), open("to"));
        from.set_len(64 << 20).unwrap();
        for (at, text) in [(0, "first"), (5 << 20, "second"), ((64 << 20) - 4, "last")] {
            from.write_all_at(text.as_bytes(), at).unwrap();
        }
        copy(&from, &to).unwrap();
        let [a, b] = ["from", "to"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(a == b);
        assert!(to.metadata().unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn a_program_that_fails_leaves_no_template() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of_size(folder.path(), 16, Path::new("/bin/false")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
