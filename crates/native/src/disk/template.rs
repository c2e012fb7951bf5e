//! Templates of empty file systems, one for each size. `mkfs.ext4` makes a template once; copying
//! it takes a few small writes.
//!
//! Callers choose the sizes, so only a few templates are kept: those used last, up to a total size.
//! A template of a large disk exceeds that; it is made for one sandbox and not kept.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use crate::image::{aside, is_aside};
use crate::sparse_copy::BLOCK_BYTES;
use crate::state::make_dir;

/// The version of the templates' format. Templates of another version are not used.
const FORM: u32 = 1;
/// The prefix of the names of all templates.
const PREFIX: &str = "disk-";
/// The features of the file system, listed in full so that the host's configuration has no
/// influence. No journal: nothing in a sandbox needs to outlive a crash of the host.
const FEATURES: &str = "none,filetype,sparse_super,large_file,dir_index,ext_attr,extent,flex_bg,huge_file,dir_nlink,\
                        extra_isize,64bit,metadata_csum";
const BYTES_PER_INODE: &str = "8192";

const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin", "/run/current-system/sw/bin"];

/// Finds the program that makes file systems. Not by `PATH`, because it runs as root.
pub(super) fn find_mkfs() -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join("mkfs.ext4")).find(|path| path.is_file())
}

/// The largest number of templates that are kept.
const MOST_KEPT: usize = 8;
/// The largest size of all kept templates together, in bytes. A template of 1 TiB takes 17 MiB.
const MOST_KEPT_BYTES: u64 = 64 << 20;

/// Opens the template of this size (in MiB), and makes it first if need be.
pub(super) fn of_size(layers: &Path, mib: u64, mkfs: &Path) -> io::Result<File> {
    let template = layers.join(format!("{PREFIX}{FORM}-{mib}"));
    match File::open(template.join(IMAGE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => {
            let found = found?;
            note_use(&found);
            return Ok(found);
        }
    }
    let building = aside(&template);
    let made = build(&building, mib, mkfs).and_then(|()| File::open(building.join(IMAGE)));
    let kept = made.and_then(|made| keep(layers, &building, &template, &made).map(|()| made));
    if kept.is_err()
        && let Err(left) = eyot_image::remove_tree(&building)
    {
        tracing::warn!(error = %left, "remove a half-made disk");
    }
    kept
}

/// Notes the time of a use: the templates that were used last are kept.
fn note_use(image: &File) {
    if let Err(error) = image.set_modified(SystemTime::now()) {
        tracing::debug!(%error, "note that a template was used");
    }
}

/// Keeps a new template, unless it is too large or another process was faster, and removes the
/// templates that are then too many. A process that has one of those open can go on using it.
fn keep(layers: &Path, building: &Path, template: &Path, image: &File) -> io::Result<()> {
    let alone = File::open(layers)?;
    flock(&alone, FlockOperation::LockExclusive)?;
    if image.metadata()?.blocks() * BLOCK_BYTES > MOST_KEPT_BYTES || template.exists() {
        return eyot_image::remove_tree(building);
    }
    fs::rename(building, template)?;
    let mut kept = kept(layers)?;
    kept.sort_by_key(|one| (one.folder != template, Reverse(one.used)));
    let mut bytes = 0;
    for (count, one) in kept.iter().enumerate() {
        bytes += one.bytes;
        if count >= MOST_KEPT || bytes > MOST_KEPT_BYTES {
            // By another name first: nobody finds half of one.
            let going = aside(&one.folder);
            fs::rename(&one.folder, &going)?;
            eyot_image::remove_tree(&going)?;
        }
    }
    Ok(())
}

/// A template on the disk.
struct KeptTemplate {
    folder: PathBuf,
    used: SystemTime,
    bytes: u64,
}

/// Lists the templates, those of other format versions included.
fn kept(layers: &Path) -> io::Result<Vec<KeptTemplate>> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(layers)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PREFIX) && !is_aside(&name) {
            let image = fs::metadata(entry.path().join(IMAGE))?;
            let (used, bytes) = (image.modified()?, image.blocks() * BLOCK_BYTES);
            kept.push(KeptTemplate { folder: entry.path(), used, bytes });
        }
    }
    Ok(kept)
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
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("mkfs.ext4: {}: {}", output.status, said.trim())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// A stand-in for `mkfs`: it succeeds, and leaves an image of the right size with nothing in
    /// it.
    const NO_MKFS: &str = "/bin/true";

    /// Makes a template as [`of_size`] does, and has it take `taken_mib` MiB on the disk.
    fn put(layers: &Path, mib: u64, taken_mib: u64) -> File {
        let template = layers.join(format!("{PREFIX}{FORM}-{mib}"));
        let building = aside(&template);
        make_dir(&building, 0o700).unwrap();
        let image =
            File::options().read(true).write(true).create_new(true).open(building.join(IMAGE)).unwrap();
        image.set_len(mib << 20).unwrap();
        for at in 0..taken_mib {
            image.write_all_at(&vec![1; 1 << 20], at << 20).unwrap();
        }
        keep(layers, &building, &template, &image).unwrap();
        image
    }

    fn sizes(layers: &Path) -> Vec<u64> {
        let size =
            |one: KeptTemplate| one.folder.to_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
        let mut sizes: Vec<u64> = kept(layers).unwrap().into_iter().map(size).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn a5_of_many_sizes_the_templates_used_last_are_kept_and_no_more() {
        let layers = tempfile::tempdir().unwrap();
        for mib in 100..120 {
            of_size(layers.path(), mib, Path::new(NO_MKFS)).unwrap();
            // Used again and again.
            of_size(layers.path(), 100, Path::new(NO_MKFS)).unwrap();
        }
        assert_eq!(sizes(layers.path()), [100, 113, 114, 115, 116, 117, 118, 119]);
        assert_eq!(fs::read_dir(layers.path()).unwrap().count(), MOST_KEPT);
    }

    #[test]
    fn a5_templates_take_no_more_than_their_bound_together_and_a_larger_one_is_not_kept() {
        let layers = tempfile::tempdir().unwrap();
        for mib in 100..104 {
            put(layers.path(), mib, 20);
        }
        assert_eq!(sizes(layers.path()), [101, 102, 103]);
        let large = put(layers.path(), 200, 65);
        assert_eq!(sizes(layers.path()), [101, 102, 103]);
        assert_eq!(large.metadata().unwrap().len(), 200 << 20);
        assert_eq!(fs::read_dir(layers.path()).unwrap().count(), 3);
    }

    #[test]
    fn a5_a_template_that_is_removed_while_it_is_copied_is_whole_to_whoever_has_it() {
        let layers = tempfile::tempdir().unwrap();
        let first = put(layers.path(), 50, 1);
        for mib in 100..110 {
            of_size(layers.path(), mib, Path::new(NO_MKFS)).unwrap();
        }
        assert!(!sizes(layers.path()).contains(&50));
        let mut byte = [0];
        first.read_exact_at(&mut byte, (1 << 20) - 1).unwrap();
        assert_eq!((byte, first.metadata().unwrap().len()), ([1], 50 << 20));
    }

    #[test]
    fn a_program_that_fails_leaves_no_template() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of_size(folder.path(), 16, Path::new("/bin/false")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
