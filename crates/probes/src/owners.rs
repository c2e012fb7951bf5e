//! K17: what a sandbox leaves on the host's disk, in a folder that is mounted writable and in a
//! persistent workspace: whose it is, and what it may do. The image's `passwd` and `group` are the
//! attacker's, and so is the name of the user.

use std::ffi::CString;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{
    Command, ErrorKind, ExecOptions, Mount, PtySize, SandboxPath, SandboxSpec, StartOptions, TarInOptions,
    WorkspaceSpec, WriteOptions,
};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::check::{Check, cases, ensure, not_here, promptly};
use crate::facts::{note, tried};
use crate::sys;
use crate::tar::TarBuilder;
use crate::world::{Stage, World};

cases! {
    k17_files_in_a_mounted_folder_have_one_owner_whatever_the_image_says(world);
    k17_files_in_a_persistent_workspace_never_have_the_hosts_ids(world);
    k17_no_set_id_bit_is_left_on_the_host(world);
    k17_no_security_attribute_is_left_on_the_host(world);
    k17_everybody_but_the_user_gets_an_error_in_a_mounted_folder(world);
}

/// The owner on disk of what a sandbox of root's writes to a mounted folder.
const OWNER: u32 = 1000;
/// The name of the persistent workspace.
const WORKSPACE: &str = "k17";
/// The set-user-ID and the set-group-ID bit.
const SET_ID: u32 = 0o6000;

/// An image's lists of users and groups, and the user that the sandbox is made with.
struct ImageUsers {
    name: &'static str,
    passwd: &'static str,
    group: &'static str,
    user: Option<&'static str>,
    /// Only a range of ids has such a user.
    needs_range: bool,
}

const USERS: [ImageUsers; 6] = [
    ImageUsers { name: "plain", passwd: "", group: "", user: None, needs_range: false },
    ImageUsers {
        name: "number",
        passwd: "1000:x:0:0::/root:/bin/sh\n",
        group: "",
        user: Some("1000"),
        needs_range: false,
    },
    ImageUsers {
        name: "named",
        passwd: "user:x:0:0::/root:/bin/sh\n",
        group: "",
        user: Some("user"),
        needs_range: false,
    },
    ImageUsers {
        name: "gid-0",
        passwd: "user:x:1000:0::/home/user:/bin/sh\n",
        group: "",
        user: None,
        needs_range: false,
    },
    ImageUsers {
        name: "group-0",
        passwd: "user:x:1000:1000::/home/user:/bin/sh\n",
        group: "root:x:0:user,1000\n",
        user: Some("1000:0"),
        needs_range: true,
    },
    ImageUsers { name: "root", passwd: "", group: "", user: Some("root"), needs_range: true },
];

/// Sandboxes in which everything was tried, and what they have left on the host.
struct LeftFiles {
    /// The expected owner of files in a mounted folder.
    owner: (u32, u32),
    mounted: Vec<HostFile>,
    workspace: Vec<HostFile>,
}

/// A file on the host.
struct HostFile {
    path: PathBuf,
    uid: u32,
    gid: u32,
    mode: u32,
    attributes: Vec<String>,
}

type LeftFilesByCase = Vec<(&'static str, LeftFiles)>;

impl std::fmt::Display for HostFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, uid, gid, mode, attributes } = self;
        write!(f, "{} ({uid}:{gid}, mode {mode:o}, {attributes:?})", path.display())
    }
}

/// Tries everything in a sandbox of each kind of users, once for all cases.
async fn files_of_all_cases(world: &World) -> Check<&'static LeftFilesByCase> {
    static LEFT: OnceCell<LeftFilesByCase> = OnceCell::const_new();
    world.need_native("this provider mounts no folder of the host")?;
    LEFT.get_or_try_init(|| try_everything(world)).await
}

async fn try_everything(world: &World) -> Check<LeftFilesByCase> {
    let mut all = Vec::new();
    for users in &USERS {
        if users.needs_range && !rustix::process::geteuid().is_root() {
            continue;
        }
        all.push((users.name, files_of_case(world, users).await?));
    }
    Ok(all)
}

async fn files_of_case(world: &World, users: &ImageUsers) -> Check<LeftFiles> {
    let folders = CaseFolders::make(world, users)?;
    let stage = world.stage_of(folders.spec(world, users)?).await?;
    for who in [None, Some("root")] {
        attack_in_every_way(&stage, who).await?;
    }
    for who in ["0", "1000", "user", "4321", "1000:0"] {
        attack_as(&stage, Some(who), "own").await?;
    }
    write_from_outside(&stage).await?;
    let workspace = world.state().join("workspaces").join(WORKSPACE);
    let mounted = files_below(&folders.mounted)?;
    let workspace = files_below(&workspace)?;
    stage.end().await?;
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let owner = if me.0 == 0 { (OWNER, OWNER) } else { me };
    for (place, found) in [("folder", &mounted), ("workspace", &workspace)] {
        ensure!(found.len() >= 20, "{}: only {} files were made in the {place}", users.name, found.len());
    }
    Ok(LeftFiles { owner, mounted, workspace })
}

/// Attacks by a command that becomes other users, a terminal and a started process, as this user or
/// the sandbox's own.
async fn attack_in_every_way(stage: &Stage, who: Option<&str>) -> Check {
    if !attack_as(stage, who, "all").await? {
        return Ok(());
    }
    let user = who.map(str::to_owned);
    let options = ExecOptions { pty: Some(PtySize::default()), user: user.clone(), ..ExecOptions::default() };
    let result = stage.sandbox.exec(attack(who, "terminal", "own"), options).await?;
    ensure!(result.success(), "{who:?}, terminal: {}", result.stdout_text());
    let options = StartOptions { user, ..StartOptions::default() };
    let started = stage.sandbox.start(attack(who, "started", "own"), options).await?;
    promptly("a started process", stage.sandbox.wait(started.id)).await??;
    Ok(())
}

/// Attacks by a command of this user. Returns `false` if there is no user of that name.
async fn attack_as(stage: &Stage, who: Option<&str>, ids: &str) -> Check<bool> {
    let options = ExecOptions { user: who.map(str::to_owned), ..ExecOptions::default() };
    match stage.sandbox.exec(attack(who, "exec", ids), options).await {
        Ok(result) => {
            ensure!(result.success(), "{who:?}: {}", result.stderr_text());
            Ok(true)
        }
        Err(error) => {
            let nobody = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported);
            ensure!(who.is_some() && nobody, "{who:?}: {error}");
            Ok(false)
        }
    }
}

fn attack(who: Option<&str>, how: &str, ids: &str) -> Command {
    let tag = format!("{}-{how}", who.unwrap_or("default").replace(':', "-"));
    Stage::attack(&["owners", &tag, ids])
}

/// Writes from outside, as the guest does for callers.
async fn write_from_outside(stage: &Stage) -> Check {
    for folder in ["/shared", "/workspace"] {
        let program = format!("{folder}/written");
        for permissions in [0o4755, 0o2755, 0o6777] {
            let options = WriteOptions { permissions: Some(permissions), ..WriteOptions::default() };
            // Refused or not: what is there afterwards counts.
            match stage.sandbox.write_with(&format!("{program}-{permissions:o}"), "x", options).await {
                Ok(_) | Err(_) => {}
            }
        }
        stage.sandbox.write(&program, "x").await?;
        let tar = TarBuilder::default().program("unpacked", 0o6755).finish();
        stage.sandbox.tar_in(folder, tar, TarInOptions::default()).await?;
    }
    Ok(())
}

/// The folders of a case on the host.
struct CaseFolders {
    _all: TempDir,
    image: PathBuf,
    mounted: PathBuf,
}

impl CaseFolders {
    /// Makes an image with these users over the host's own programs, and a folder to be mounted.
    /// Everybody may write in the folder. It holds one that belongs to the user who runs the case,
    /// and files of that user.
    fn make(world: &World, users: &ImageUsers) -> Check<Self> {
        let all = tempfile::tempdir_in(world.scratch())?;
        let (image, mounted) = (all.path().join("image"), all.path().join("mounted"));
        std::fs::create_dir_all(image.join("etc"))?;
        for name in ["bin", "sbin", "lib", "lib64"] {
            let target = Path::new("usr").join(name);
            if std::fs::read_link(Path::new("/").join(name)).ok() != Some(target.clone()) {
                return not_here(format!("this host's `/{name}` is not a link to `/usr/{name}`"));
            }
            std::fs::create_dir_all(image.join(&target))?;
            symlink(&target, image.join(name))?;
        }
        let root = "root:x:0:0:root:/root:/bin/sh\n";
        std::fs::write(image.join("etc/passwd"), format!("{}{root}", users.passwd))?;
        std::fs::write(image.join("etc/group"), format!("{}root:x:0:\n", users.group))?;
        std::fs::create_dir_all(mounted.join("of-the-caller"))?;
        for folder in [mounted.join("of-the-caller"), mounted.clone()] {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777))?;
        }
        if rustix::process::geteuid().is_root() {
            chown(&mounted, Some(OWNER), Some(OWNER))?;
        }
        Ok(Self { _all: all, image, mounted })
    }

    fn spec(&self, world: &World, users: &ImageUsers) -> Check<SandboxSpec> {
        let mut spec = world.spec();
        spec.image = Some(self.image.to_string_lossy().into_owned());
        spec.user = users.user.map(str::to_owned);
        let mut mount = |source: &Path, target: &str, writable| -> Check {
            let target = SandboxPath::parse(target)?;
            spec.mounts.push(Mount { source: source.to_owned(), target, writable, cow: false });
            Ok(())
        };
        mount(Path::new("/usr"), "/usr", false)?;
        mount(&self.mounted, "/shared", true)?;
        spec.workspace =
            WorkspaceSpec::Persistent { id: WORKSPACE.to_owned(), destroy_on_session_destroy: true };
        Ok(spec)
    }
}

/// Everything below a folder of the host, but for the folders that were there before.
fn files_below(folder: &Path) -> Check<Vec<HostFile>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata()?;
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            if path.file_name().is_none_or(|name| name != "of-the-caller") {
                let attributes = attributes(&path)?;
                let (uid, gid, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
                found.push(HostFile { path, uid, gid, mode, attributes });
            }
        }
    }
    Ok(found)
}

fn attributes(path: &Path) -> Check<Vec<String>> {
    let mut names = vec![0_u8; 64 << 10];
    let length = rustix::fs::llistxattr(path, &mut names[..]).map_err(std::io::Error::from)?;
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

async fn k17_files_in_a_mounted_folder_have_one_owner_whatever_the_image_says(world: Arc<World>) -> Check {
    for (users, left) in files_of_all_cases(&world).await? {
        for found in &left.mounted {
            ensure!((found.uid, found.gid) == left.owner, "{users}: {found}, not of {:?}", left.owner);
        }
    }
    Ok(())
}

async fn k17_files_in_a_persistent_workspace_never_have_the_hosts_ids(world: Arc<World>) -> Check {
    for (users, left) in files_of_all_cases(&world).await? {
        let is_range = left.owner == (OWNER, OWNER) && rustix::process::geteuid().is_root();
        for found in &left.workspace {
            let fits = if is_range {
                found.uid >= 65_536 && found.gid >= 65_536
            } else {
                (found.uid, found.gid) == left.owner
            };
            ensure!(fits, "{users}: {found}");
        }
    }
    Ok(())
}

async fn k17_no_set_id_bit_is_left_on_the_host(world: Arc<World>) -> Check {
    for (users, left) in files_of_all_cases(&world).await? {
        for found in left.mounted.iter().chain(&left.workspace) {
            ensure!(found.mode & SET_ID == 0, "{users}: {found}");
        }
    }
    Ok(())
}

async fn k17_no_security_attribute_is_left_on_the_host(world: Arc<World>) -> Check {
    for (users, left) in files_of_all_cases(&world).await? {
        for found in left.mounted.iter().chain(&left.workspace) {
            // A label is the host's own.
            let forbidden = |name: &String| {
                (name.starts_with("security.") && name != "security.selinux") || name.starts_with("trusted.")
            };
            ensure!(!found.attributes.iter().any(forbidden), "{users}: {found}");
        }
    }
    Ok(())
}

async fn k17_everybody_but_the_user_gets_an_error_in_a_mounted_folder(world: Arc<World>) -> Check {
    world.need_native("this provider mounts no folder of the host")?;
    if !rustix::process::geteuid().is_root() {
        return not_here("an ordinary user's sandbox has one user");
    }
    let folders = CaseFolders::make(&world, &USERS[0])?;
    let stage = world.stage_of(folders.spec(&world, &USERS[0])?).await?;
    stage.probe(&["create", "/shared/by-the-user"]).await?.is("create", "ok")?;
    for who in ["root", "4321", "33"] {
        stage.probe_as(who, &["create", "/shared/by-another"]).await?.is("create", "EOVERFLOW")?;
    }
    // It may read what is there, and where it has the capability, write to it: the owner stays.
    let line = "cat /shared/by-the-user && echo more >> /shared/by-the-user";
    let result = stage.sh_as("root", line).await?;
    ensure!(result.success(), "{}", result.stderr_text());
    let found = files_below(&folders.mounted)?;
    ensure!(found.len() == 1, "{} files were made", found.len());
    ensure!((found[0].uid, found[0].gid) == (OWNER, OWNER), "{}", found[0]);
    stage.end().await
}

/// Makes one file.
pub fn create(arguments: &[String]) {
    let Some(path) = arguments.first().and_then(|path| CString::new(path.as_str()).ok()) else { return };
    let flags = (libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY) as u64;
    tried("create", sys::call(libc::SYS_open, &[sys::address(&path), flags, 0o666]));
}

/// The identities that the attacker takes, as far as it may: user, group.
const IDENTITIES: [(u64, u64); 5] = [(0, 0), (1000, 1000), (1000, 0), (0, 1000), (33, 33)];

/// Makes files in every way that there is; with `all` also as everybody whom it can become. The
/// first argument tells its files apart.
pub fn probe(arguments: &[String]) {
    let [tag, ids] = arguments else { return };
    tried("umask", sys::call(libc::SYS_umask, &[0]));
    make_everything(&format!("/shared/of-the-caller/{tag}"));
    for folder in ["/shared", "/workspace"] {
        make_everything(&format!("{folder}/{tag}"));
        for (uid, gid) in IDENTITIES.into_iter().filter(|_| ids == "all") {
            for way in [become_wholly, become_for_files] {
                let made = sys::fork(|| {
                    way(uid, gid);
                    make_everything(&format!("{folder}/{tag}-{uid}-{gid}"));
                    0
                });
                tried("fork", made.map(sys::wait));
            }
        }
    }
}

/// With no capability left.
fn become_wholly(uid: u64, gid: u64) {
    let mut groups = [0_u8; 4];
    tried("setgroups", sys::call(libc::SYS_setgroups, &[1, sys::buffer(&mut groups)]));
    tried("setresgid", sys::call(libc::SYS_setresgid, &[gid, gid, gid]));
    tried("setresuid", sys::call(libc::SYS_setresuid, &[uid, uid, uid]));
}

/// With those capabilities left that are not about files.
fn become_for_files(uid: u64, gid: u64) {
    tried("setfsgid", sys::call(libc::SYS_setfsgid, &[gid]));
    tried("setfsuid", sys::call(libc::SYS_setfsuid, &[uid]));
}

/// Numbers that this version of libc does not have.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const FILE_SETATTR: i64 = 469;

/// The attempts on one file.
struct FileAttempt<'a>(&'a str);

impl FileAttempt<'_> {
    fn path(&self, name: &str) -> CString {
        CString::new(format!("{}-{name}", self.0)).unwrap_or_default()
    }

    fn say<T>(&self, name: impl Display, result: Result<T, i32>) {
        tried(format_args!("{name}"), result);
    }

    /// A program without any of the forbidden.
    fn fresh(&self, name: &str) -> (CString, u64) {
        let path = self.path(name);
        let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
        let opened = sys::call(libc::SYS_open, &[sys::address(&path), flags, 0o755]);
        (path, opened.map_or(u64::MAX, |fd| fd as u64))
    }

    fn make(&self, mode: u64) {
        let at = libc::AT_FDCWD as u64;
        let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
        let regular = u64::from(libc::S_IFREG) | mode;
        let path = |name: &str| self.path(&format!("{name}-{mode:o}"));
        let call = |name: &str, number, arguments: &[u64]| self.say(name, sys::call(number, arguments));
        call("open", libc::SYS_open, &[sys::address(&path("open")), flags, mode]);
        call("creat", libc::SYS_creat, &[sys::address(&path("creat")), mode]);
        call("openat", libc::SYS_openat, &[at, sys::address(&path("openat")), flags, mode]);
        call("mknod", libc::SYS_mknod, &[sys::address(&path("mknod")), regular, 0]);
        call("mknodat", libc::SYS_mknodat, &[at, sys::address(&path("mknodat")), regular, 0]);
        let fifo = u64::from(libc::S_IFIFO) | mode;
        call("mkfifo", libc::SYS_mknod, &[sys::address(&path("mkfifo")), fifo, 0]);
        call("mkdir", libc::SYS_mkdir, &[sys::address(&path("mkdir")), mode]);
        call("mkdirat", libc::SYS_mkdirat, &[at, sys::address(&path("mkdirat")), mode]);
        call("symlink", libc::SYS_symlink, &[sys::address(c"/etc/passwd"), sys::address(&path("symlink"))]);
        let mut how = [flags, mode, 0].map(u64::to_ne_bytes).concat();
        let how = sys::buffer(&mut how);
        call("openat2", libc::SYS_openat2, &[at, sys::address(&path("openat2")), how, 24]);
        self.unnamed(&path("tmpfile"), mode);
        let socket =
            std::os::unix::net::UnixListener::bind(std::ffi::OsStr::from_bytes(path("socket").to_bytes()));
        self.say("socket", socket.map_err(|error| error.raw_os_error().unwrap_or(0)));
    }

    /// A file that gets its name last.
    fn unnamed(&self, path: &CString, mode: u64) {
        let folder = Path::new(self.0).parent().unwrap_or(Path::new("/"));
        let folder = CString::new(folder.as_os_str().as_bytes()).unwrap_or_default();
        let flags = (libc::O_TMPFILE | libc::O_RDWR) as u64;
        let opened = sys::call(libc::SYS_open, &[sys::address(&folder), flags, mode]);
        if let Ok(fd) = opened {
            let at = libc::AT_FDCWD as u64;
            let itself = CString::new(format!("/proc/self/fd/{fd}")).unwrap_or_default();
            let follow = libc::AT_SYMLINK_FOLLOW as u64;
            let arguments = [at, sys::address(&itself), at, sys::address(path), follow];
            self.say("link", sys::call(libc::SYS_linkat, &arguments));
        }
        self.say("tmpfile", opened);
    }

    fn change_mode(&self, mode: u64) {
        let at = libc::AT_FDCWD as u64;
        let fresh = |name: &str| self.fresh(&format!("{name}-{mode:o}"));
        let (path, _) = fresh("chmod");
        self.say("chmod", sys::call(libc::SYS_chmod, &[sys::address(&path), mode]));
        let (_, fd) = fresh("fchmod");
        self.say("fchmod", sys::call(libc::SYS_fchmod, &[fd, mode]));
        let (path, _) = fresh("fchmodat");
        self.say("fchmodat", sys::call(libc::SYS_fchmodat, &[at, sys::address(&path), mode]));
        let (path, _) = fresh("fchmodat2");
        self.say("fchmodat2", sys::call(FCHMODAT2, &[at, sys::address(&path), mode, 0]));
        let (_, fd) = fresh("fchmodat2-fd");
        let empty = libc::AT_EMPTY_PATH as u64;
        self.say("fchmodat2-fd", sys::call(FCHMODAT2, &[fd, sys::address(c""), mode, empty]));
        // The kernel looks at the lower half of a mode alone.
        let (path, _) = fresh("chmod-high");
        self.say("chmod-high", sys::call(libc::SYS_chmod, &[sys::address(&path), mode | 1 << 32]));
    }

    fn set_attributes(&self) {
        for (index, name) in [
            c"security.capability",
            c"security.evil",
            c"security.ima",
            c"trusted.evil",
            c"trusted.overlay.opaque",
        ]
        .into_iter()
        .enumerate()
        {
            for (version, value) in file_capabilities() {
                let (mut value, length) = (value.clone(), value.len() as u64);
                let (path, fd) = self.fresh(&format!("attribute-{index}-{version}"));
                let (path, name, bytes) = (sys::address(&path), sys::address(name), sys::buffer(&mut value));
                let said = format!("attribute-{index}-{version}");
                self.say(&said, sys::call(libc::SYS_setxattr, &[path, name, bytes, length, 0]));
                self.say(&said, sys::call(libc::SYS_lsetxattr, &[path, name, bytes, length, 0]));
                self.say(&said, sys::call(libc::SYS_fsetxattr, &[fd, name, bytes, length, 0]));
                let mut how = [bytes, length].map(u64::to_ne_bytes).concat();
                let at = libc::AT_FDCWD as u64;
                let arguments = [at, path, 0, name, sys::buffer(&mut how), 16];
                self.say(&said, sys::call(SETXATTRAT, &arguments));
            }
        }
    }

    fn give_away(&self) {
        for (uid, gid) in [(0, 0), (1000, 0), (u64::from(u32::MAX), 0), (1, 1), (33, 65_534)] {
            let (path, fd) = self.fresh(&format!("chown-{uid}-{gid}"));
            let path = sys::address(&path);
            self.say("chown", sys::call(libc::SYS_chown, &[path, uid, gid]));
            self.say("lchown", sys::call(libc::SYS_lchown, &[path, uid, gid]));
            self.say("fchown", sys::call(libc::SYS_fchown, &[fd, uid, gid]));
            let at = libc::AT_FDCWD as u64;
            self.say("fchownat", sys::call(libc::SYS_fchownat, &[at, path, uid, gid, 0]));
            self.say("chmod", sys::call(libc::SYS_chmod, &[path, 0o6755]));
        }
    }
}

/// Capabilities of a program as the kernel has them on disk: all of them, permitted, inheritable
/// and effective; of the second version, and of the third, which names the root of a user
/// namespace.
fn file_capabilities() -> Vec<(String, Vec<u8>)> {
    let sets = [u32::MAX; 4].map(u32::to_le_bytes).concat();
    let of_version = |version: u32| [&(version | 1).to_le_bytes()[..], &sets].concat();
    let mut all = vec![("v2".to_owned(), of_version(0x0200_0000))];
    for root in [0_u32, 1000] {
        let third = [of_version(0x0300_0000), root.to_le_bytes().to_vec()].concat();
        all.push((format!("v3-{root}"), third));
    }
    all
}

fn make_everything(prefix: &str) {
    let attempt = FileAttempt(prefix);
    for mode in [0o755, 0o4755, 0o2755] {
        attempt.make(mode);
        attempt.change_mode(mode);
    }
    attempt.set_attributes();
    attempt.give_away();
    let (path, _) = attempt.fresh("attr");
    let mut attr = [0_u8; 24];
    let arguments = [libc::AT_FDCWD as u64, sys::address(&path), sys::buffer(&mut attr), 24, 0];
    attempt.say("file_setattr", sys::call(FILE_SETATTR, &arguments));
    note("tried", prefix);
}
