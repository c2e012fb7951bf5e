//! K19: files that the host or a sibling uses as well. Whatever the kernel ties to an inode must
//! not cross: sockets, FIFOs, locks, notifications, and a running program's protection from being
//! written to.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eyot::StartOptions;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, inotify, mknodat};
use tempfile::TempDir;

use crate::check::{Check, cases, ensure, ensure_eq, not_here, until};
use crate::facts::{Facts, note, tried, tried_io};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k19_a_service_below_usr_is_out_of_reach_whenever_it_began(world);
    k19_a_watch_tells_nothing_of_what_the_host_or_a_sibling_does(world);
    k19_a_lock_blocks_neither_the_host_nor_a_sibling(world);
    k19_a_lock_of_the_host_blocks_nobody_inside(world);
    k19_a_program_that_runs_inside_can_be_written_to_outside(world);
    k19_what_is_shared_is_told(world);
}

/// A program that every sandbox has.
const PROGRAM: &str = "/usr/bin/env";
/// Devices that can be locked and watched.
// Not `/dev/null`: some hosts hold a lock on that one for good.
const DEVICES: [&str; 2] = ["/dev/zero", "/dev/full"];
/// The files that the host locks. The programs inside use others, because cases run side by side
/// and a lock of one process is in another's way.
const OF_THE_HOST: [&str; 3] = ["/usr/bin/cat", "/dev/random", "/dev/urandom"];
/// Tells a probe to go on.
const GO: &str = "/workspace/go";

/// Tries to talk through what a service of the host has put into this folder.
pub fn reach(arguments: &[String]) {
    let [folder] = arguments else { return };
    let folder = Path::new(folder);
    note("seen", folder.join("stream").exists());
    tried_io("reached_stream", UnixStream::connect(folder.join("stream")));
    let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"hello", folder.join("datagram")));
    tried_io("reached_datagram", sent);
    let mut fifo = OpenOptions::new();
    fifo.write(true).custom_flags(libc::O_NONBLOCK);
    tried_io("reached_fifo", fifo.open(folder.join("fifo")));
}

/// Watches programs and devices until it is told to go on, and says how much it noticed; then that
/// it can notice at all.
pub fn watch(_arguments: &[String]) {
    let watched = || {
        let all = inotify::init(inotify::CreateFlags::NONBLOCK)?;
        let devices = inotify::init(inotify::CreateFlags::NONBLOCK)?;
        for path in ["/usr/bin", PROGRAM] {
            inotify::add_watch(&all, path, inotify::WatchFlags::ALL_EVENTS)?;
        }
        for path in DEVICES {
            inotify::add_watch(&devices, path, inotify::WatchFlags::ALL_EVENTS)?;
        }
        Ok::<_, rustix::io::Errno>((all, devices))
    };
    let Ok((programs, devices)) = watched() else { return note("watching", false) };
    note("watching", true);
    wait_for_go();
    note("noticed_programs", count(&programs));
    note("noticed_devices", count(&devices));
    note("own", File::open(PROGRAM).is_ok() && File::open(DEVICES[0]).is_ok());
    note("noticed_own_program", count(&programs) > 0);
    note("noticed_own_device", count(&devices) > 0);
    note("done", true);
}

fn count(watch: &impl std::os::fd::AsFd) -> usize {
    let mut buffer = [0_u8; 4096];
    rustix::io::read(watch, &mut buffer).unwrap_or(0)
}

fn wait_for_go() {
    while !Path::new(GO).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Tries to lock these paths; with the argument `stay`, holds on until it is told to go on.
pub fn lock(arguments: &[String]) {
    let held: Vec<_> =
        arguments.iter().filter(|path| path.starts_with('/')).filter_map(|path| lock_all(path)).collect();
    note("locking", true);
    if arguments.iter().any(|argument| argument == "stay") {
        wait_for_go();
    }
    drop(held);
    note("done", true);
}

/// Takes every lock that there is on a program, or on a device, and notes what came of each.
fn lock_all(path: &str) -> Option<File> {
    let is_device = path.starts_with("/dev/");
    let file = OpenOptions::new().read(true).write(is_device).open(path).ok()?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    tried(format_args!("locked_flock_{path}"), locked.map_err(rustix::io::Errno::raw_os_error));
    if is_device {
        for (name, command) in [("fcntl", libc::F_SETLK), ("ofd", libc::F_OFD_SETLK)] {
            // The locks of the two kinds conflict with each other: each has a part of its own.
            tried(format_args!("locked_{name}_{path}"), write_lock(&file, command, command.into()));
        }
    }
    Some(file)
}

/// Locks one byte for writing.
fn write_lock(file: &File, command: i32, start: i64) -> Result<i64, i32> {
    // `struct flock`: the type, from where it counts, padding, the start, the length, the process.
    let mut request = [0_u8; 32];
    request[..2].copy_from_slice(&(libc::F_WRLCK as i16).to_ne_bytes());
    request[8..16].copy_from_slice(&start.to_ne_bytes());
    request[16..24].copy_from_slice(&1_i64.to_ne_bytes());
    sys::call(libc::SYS_fcntl, &[file.as_raw_fd() as u64, command as u64, sys::buffer(&mut request)])
}

/// A service of the host below `/usr`.
struct FolderService {
    folder: TempDir,
    stream: UnixListener,
    datagram: UnixDatagram,
    fifo: File,
}

impl FolderService {
    fn begin() -> Check<Self> {
        let folder = folder_below_usr()?;
        let stream = UnixListener::bind(folder.path().join("stream"))?;
        let datagram = UnixDatagram::bind(folder.path().join("datagram"))?;
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).map_err(io::Error::from)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fifo = rustix::fs::open(&path, flags, Mode::empty()).map_err(io::Error::from)?.into();
        for name in ["stream", "datagram", "fifo"] {
            std::fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o666))?;
        }
        stream.set_nonblocking(true)?;
        datagram.set_nonblocking(true)?;
        let service = Self { folder, stream, datagram, fifo };
        // The service notices a connection at all: one of the host itself.
        UnixStream::connect(service.folder.path().join("stream"))?;
        service.stream.accept()?;
        Ok(service)
    }

    fn path(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn ensure_untouched(&self) -> Check {
        ensure!(self.stream.accept().is_err(), "somebody connected");
        ensure!(self.datagram.recv(&mut [0; 8]).is_err(), "somebody sent a datagram");
        let written = rustix::io::read(&self.fifo, &mut [0; 8]);
        ensure!(written == Ok(0), "somebody has the FIFO open: {written:?}");
        Ok(())
    }
}

fn folder_below_usr() -> Check<TempDir> {
    let Ok(folder) = tempfile::Builder::new().prefix("eyot-threats-").tempdir_in("/usr/local") else {
        return not_here("only root may put something below /usr");
    };
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    Ok(folder)
}

async fn k19_a_service_below_usr_is_out_of_reach_whenever_it_began(world: Arc<World>) -> Check {
    world.need_native("a container has nothing of the host's /usr")?;
    let before = world.stage().await?;
    let service = FolderService::begin()?;
    let after = world.stage().await?;
    for stage in [before, after] {
        for who in stage.everybody() {
            let facts = stage.probe_as(who, &["reach-service", &service.path()]).await?;
            facts.is("seen", "true")?;
            facts.is("reached_stream", "ECONNREFUSED")?;
            facts.is("reached_datagram", "ECONNREFUSED")?;
            // No reader is inside.
            facts.is("reached_fifo", "ENXIO")?;
        }
        stage.end().await?;
    }
    service.ensure_untouched()
}

/// Starts a probe that stays until it is told to go on, and waits until it has said this.
async fn start(stage: &Stage, arguments: &str, said: &str) -> Check {
    let line = format!("rm -f {GO}; exec /attack/threats probe {arguments} > /workspace/report");
    stage.sandbox.start(line.as_str(), StartOptions::default()).await?;
    until(said, || async { Ok(report(stage).await.contains(said)) }).await
}

async fn report(stage: &Stage) -> String {
    stage.sandbox.read_text("/workspace/report").await.unwrap_or_default()
}

async fn go_on(stage: &Stage) -> Check<Facts> {
    stage.sandbox.write(GO, "").await?;
    until("the end of the probe", || async { Ok(report(stage).await.contains("done=true")) }).await?;
    Ok(Facts::parse(&report(stage).await))
}

/// Tells whether the sandbox has device nodes of its own.
fn has_own_devices(stage: &Stage) -> bool {
    !stage.sandbox.isolation().shared_files.iter().any(|path| path == DEVICES[0])
}

async fn k19_a_watch_tells_nothing_of_what_the_host_or_a_sibling_does(world: Arc<World>) -> Check {
    let (stage, sibling) = (world.stage().await?, world.stage().await?);
    stage.need_program(PROGRAM).await?;
    start(&stage, "watch-shared", "watching=true").await?;
    sibling.output(&format!("{PROGRAM} true < /dev/zero > /dev/null; cat {PROGRAM} > /dev/null")).await?;
    if Path::new(PROGRAM).exists() {
        let run = std::process::Command::new(PROGRAM).arg("true").status()?;
        ensure!(run.success(), "the host's own {PROGRAM} fails");
    }
    for path in DEVICES {
        File::open(path)?;
    }
    let facts = go_on(&stage).await?;
    facts.is("noticed_programs", "0")?;
    facts.is("noticed_own_program", "true")?;
    facts.is("noticed_own_device", "true")?;
    if has_own_devices(&stage) {
        facts.is("noticed_devices", "0")?;
    }
    stage.end().await?;
    sibling.end().await
}

async fn k19_a_lock_blocks_neither_the_host_nor_a_sibling(world: Arc<World>) -> Check {
    let (stage, sibling) = (world.stage().await?, world.stage().await?);
    stage.need_program(PROGRAM).await?;
    let lock = ["lock-shared", PROGRAM, DEVICES[0], DEVICES[1], "stay"];
    start(&stage, &lock.join(" "), "locking=true").await?;
    let prefix = if has_own_devices(&stage) { "locked_" } else { "locked_flock_/usr" };
    Facts::parse(&report(&stage).await).each("locked_", &["ok"])?;
    sibling.probe(&lock[..4]).await?.each(prefix, &["ok"])?;
    if has_own_devices(&stage) {
        for path in DEVICES {
            let device = OpenOptions::new().read(true).write(true).open(path)?;
            for command in [libc::F_SETLK, libc::F_OFD_SETLK] {
                ensure_eq!((path, write_lock(&device, command, command.into())), (path, Ok(0)));
            }
            let locked = flock(&device, FlockOperation::NonBlockingLockExclusive);
            ensure_eq!((path, locked), (path, Ok(())));
        }
    }
    if let Ok(program) = File::open(PROGRAM) {
        ensure_eq!(flock(&program, FlockOperation::NonBlockingLockExclusive), Ok(()));
    }
    go_on(&stage).await?;
    stage.end().await?;
    sibling.end().await
}

async fn k19_a_lock_of_the_host_blocks_nobody_inside(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    stage.need_program(OF_THE_HOST[0]).await?;
    let mut held = Vec::new();
    for path in OF_THE_HOST {
        let Ok(file) = File::open(path) else { continue };
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)?;
        held.push(file);
    }
    let prefix = if has_own_devices(&stage) { "locked_flock" } else { "locked_flock_/usr" };
    for who in stage.everybody() {
        let [program, one, other] = OF_THE_HOST;
        stage.probe_as(who, &["lock-shared", program, one, other]).await?.each(prefix, &["ok"])?;
    }
    drop(held);
    stage.end().await
}

async fn k19_a_program_that_runs_inside_can_be_written_to_outside(world: Arc<World>) -> Check {
    world.need_native("a container has nothing of the host's /usr")?;
    let folder = folder_below_usr()?;
    let program = folder.path().join("program");
    std::fs::copy("/bin/sleep", &program)?;
    let stage = world.stage().await?;
    let line = format!("exec {} 1000", program.display());
    stage.sandbox.start(line.as_str(), StartOptions::default()).await?;
    let runs = format!(
        "for exe in /proc/[0-9]*/exe; do [ \"$(readlink $exe)\" = {} ] && exit 0; done; exit 1",
        program.display()
    );
    until("the program", || async { Ok(stage.sh(&runs).await?.success()) }).await?;
    OpenOptions::new().write(true).open(&program)?;
    stage.end().await
}

async fn k19_what_is_shared_is_told(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let told = &stage.sandbox.isolation().shared_files;
    if world.is_native() {
        ensure!(told.contains(&"/attack".to_owned()), "the mount is not told: {told:?}");
        ensure_eq!((told, told.contains(&"/dev/null".to_owned())), (told, !stage.has_root()));
        ensure!(!told.iter().any(|path| path.starts_with("/usr") || path.starts_with("/opt")), "{told:?}");
    } else {
        ensure!(told.contains(&"/.eyot-guest".to_owned()), "the guest's volume is not told: {told:?}");
    }
    stage.end().await
}
