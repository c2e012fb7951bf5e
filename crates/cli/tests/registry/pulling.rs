//! Pulls: the images that they bring, and the layers that they do not fetch twice.

use std::fs;

use eyot_image::Digest;
use eyot_image::testing::{Packing, TestImage, TestLayer};
use serde_json::json;

use crate::Case;
use crate::machine::Machine;
use crate::registry::Registry;

pub fn trials() -> Vec<Case> {
    vec![
        ("an_image_is_pulled_and_a_sandbox_made_over_it", pulled),
        ("what_is_there_already_is_not_fetched_again", not_again),
        ("a_blob_that_broke_off_is_gone_on_with", resumed),
        ("two_processes_that_pull_the_same_fetch_it_once", together),
        ("of_an_index_this_machines_image_is_pulled", index),
        ("a_name_with_a_digest_is_pulled_by_it_and_by_nothing_else", by_digest),
    ]
}

/// Makes an image of three layers of some size.
pub fn image() -> TestImage {
    let noise = |seed: u32| -> Vec<u8> {
        let mut state = seed;
        let step = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (*state >> 24) as u8
        };
        (0..300_000).map(|_| step(&mut state)).collect()
    };
    let layers = [
        TestLayer::default().file("bin/sh", "#!").file("noise/1", noise(1)),
        TestLayer::default().file("etc/release", "pulled").file("noise/2", noise(2)),
        TestLayer::default().file("noise/.wh.1", "").file("noise/3", noise(3)),
    ];
    TestImage::new(&layers).with_config(json!({ "WorkingDir": "/app" }))
}

/// Returns the digests of an image's compressed layers.
pub fn blobs(image: &TestImage) -> Vec<Digest> {
    image.blobs().unwrap().iter().map(|blob| Digest::of(blob)).collect()
}

/// Asserts that nothing unfinished is left.
pub fn assert_tidy(machine: &Machine) {
    let count = |folder: &str| fs::read_dir(machine.state().join("images").join(folder)).unwrap().count();
    assert_eq!((count("incoming"), count("layers")), (0, count("diffs")));
}

fn pulled() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        let (registry, machine) = (Registry::new(), Machine::new());
        let image = TestImage { packing, ..image() };
        let digest = registry.push(&image, "team/app:1");
        let name = registry.name("team/app:1");
        let found = machine.run(&["--json", "image", "pull", &name]).json();
        assert_eq!((&found[0]["name"], &found[0]["digest"]), (&json!(name), &json!(digest.to_string())));
        assert_tidy(&machine);
        machine.run(&["create", "--name", "box", "--image", &name]).success();
        assert_eq!(machine.run(&["read", "box", "/etc/release"]).success(), "pulled");
        assert_eq!(machine.run(&["read", "box", "/noise/3"]).stdout.len(), 300_000);
        assert!(machine.run(&["read", "box", "/noise/1"]).failure(125).contains("does not exist"));
    }
}

fn not_again() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    registry.push(&TestImage { layers: image.layers[..2].to_vec(), ..image.clone() }, "app:2");
    for tag in ["app:2", "app:1", "app:1"] {
        machine.run(&["image", "pull", &registry.name(tag)]).success();
    }
    for blob in blobs(&image) {
        assert_eq!(registry.answers(&blob).len(), 1, "{blob}");
    }
}

fn resumed() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    // The store is made by the first command that writes to it.
    machine.run(&["image", "prune"]).success();
    let packed = image.blobs().unwrap();
    let part = |blob: &[u8]| {
        let name = format!("images/incoming/{}.part", Digest::of(blob).hex());
        machine.state().join(name)
    };
    fs::write(part(&packed[0]), &packed[0][..packed[0].len() / 2]).unwrap();
    fs::write(part(&packed[1]), [&packed[1][..], b"too much"].concat()).unwrap();
    fs::write(part(&packed[2]), &packed[2]).unwrap();
    machine.run(&["image", "pull", &registry.name("app:1")]).success();
    let answers: Vec<Vec<u16>> = packed.iter().map(|blob| registry.answers(&Digest::of(blob))).collect();
    assert_eq!(answers[0], [206]);
    assert_eq!((answers[1].len(), answers[2].len()), (1, 0));
    assert_eq!(machine.run(&["--json", "image", "ls"]).json()[0]["complete"], true);
    assert_tidy(&machine);
}

fn together() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    let name = registry.name("app:1");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| machine.run(&["image", "pull", &name]).success());
        }
    });
    for blob in blobs(&image) {
        assert_eq!(registry.answers(&blob).len(), 1, "{blob}");
    }
    assert_tidy(&machine);
}

fn index() {
    let (registry, machine) = (Registry::new(), Machine::new());
    let ours = registry.push(&image(), "app:ours");
    let other = registry.push(&TestImage { architecture: "s390x".into(), ..image() }, "app:other");
    let here = image().architecture;
    let describe = |digest: &Digest, architecture: &str| {
        json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest.to_string(),
                "size": fs::metadata(registry.blob(digest)).unwrap().len(),
                "platform": { "os": "linux", "architecture": architecture } })
    };
    let kind = "application/vnd.oci.image.index.v1+json";
    let both = [describe(&other, "s390x"), describe(&ours, &here)];
    registry.push_index("app:both", &json!({ "schemaVersion": 2, "mediaType": kind, "manifests": both }));
    let found = machine.run(&["--json", "image", "pull", &registry.name("app:both")]).json();
    assert_eq!(found[0]["digest"], ours.to_string());
    registry
        .push_index("app:none", &json!({ "schemaVersion": 2, "mediaType": kind, "manifests": both[..1] }));
    let refused = machine.run(&["image", "pull", &registry.name("app:none")]);
    assert!(refused.failure(125).contains("none for this machine"));
    assert!(machine.run(&["image", "pull", &registry.name("app:other")]).failure(125).contains("s390x"));
}

fn by_digest() {
    let (registry, machine) = (Registry::new(), Machine::new());
    let digest = registry.push(&image(), "app:1");
    let name = registry.name(&format!("app@{digest}"));
    machine.run(&["image", "pull", &name]).success();
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), format!("{name}\n"));
    let other = registry.name(&format!("app@{}", Digest::of(b"another")));
    assert!(machine.run(&["image", "pull", &other]).failure(125).contains("none of that name"));
}
