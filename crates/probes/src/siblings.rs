//! K15: the sandbox next door.

use std::ffi::CString;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;

use eyot::StartOptions;

use crate::check::{Check, cases, ensure, until};
use crate::facts::{note, tried, tried_io};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k15_nothing_of_a_sibling_is_visible(world);
    k15_siblings_have_ids_of_their_own(world);
    k15_a_siblings_directory_is_out_of_reach(world);
}

const KEY: u64 = 0x6579_6f74;
const PORT: u16 = 45_123;
const FILES: [&str; 6] =
    ["/workspace/left", "/home/user/left", "/tmp/left", "/var/tmp/left", "/dev/shm/left", "/run/left"];

fn queue_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// Leaves something of everything that could be shared, and stays.
pub fn leave(_arguments: &[String]) {
    for path in FILES {
        tried_io(format_args!("left_{path}"), std::fs::write(path, "a sibling's"));
    }
    let create = (libc::IPC_CREAT | 0o666) as u64;
    tried("left_shm", sys::call(libc::SYS_shmget, &[KEY, 4096, create]));
    tried("left_semaphore", sys::call(libc::SYS_semget, &[KEY, 1, create]));
    tried("left_messages", sys::call(libc::SYS_msgget, &[KEY, create]));
    let name = queue_name("left");
    let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
    tried("left_queue", sys::call(libc::SYS_mq_open, &[sys::address(&name), flags, 0o666, 0]));
    let port = TcpListener::bind(("127.0.0.1", PORT));
    note("left_port", if port.is_ok() { "ok" } else { "failed" });
    let local = SocketAddr::from_abstract_name("left").and_then(|address| UnixListener::bind_addr(&address));
    note("left_abstract", if local.is_ok() { "ok" } else { "failed" });
    note("stays", true);
    sys::pause();
}

/// Looks for what a sibling left.
pub fn find(_arguments: &[String]) {
    for path in FILES {
        tried_io(format_args!("found_{path}"), std::fs::read(path));
    }
    tried("found_shm", sys::call(libc::SYS_shmget, &[KEY, 4096, 0]));
    tried("found_semaphore", sys::call(libc::SYS_semget, &[KEY, 1, 0]));
    tried("found_messages", sys::call(libc::SYS_msgget, &[KEY, 0]));
    let name = queue_name("left");
    tried("found_queue", sys::call(libc::SYS_mq_open, &[sys::address(&name), libc::O_RDWR as u64, 0, 0]));
    tried_io("found_port", TcpStream::connect(("127.0.0.1", PORT)));
    let local = SocketAddr::from_abstract_name("left").and_then(|address| UnixStream::connect_addr(&address));
    tried_io("found_abstract", local);
}

/// Those of the files that the user may make: an image's `/run` is root's.
fn writable(stage: &Stage) -> impl Iterator<Item = &'static str> {
    let native = stage.is_native();
    FILES.into_iter().filter(move |file| native || !file.starts_with("/run"))
}

async fn with_something_left(stage: &Stage) -> Check {
    let line = "exec /attack/threats probe leave > /workspace/report";
    stage.sandbox.start(line, StartOptions::default()).await?;
    let report = async || stage.sandbox.read_text("report").await.unwrap_or_default();
    until("the leaving", || async { Ok(report().await.contains("stays=true")) }).await?;
    let facts = crate::facts::Facts::parse(&report().await);
    for file in writable(stage) {
        facts.is(&format!("left_{file}"), "ok")?;
    }
    for name in ["left_shm", "left_semaphore", "left_messages", "left_port", "left_abstract"] {
        facts.is(name, "ok")?;
    }
    // Under Landlock nothing outside of `/` can be opened, and queues are: then there are none to
    // share.
    ensure!(["ok", "EACCES"].contains(&facts.get("left_queue")?), "{facts:?}");
    Ok(())
}

async fn k15_nothing_of_a_sibling_is_visible(world: Arc<World>) -> Check {
    let (left, right) = (world.stage().await?, world.stage().await?);
    with_something_left(&left).await?;
    // It can be found at all: by its own neighbours inside.
    let own = left.probe(&["find"]).await?;
    for file in writable(&left) {
        own.is(&format!("found_{file}"), "ok")?;
    }
    for name in ["found_shm", "found_semaphore", "found_messages", "found_port"] {
        own.is(name, "ok")?;
    }
    for who in right.everybody() {
        let facts = right.probe_as(who, &["find"]).await?;
        facts.each("found_/", &["ENOENT"])?;
        facts.each("found_s", &["ENOENT"])?;
        facts.is("found_messages", "ENOENT")?;
        facts.each("found_queue", &["ENOENT", "EACCES"])?;
        facts.is("found_port", "ECONNREFUSED")?;
        facts.is("found_abstract", "ECONNREFUSED")?;
        let processes = right.sh_as(who, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").await?.stdout_text();
        ensure!(!processes.contains("probe leave"), "{who} sees {processes}");
    }
    left.end().await?;
    right.end().await
}

async fn k15_siblings_have_ids_of_their_own(world: Arc<World>) -> Check {
    world.need_native("the containers of one engine share their ids, as `isolation()` says")?;
    let (left, right) = (world.stage().await?, world.stage().await?);
    if left.has_root() {
        let maps =
            [left.output("cat /proc/self/uid_map").await?, right.output("cat /proc/self/uid_map").await?];
        ensure!(maps[0] != maps[1], "both have {}", maps[0]);
        for map in &maps {
            let outside: u64 = map.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
            ensure!(outside >= 65_536, "the map reaches the host's own ids: {map}");
        }
    } else {
        let map = left.output("tr -s ' ' < /proc/self/uid_map").await?;
        let expected = format!("1000 {} 1", rustix::process::geteuid().as_raw());
        ensure!(map.trim() == expected, "the map is {map}, not {expected}");
    }
    left.end().await?;
    right.end().await
}

async fn k15_a_siblings_directory_is_out_of_reach(world: Arc<World>) -> Check {
    world.need_native("a container has no directory in a state folder")?;
    let (left, right) = (world.stage().await?, world.stage().await?);
    left.sandbox.write("secret", "a sibling's").await?;
    let directory = left.directory()?.display().to_string();
    for who in right.everybody() {
        for path in [directory.clone(), format!("/proc/1/root{directory}"), format!("/../../..{directory}")] {
            let found = right.sh_as(who, &format!("ls {path}; cat {path}/upper/workspace/secret")).await?;
            ensure!(found.stdout.is_empty(), "{who} finds {}", found.stdout_text());
        }
    }
    left.end().await?;
    right.end().await
}
