//! The directory of a new sandbox. It takes the writes to the root file system, and must hold the
//! mount points before that is mounted.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use eyot::internal::system_reason;
use eyot::{Error, NetworkMode, Result, SandboxPath, ValidSpec, WorkspaceSpec};

use crate::cow_mount::{CowMount, mount_below};
use crate::egress::RESOLV_CONF;
use crate::image::{Image, MountPoints, read_of_image};
use crate::plan::{IdMap, RANGE_LEN};
use crate::setup::{device_files, host_name, hosts, mount_points};
use crate::state::{StateDir, make_child, overlap};
use crate::users::{GROUP_LINE, PASSWD_LINE, SandboxUsers};

/// The data from which a sandbox's directory is filled. Everything in `upper` belongs to the inner
/// root or the inner user. No other process has written to it yet, so paths below it hold no links.
pub(crate) struct Layout<'a> {
    pub directory: &'a Path,
    /// The folder that holds `upper` and `work`: the sandbox's directory, or its own disk.
    pub files: &'a Path,
    pub spec: &'a ValidSpec,
    /// The canonical sources of the mounts, as [`check_mounts`] returned them.
    pub sources: &'a [String],
    /// The mounts with a copy on write.
    pub cow: &'a [CowMount],
    pub image: &'a Image,
    pub users: &'a SandboxUsers,
    pub map: IdMap,
    /// The permission bits of directories in `upper`, to be set once everything is made: some keep their owner from writing.
    pub modes: RefCell<Vec<(PathBuf, u32)>>,
}

impl Layout<'_> {
    /// Makes `upper`, `work`, and the mount points.
    pub(crate) fn make(&self) -> io::Result<()> {
        for name in ["upper", "work"] {
            make_child(&self.files.join(name), 0o755)?;
            self.give(&self.files.join(name), 0)?;
        }
        self.close()?;
        let home = SandboxPath::parse(&self.users.default.home).unwrap_or_else(|_| SandboxPath::root());
        self.own_directory(self.spec.workdir())?;
        self.own_directory(&home)?;
        self.write_etc()?;
        if self.image.mount_points == MountPoints::Own {
            self.make_mount_points()?;
        }
        let mut mounts = self.spec.spec().mounts.iter().zip(self.sources);
        mounts.try_for_each(|(mount, source)| self.make_target(source.as_ref(), &mount.target))?;
        self.make_copies()?;
        // Those above come last.
        self.modes.take().into_iter().rev().try_for_each(|(made, mode)| set_mode(&made, mode))
    }

    /// Closes the sandbox's directory to other users of the host. A range's inner root, who is
    /// another user to the host, must be able to enter. Without a range, set-id programs in it
    /// would belong to the caller.
    pub(crate) fn close(&self) -> io::Result<()> {
        let mode = if let IdMap::Range(_) = self.map { 0o711 } else { 0o700 };
        set_mode(self.directory, mode)
    }

    /// Makes a directory that belongs to the inner user, unless the image has it.
    fn own_directory(&self, path: &SandboxPath) -> io::Result<()> {
        let below = &path.as_str()[1..];
        if below.is_empty()
            || (self.image.is_skeleton() && Path::new(&self.image.lower.folder).join(below).is_dir())
        {
            return Ok(());
        }
        let made = self.upper_dir(path)?;
        let uid = self.users.default.uid;
        self.give(&made, uid)
    }

    /// Makes a directory and its parents in `upper`. One that the image has looks as it does there, because it hides that. The
    /// others belong to whoever has the directory that they are in.
    fn upper_dir(&self, path: &SandboxPath) -> io::Result<PathBuf> {
        let upper = self.files.join("upper");
        let mut below = PathBuf::new();
        for part in path.as_str()[1..].split('/').filter(|part| !part.is_empty()) {
            let parent = upper.join(&below);
            below.push(part);
            let made = upper.join(&below);
            match fs::create_dir(&made) {
                Ok(()) => self.take_after(&made, &below, &parent)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(upper.join(below))
    }

    /// Gives a new directory of `upper` the owner and the permission bits of the image's, or the owner of its parent.
    fn take_after(&self, made: &Path, below: &Path, parent: &Path) -> io::Result<()> {
        let Some(of_image) = self.image.directory(below)? else {
            let parent = fs::metadata(parent)?;
            return match self.map {
                IdMap::Single { .. } => Ok(()),
                IdMap::Range(_) => chown(made, Some(parent.uid()), Some(parent.gid())),
            };
        };
        self.modes.borrow_mut().push((made.to_owned(), of_image.mode));
        self.give_to(made, of_image.uid, of_image.gid)
    }

    fn upper_file(&self, path: &SandboxPath, content: &[u8]) -> io::Result<()> {
        let made = self.upper_dir(&path.parent())?.join(path.file_name());
        fs::write(&made, content)?;
        set_mode(&made, 0o644)?;
        self.give(&made, 0)
    }

    fn make_mount_points(&self) -> io::Result<()> {
        for path in mount_points(self.spec) {
            let made = self.upper_dir(&path)?;
            if matches!(path.as_str(), "/tmp" | "/var/tmp") {
                let mut modes = self.modes.borrow_mut();
                modes.retain(|(known, _)| *known != made);
                modes.push((made, 0o1777));
            }
        }
        for file in device_files() {
            self.upper_file(&absolute(&file)?, b"")?;
        }
        for (name, target) in crate::image::DEVICE_LINKS {
            let link = self.files.join("upper").join(name);
            std::os::unix::fs::symlink(target, &link)?;
        }
        Ok(())
    }

    /// Writes files of `/etc`. A sandbox with the host's network gets its name servers. In an image
    /// that is not ours also the host name, its line in `hosts`, and the default user if it is
    /// missing are written.
    fn write_etc(&self) -> io::Result<()> {
        match self.spec.spec().network {
            NetworkMode::Host => {
                let servers = fs::read("/etc/resolv.conf").unwrap_or_default();
                self.upper_file(&absolute("etc/resolv.conf")?, &servers)?;
            }
            NetworkMode::Egress => {
                self.upper_file(&absolute("etc/resolv.conf")?, RESOLV_CONF.as_bytes())?;
            }
            // The other is refused before anything is made.
            NetworkMode::None | NetworkMode::Bridge => {}
        }
        if self.image.is_skeleton() {
            return Ok(());
        }
        if self.image.mount_points == MountPoints::Own {
            self.upper_file(&absolute("etc/hosts")?, hosts(self.spec).as_bytes())?;
            self.upper_file(&absolute("etc/hostname")?, host_name(self.spec).as_bytes())?;
        }
        // A snapshot has them since its sandbox was made.
        if self.users.missing && self.image.lower.snapshots.is_empty() {
            for (file, line) in [("etc/passwd", PASSWD_LINE), ("etc/group", GROUP_LINE)] {
                let mut text = read_of_image(&self.image.lower, file)?;
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(line);
                self.upper_file(&absolute(file)?, text.as_bytes())?;
            }
        }
        Ok(())
    }

    fn make_target(&self, source: &Path, target: &SandboxPath) -> io::Result<()> {
        if self.image.is_skeleton() && is_in_usr(target) {
            return Ok(());
        }
        if fs::metadata(source)?.is_dir() {
            self.upper_dir(target).map(drop)
        } else {
            self.upper_file(target, b"")
        }
    }

    /// Gives a path to an inner uid and the same gid.
    pub(crate) fn give(&self, path: &Path, inner: u32) -> io::Result<()> {
        self.give_to(path, inner, inner)
    }

    /// Gives a path to an inner uid and gid; those that no sandbox has are root's.
    pub(crate) fn give_to(&self, path: &Path, uid: u32, gid: u32) -> io::Result<()> {
        let IdMap::Range(range) = self.map else { return Ok(()) };
        let host_id = |inner| range.host_id(if inner < RANGE_LEN { inner } else { 0 });
        chown(path, Some(host_id(uid)), Some(host_id(gid)))
    }
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Tells whether a path is in `/usr`, which is the host's own and read-only where the image is `host`.
fn is_in_usr(path: &SandboxPath) -> bool {
    Path::new(path.as_str()).starts_with("/usr")
}

fn absolute(path: &str) -> io::Result<SandboxPath> {
    SandboxPath::parse(&format!("/{path}")).map_err(io::Error::other)
}

/// Checks the caller's mounts against the host and the image. Returns the canonical path of each
/// source, in the order of the mounts. These checked paths are the ones to bind.
///
/// # Errors
/// `Invalid`, with the field's name: if a source is missing, is neither a directory nor a regular
/// file, or would show a part of the state folder inside; or if it can't be mounted onto its target.
pub(crate) fn check_mounts(spec: &ValidSpec, state: &StateDir, image: &Image) -> Result<Vec<String>> {
    let mut sources = Vec::new();
    for mount in &spec.spec().mounts {
        let source = check_source(&mount.source, state)?;
        check_target(&mount.target, source.as_ref(), spec, image)?;
        if mount.cow {
            check_copied(source.as_ref())?;
        }
        sources.push(source);
    }
    Ok(sources)
}

/// Checks that a source can be mounted onto a target.
fn check_target(target: &SandboxPath, source: &Path, spec: &ValidSpec, image: &Image) -> Result<()> {
    let invalid = |reason: &str| Err(Error::invalid("mounts.target", reason));
    let persistent = matches!(spec.spec().workspace, WorkspaceSpec::Persistent { .. });
    if persistent && target.strip_prefix(spec.workdir()).is_some() {
        return invalid("must not be in a persistent workspace");
    }
    if image.is_skeleton() && is_in_usr(target) && !Path::new(target.as_str()).exists() {
        return Err(Error::invalid("mounts.target", "must exist when it is in `/usr`, which is read-only")
            .with_hint("choose a target outside of it, such as /mnt/data"));
    }
    if spec.workdir().strip_prefix(target).is_some() && !source.is_dir() {
        return invalid("is where commands start, so its source must be a directory");
    }
    Ok(())
}

/// Checks that a folder can be copied on write.
fn check_copied(source: &Path) -> Result<()> {
    let invalid =
        |reason: String| Error::invalid("mounts.source", format!("`{}` {reason}", source.display()));
    if !source.is_dir() {
        return Err(invalid("must be a directory to be copied on write".to_owned()));
    }
    let table = fs::read_to_string("/proc/self/mountinfo");
    let table = table.map_err(|error| invalid(format!("can't be looked at: {}", system_reason(&error))))?;
    match mount_below(&table, source) {
        None => Ok(()),
        Some(below) => {
            let reason = format!("has another file system below it, at `{}`", below.display());
            Err(invalid(reason)
                .with_hint("mount a folder without one: a copy on write shows one file system"))
        }
    }
}

/// Refuses the source of a mount that has something of a state folder, before there is one. Every create refuses it.
pub fn refuse_state_folder(source: &Path, state: &Path) -> Result<()> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if overlap(&canonical(state), &canonical(source)) { Err(of_state_folder(source)) } else { Ok(()) }
}

fn of_state_folder(source: &Path) -> Error {
    let reason = format!("`{}` contains Eyot's state folder, or lies inside it", source.display());
    Error::invalid("mounts.source", reason)
        .with_hint("mount another folder, or keep the sandboxes elsewhere with --state DIR")
}

/// Returns the canonical path of a mount's source.
fn check_source(source: &Path, state: &StateDir) -> Result<String> {
    let invalid = |reason: &str| Error::invalid("mounts.source", format!("`{}` {reason}", source.display()));
    let failed = |error: io::Error| {
        Error::invalid("mounts.source", format!("`{}`: {}", source.display(), system_reason(&error)))
    };
    let canonical = source.canonicalize().map_err(failed)?;
    let found = fs::symlink_metadata(&canonical).map_err(failed)?;
    if !found.is_dir() && !found.is_file() {
        return Err(invalid("is neither a directory nor a regular file"));
    }
    if canonical.starts_with("/sys") {
        return Err(invalid("is in `/sys`, which sandboxes do not have"));
    }
    // A sandbox's own shows none of the host's processes, and its kernel's settings can't be written.
    if canonical.starts_with("/proc") {
        return Err(invalid("is in `/proc`, of which sandboxes have their own"));
    }
    if state.overlaps(&canonical) {
        return Err(of_state_folder(source));
    }
    let not_utf8 = |_| Error::invalid("mounts.source", "must be a path in UTF-8");
    canonical.into_os_string().into_string().map_err(not_utf8)
}
