//! What goes wrong: a sentence that says what to do, and nothing left behind.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use eyot_image::testing::{TestImage, TestLayer};

use crate::Case;
use crate::machine::{Machine, Ran};
use crate::pulling::{assert_tidy, blobs, image};
use crate::registry::Registry;

pub fn trials() -> Vec<Case> {
    vec![
        ("a_layer_that_is_damaged_in_the_registry_is_refused_and_nothing_of_it_kept", damaged),
        ("a_part_that_was_damaged_here_is_thrown_away_and_the_next_pull_succeeds", damaged_part),
        ("a_hostile_layer_is_refused_by_name", hostile),
        ("a_registry_that_is_not_there_and_an_image_that_is_not_are_told_apart", absent),
        ("a_disk_that_is_full_is_said_and_leaves_no_image", full),
    ]
}

fn kind(ran: &Ran) -> String {
    let last = ran.stderr.lines().last().unwrap_or_default();
    let value: serde_json::Value =
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    value["error"]["kind"].as_str().unwrap().to_owned()
}

fn damaged() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    let name = registry.name("app:1");
    let blob = registry.blob(&blobs(&image)[1]);
    let whole = fs::read(&blob).unwrap();
    let mut changed = whole.clone();
    changed[1000] ^= 1;
    fs::write(&blob, changed).unwrap();
    let ran = machine.run(&["--json", "image", "pull", &name]);
    assert_eq!(kind(&ran), "invalid");
    assert!(ran.stderr.contains(blobs(&image)[1].hex()) && ran.stderr.contains("damaged"), "{ran:?}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    // Of the others the beginnings may be there, to be gone on with.
    assert!(!machine.state().join(format!("images/incoming/{}.part", blobs(&image)[1].hex())).exists());
    fs::write(&blob, whole).unwrap();
    machine.run(&["image", "pull", &name]).success();
    assert_tidy(&machine);
}

fn damaged_part() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    machine.run(&["image", "prune"]).success();
    let part = machine.state().join(format!("images/incoming/{}.part", blobs(&image)[0].hex()));
    fs::write(&part, "not the beginning of it").unwrap();
    let name = registry.name("app:1");
    assert!(machine.run(&["image", "pull", &name]).failure(125).contains("not what its digest says"));
    assert!(!part.exists());
    machine.run(&["image", "pull", &name]).success();
    assert_tidy(&machine);
}

fn hostile() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&TestImage::new(&[TestLayer::default().file("../../x", "")]), "app:1");
    let ran = machine.run(&["--json", "image", "pull", &registry.name("app:1")]);
    assert!(ran.stderr.contains("`../../x` leaves the image"), "{ran:?}");
    assert_eq!(kind(&ran), "invalid");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    assert_tidy(&machine);
}

fn absent() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "app:1");
    let ran = machine.run(&["--json", "image", "pull", &registry.name("app:2")]);
    assert_eq!(kind(&ran), "not_found");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = machine.run(&["--json", "image", "pull", &format!("{closed}/app:1")]);
    assert_eq!(kind(&ran), "unavailable");
    assert!(ran.stderr.contains("can't be reached") && ran.stderr.contains("build-base"), "{ran:?}");
    assert_tidy(&machine);
}

/// In a mount namespace of its own, as root; an ordinary user makes one with a user namespace.
fn full() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "app:1");
    fs::create_dir_all(machine.state()).unwrap();
    let pull = machine.command(&["--json", "image", "pull", &registry.name("app:1")]);
    let eyot = pull.get_program().to_owned();
    let script = r#"
        mount -t tmpfs -o size=600k,mode=700 none "$EYOT_STATE" || exit 99
        "$0" --json image pull "$1"; echo "code $?"
        "$0" image ls -q; ls "$EYOT_STATE/images/layers" | wc -l"#;
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    inside.arg(eyot).arg(registry.name("app:1")).env_clear();
    inside
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", machine.path("home"))
        .env("EYOT_STATE", machine.state());
    let ran = Ran::from(inside.output().unwrap());
    assert_eq!(kind(&ran), "quota", "{ran:?}");
    assert!(ran.stderr.contains("eyot image prune"), "{ran:?}");
    assert!(ran.text().starts_with("code 125\n") && !ran.text().contains("app:1"), "{ran:?}");
}
