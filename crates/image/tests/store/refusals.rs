//! Damaged and hostile archives are refused in words that name the fault, with nothing left behind.

use std::fs;

use eyot::ErrorKind;
use eyot_image::testing::{Packing, TestImage, TestLayer};
use eyot_image::unpack::UnpackLimits;
use serde_json::json;

use crate::fixture::{StoreFixture, two_layers};

/// Returns the sentence of a refused import, and asserts that it left no image, no partial layer
/// and no file.
fn refusal(fixture: &StoreFixture, source: &str) -> String {
    let error = fixture.import(&fixture.path(source), Some("bad")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(fixture.store.list().unwrap().is_empty());
    fixture.assert_tidy();
    error.to_string()
}

fn layout(fixture: &StoreFixture, image: &TestImage) -> Vec<std::path::PathBuf> {
    image.write_layout(&fixture.path("layout"), None).unwrap();
    let blobs = fs::read_dir(fixture.path("layout/blobs/sha256")).unwrap();
    blobs.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_blob_that_is_changed_shortened_longer_or_missing_is_refused_by_its_digest() {
    for change in [
        |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1,
        |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1),
        |bytes: &mut Vec<u8>| bytes.push(0),
    ] {
        let blobs = layout(&StoreFixture::new(), &two_layers()).len();
        for number in 0..blobs {
            let fixture = StoreFixture::new();
            let mut names = layout(&fixture, &two_layers());
            names.sort();
            let mut bytes = fs::read(&names[number]).unwrap();
            change(&mut bytes);
            fs::write(&names[number], bytes).unwrap();
            let said = refusal(&fixture, "layout");
            let digest = names[number].file_name().unwrap().to_str().unwrap();
            assert!(said.contains(digest), "{said}");
            fs::remove_file(&names[number]).unwrap();
            assert!(refusal(&fixture, "layout").contains(digest));
        }
    }
}

#[test]
fn a_layer_that_does_not_hold_what_the_image_says_is_refused() {
    let fixture = StoreFixture::new();
    let mut image = two_layers();
    let honest = image.config_blob();
    image.layers[1] = TestLayer::default().file("etc/release", "other").bytes();
    image.write_layout(&fixture.path("layout"), None).unwrap();
    // The configuration of the honest image over the other one's layers.
    let (folder, dishonest) = (fixture.path("layout"), image.config_blob());
    let replace = |name: &str, from: &[u8], to: &[u8]| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let digest = |bytes: &[u8]| eyot_image::Digest::of(bytes).to_string();
        fs::write(folder.join(name), text.replace(&digest(from), &digest(to))).unwrap();
    };
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("index.json")).unwrap()).unwrap();
    let manifest = index["manifests"][0]["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
    let before = fs::read(folder.join(&manifest)).unwrap();
    replace(&manifest, &dishonest, &honest);
    let after = fs::read(folder.join(&manifest)).unwrap();
    replace("index.json", &before, &after);
    let put = |bytes: &[u8]| {
        fs::write(folder.join("blobs/sha256").join(eyot_image::Digest::of(bytes).hex()), bytes).unwrap();
    };
    put(&honest);
    put(&after);
    assert!(refusal(&fixture, "layout").contains("does not hold what the image says"));
}

#[test]
fn hostile_entries_are_refused_and_named_whatever_the_layer_is_packed_with() {
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        for (layer, word) in [
            (TestLayer::default().file("../x", ""), "`../x` leaves"),
            (TestLayer::default().file("/etc/x", ""), "`/etc/x` has an absolute"),
            (TestLayer::default().file("a", "").file("a", ""), "`a` is there twice"),
            (TestLayer::default().entry(tar::EntryType::Link, "h", "../x", 0, b""), "`h` is a hard link"),
        ] {
            let fixture = StoreFixture::new();
            layout(&fixture, &TestImage { packing, ..TestImage::new(&[layer]) });
            let said = refusal(&fixture, "layout");
            assert!(said.contains(word), "{said}");
        }
    }
}

#[test]
fn bombs_end_at_the_limits_of_the_store() {
    let limits = UnpackLimits { max_unpacked_bytes: 1 << 20, ..UnpackLimits::default() };
    let fixture = StoreFixture::new();
    let store = fixture.store.clone().with_limits(limits);
    let fixture = fixture.with_store(store);
    let bomb = TestLayer::default().file("bin/zeros", vec![0; 64 << 20]);
    layout(&fixture, &TestImage { packing: Packing::Zstd, ..TestImage::new(std::slice::from_ref(&bomb)) });
    assert!(refusal(&fixture, "layout").contains("too many bytes"));
    fs::write(fixture.path("rootfs.tar.zst"), zstd::encode_all(&bomb.bytes()[..], 1).unwrap()).unwrap();
    assert!(refusal(&fixture, "rootfs.tar.zst").contains("too many bytes"));
}

#[test]
fn an_image_of_another_machine_or_without_layers_is_refused() {
    let fixture = StoreFixture::new();
    layout(&fixture, &TestImage { architecture: "s390x".into(), ..two_layers() });
    assert!(refusal(&fixture, "layout").contains("s390x"));
    let fixture = StoreFixture::new();
    layout(&fixture, &TestImage::new(&[]));
    assert!(refusal(&fixture, "layout").contains("layers"));
}

#[test]
fn an_archive_reads_no_file_of_the_host() {
    let fixture = StoreFixture::new();
    fs::write(fixture.path("secret"), "host").unwrap();
    for target in ["../secret", fixture.path("secret").to_str().unwrap()] {
        let folder = fixture.path("layout");
        fs::create_dir_all(&folder).unwrap();
        let manifest = json!([{ "Config": "config", "RepoTags": ["a:1"], "Layers": [target] }]);
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        fs::write(folder.join("config"), two_layers().config_blob()).unwrap();
        let error = fixture.import(&folder, Some("bad")).unwrap_err();
        assert!(!error.to_string().contains(&eyot_image::Digest::of(b"host").to_string()), "{error}");
        fs::remove_file(folder.join("manifest.json")).unwrap();
        std::os::unix::fs::symlink(target, folder.join("manifest.json")).unwrap();
        assert!(fixture.import(&folder, Some("bad")).is_err());
        fs::remove_file(folder.join("manifest.json")).unwrap();
    }
    assert!(fixture.store.list().unwrap().is_empty());
}

#[test]
fn what_is_no_image_says_so() {
    let fixture = StoreFixture::new();
    fs::write(fixture.path("text"), "this is no tarball ".repeat(100)).unwrap();
    assert!(refusal(&fixture, "text").contains("not a tar archive"));
    fs::write(fixture.path("tar"), TestLayer::default().file("readme", "x").bytes()).unwrap();
    assert!(refusal(&fixture, "tar").contains("neither /bin nor /usr/bin"));
    fs::create_dir(fixture.path("folder")).unwrap();
    assert!(refusal(&fixture, "folder").contains("neither an OCI layout"));
    let missing = fixture.import(&fixture.path("missing"), Some("x")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn an_import_that_is_refused_leaves_the_image_of_that_name_as_it_was() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "app:1");
    layout(&fixture, &TestImage::new(&[TestLayer::default().file("../x", "")]));
    assert!(fixture.import(&fixture.path("layout"), Some("app:1")).is_err());
    assert_eq!(fixture.read("app:1", "etc/release"), "new");
}
