//! Failures of pulls and imports: the error says what to do, and nothing is left behind.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use eyot_image::testing::{Packing, TestImage, TestLayer};

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
        ("a_disk_that_is_full_in_a_pull_is_said_and_leaves_nothing_that_prune_does_not_find", full),
    ]
}

/// Returns the tests that need no registry.
pub fn import_trials() -> Vec<Case> {
    vec![
        ("a_disk_that_is_full_in_an_import_is_said_and_leaves_nothing_that_prune_does_not_find", full_import),
        ("an_archive_of_docker_save_that_is_damaged_is_refused_and_nothing_of_it_kept", damaged_archive),
    ]
}

pub fn kind(ran: &Ran) -> String {
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

/// Runs `eyot` on a disk of 600 KiB that is only for this, and prints what is left there: the names
/// of images, and after a prune all files in the store's folders. The disk is in a new mount
/// namespace, as root; an ordinary user makes one with a user namespace.
fn on_a_small_disk(machine: &Machine, arguments: &[&str]) -> Ran {
    fs::create_dir_all(machine.state()).unwrap();
    let script = r#"
        mount -t tmpfs -o size=600k,mode=700 none "$EYOT_STATE" || exit 99
        "$0" --json "$@"; echo "code $?"
        "$0" image ls -q; ls -A "$EYOT_STATE/images/incoming"
        "$0" -q image prune; cd "$EYOT_STATE/images" && ls -A blobs/sha256 layers diffs incoming"#;
    let eyot = machine.command(&[]).get_program().to_owned();
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    inside.arg(eyot).args(arguments).env_clear();
    inside
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", machine.path("home"))
        .env("EYOT_STATE", machine.state());
    Ran::from(inside.output().unwrap())
}

const NOTHING_LEFT: &str = "code 125\nblobs/sha256:\n\ndiffs:\n\nincoming:\n\nlayers:\n";

fn assert_full(ran: &Ran) {
    assert_eq!(kind(ran), "quota", "{ran:?}");
    assert!(ran.stderr.contains("eyot image prune"), "{ran:?}");
    assert_eq!(ran.text(), NOTHING_LEFT, "{ran:?}");
}

fn full() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "app:1");
    let name = registry.name("app:1");
    assert_full(&on_a_small_disk(&machine, &["image", "pull", &name]));
    assert_full(&on_a_small_disk(&machine, &["create", "--image", &name]));
}

/// Imports for which the disk is too small, at different steps: a file of a layout, of a tarball, and
/// the files that a tarball unpacks to.
fn full_import() {
    let machine = Machine::new();
    let path = |name: &str| machine.path_text(name);
    let zstd = TestImage { packing: Packing::Zstd, ..image() };
    image().write_layout(&machine.path("layout"), Some("app:1")).unwrap();
    zstd.write_layout(&machine.path("packed"), Some("app:1")).unwrap();
    image().write_docker_archive(&machine.path("saved.tar"), &["app:1"]).unwrap();
    let zeros = TestLayer::default().file("bin/zeros", vec![0; 1 << 20]).bytes();
    machine.write("rootfs.tar", &zeros);
    for source in ["layout", "packed", "saved.tar"] {
        assert_full(&on_a_small_disk(&machine, &["image", "import", &path(source)]));
    }
    assert_full(&on_a_small_disk(&machine, &["image", "import", &path("rootfs.tar"), "--name", "app:1"]));
}

/// `docker save` names no layer by a digest, but the layers' contents are checked by digests.
fn damaged_archive() {
    let machine = Machine::new();
    let file = machine.path("saved.tar");
    fs::create_dir_all(machine.path("home")).unwrap();
    image().write_docker_archive(&file, &["app:1"]).unwrap();
    let whole = fs::read(&file).unwrap();
    let changes: [fn(&mut Vec<u8>); 2] = [
        |bytes| {
            let within = bytes.len() / 2;
            bytes[within] ^= 1;
        },
        |bytes| bytes.truncate(bytes.len() / 2),
    ];
    for change in changes {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&file, bytes).unwrap();
        let ran = machine.run(&["--json", "image", "import", &machine.path_text("saved.tar")]);
        assert_eq!(kind(&ran), "invalid", "{ran:?}");
        assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
        assert_tidy(&machine);
    }
    fs::write(&file, whole).unwrap();
    assert_eq!(machine.run(&["image", "import", &machine.path_text("saved.tar")]).success(), "app:1\n");
}
