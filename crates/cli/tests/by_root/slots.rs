//! The slots of `eyot serve`, which only root has.

use eyot_image::testing::{TestImage, TestLayer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::Signal;
use serde_json::json;

use crate::Case;
use crate::machine::Machine;
use crate::server::Server;

pub fn trials() -> Vec<Case> {
    vec![
        (
            "the_slots_of_a_server_are_not_listed_and_gone_when_it_has_ended",
            the_slots_of_a_server_are_not_listed_and_gone_when_it_has_ended,
        ),
        ("an_image_is_removed_while_a_server_keeps_slots", an_image_is_removed_while_a_server_keeps_slots),
    ]
}

/// Gives the sandboxes of a key no disks of their own, because no slot has one.
const WITHOUT_DISKS: (&str, &str) = ("EYOT_POOL_DISK_MIB", "unlimited");

/// Lists the half-made sandboxes of a state folder.
fn slots(machine: &Machine) -> Vec<std::ffi::OsString> {
    let folder = std::fs::read_dir(machine.state().join("slots")).unwrap();
    folder.map(|entry| entry.unwrap().file_name()).collect()
}

fn the_slots_of_a_server_are_not_listed_and_gone_when_it_has_ended() {
    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &["--slots", "2"], &[WITHOUT_DISKS]);
    let first = server.sandbox();
    wait_for_slots(&machine, 2);
    let second = server.sandbox();
    let mut listed: Vec<String> = machine.run(&["ls", "-q"]).success().lines().map(str::to_owned).collect();
    listed.sort();
    let mut made = vec![first, second];
    made.sort();
    assert_eq!(listed, made);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(slots(&machine), [""; 0]);
}

/// Waits until a server has made this many slots.
fn wait_for_slots(machine: &Machine, count: usize) {
    let changes = inotify::init(CreateFlags::CLOEXEC).unwrap();
    let folder = machine.state().join("slots");
    inotify::add_watch(&changes, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO).unwrap();
    while slots(machine).len() < count {
        let soon = Timespec { tv_sec: 20, tv_nsec: 0 };
        let changed = poll(&mut [PollFd::new(&changes, PollFlags::IN)], Some(&soon)).unwrap();
        assert_eq!(changed, 1, "no slots were made");
        rustix::io::read(&changes, &mut [0; 4096]).unwrap();
    }
}

fn an_image_is_removed_while_a_server_keeps_slots() {
    let machine = Machine::new();
    let image = TestImage::new(&[TestLayer::default().file("bin/sh", "#!")]);
    image.write_layout(&machine.path("layout"), Some("app:1")).unwrap();
    machine.run(&["image", "import", &machine.path_text("layout")]).success();
    let server = Server::start(&machine, &[], &["--slots", "2"], &[WITHOUT_DISKS]);
    let of_image = json!({ "spec": { "image": "app:1", "name": "of-image" } }).to_string();
    server.sandbox();
    wait_for_slots(&machine, 2);
    assert_eq!(server.ask("POST", "/v1/sandboxes", &of_image).0, 201);
    assert!(machine.run(&["image", "rm", "app:1"]).failure(125).contains("ours/of-image"));
    machine.run(&["rm", "ours/of-image"]).success();
    assert_eq!(machine.run(&["--json", "image", "rm", "app:1"]).json()["layers"], 1);
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    assert_eq!(server.ask("POST", "/v1/sandboxes", &of_image).0, 404);
    let id = server.sandbox();
    assert_eq!(server.ask("POST", &format!("/v1/sandboxes/{id}/exec"), r#"{"command":"true"}"#).0, 200);
}
