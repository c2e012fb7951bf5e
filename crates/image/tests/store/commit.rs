//! Images of another image and a layer that is packed above it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use eyot::{Error, ErrorKind, ImageInfo};
use eyot_image::testing::{Packing, TestImage};
use eyot_image::{EntryFacts, ImageName, LayerAbove, LayerPacker};
use serde_json::json;

use crate::fixture::{StoreFixture, two_layers};

fn name(text: &str) -> ImageName {
    ImageName::parse(text).unwrap()
}

/// Commits what `pack` writes above the image `base:1`, as `made:1`.
fn commit(
    fixture: &StoreFixture,
    max_bytes: Option<u64>,
    pack: impl FnOnce(&mut LayerPacker<'_>) -> io::Result<()>,
) -> Result<ImageInfo, Error> {
    let layers = fixture.resolve("base:1").unwrap().layers;
    let above = LayerAbove {
        name: &name("made:1"),
        layers: &layers,
        base: Some(&name("base:1")),
        max_bytes,
        is_stopped: &|| false,
    };
    fixture.store.commit(&above, pack)
}

fn facts(mode: u32) -> EntryFacts {
    EntryFacts { mode, modified_s: 1_000_000_000, ..EntryFacts::default() }
}

fn file(packer: &mut LayerPacker<'_>, path: &str, content: &str) -> io::Result<()> {
    packer.file(Path::new(path), &facts(0o640), content.len() as u64, &mut content.as_bytes())
}

fn with_base(image: TestImage) -> StoreFixture {
    let fixture = StoreFixture::new();
    fixture.put(&image, "base:1");
    fixture
}

#[test]
fn an_image_above_another_has_its_layers_its_configuration_and_one_layer_more() {
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        let config = json!({ "Env": ["A=1"], "WorkingDir": "/srv", "User": "1000", "Entrypoint": ["/init"] });
        let fixture = with_base(TestImage { packing, ..two_layers().with_config(config) });
        let long = format!("etc/{}", "n".repeat(200));
        let made = commit(&fixture, None, |packer| {
            packer.directory(Path::new("etc"), &facts(0o755))?;
            packer.removed(Path::new("etc/release"))?;
            let attributes = vec![
                ("user.note".to_owned(), b"a\nb".to_vec()),
                ("user.overlay.opaque".to_owned(), b"y".to_vec()),
                ("security.capability".to_owned(), b"x".to_vec()),
            ];
            packer.file(
                Path::new("etc/one"),
                &EntryFacts { attributes, ..facts(0o640) },
                3,
                &mut &b"one"[..],
            )?;
            packer.hard_link(Path::new(&long), Path::new("etc/one"), &facts(0o640))?;
            packer.symlink(Path::new("etc/far"), OsStr::new(&"t".repeat(300)), &facts(0o777))?;
            packer.directory(Path::new("bin"), &facts(0o1755))?;
            packer.hides_below(Path::new("bin"))
        });
        let made = made.unwrap();
        assert_eq!((made.name.as_str(), made.layers, made.complete), ("made:1", 3, true));
        let (base, image) = (fixture.resolve("base:1").unwrap(), fixture.resolve("made:1").unwrap());
        assert_eq!((&image.layers[1..], &image.run), (&base.layers[..], &base.run));
        let top = image.folder.join(&image.layers[0]);
        let one = std::fs::symlink_metadata(top.join("etc/one")).unwrap();
        assert_eq!((one.mode() & 0o7777, one.nlink(), one.mtime()), (0o640, 2, 1_000_000_000));
        assert_eq!(std::fs::read_to_string(top.join(&long)).unwrap(), "one");
        assert_eq!(std::fs::read_link(top.join("etc/far")).unwrap().as_os_str().len(), 300);
        assert_eq!(std::fs::symlink_metadata(top.join("etc/release")).unwrap().rdev(), 0);
        let attribute = |path: &str, name: &str| {
            let mut value = [0; 16];
            rustix::fs::lgetxattr(top.join(path), name, &mut value[..]).map(|count| value[..count].to_vec())
        };
        assert_eq!(attribute("etc/one", "user.note").unwrap(), b"a\nb");
        assert!(attribute("etc/one", "user.overlay.opaque").is_err());
        assert_eq!(attribute("bin", "user.overlay.opaque").unwrap(), b"y");
        fixture.assert_tidy();
    }
}

#[test]
fn a_layer_that_can_not_be_leaves_the_image_that_has_the_name() {
    let fixture = with_base(two_layers());
    commit(&fixture, None, |packer| file(packer, "first", "1")).unwrap();
    let blobs = fixture.count("blobs/sha256");
    let first = fixture.resolve("made:1");
    let failed = [
        (
            commit(&fixture, None, |packer| file(packer, "etc/.wh.one", "x")),
            ErrorKind::Invalid,
            "/etc/.wh.one",
        ),
        (
            commit(&fixture, Some(10_000), |packer| file(packer, "large", &"x".repeat(20_000))),
            ErrorKind::TooLarge,
            "more than 10000 bytes",
        ),
        (
            commit(&fixture, None, |packer| {
                packer.file(Path::new("short"), &facts(0o600), 10, &mut &b"only"[..])
            }),
            ErrorKind::Invalid,
            "became shorter",
        ),
        (
            commit(&fixture, None, |_| Err(io::ErrorKind::PermissionDenied.into())),
            ErrorKind::Permission,
            "commit `made:1`",
        ),
    ];
    for (failed, kind, part) in failed {
        let error = failed.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(part), "{error:?}");
    }
    assert_eq!((fixture.resolve("made:1"), fixture.count("blobs/sha256")), (first, blobs));
    fixture.assert_tidy();
}

#[test]
fn a_commit_that_is_stopped_names_no_image() {
    let fixture = with_base(two_layers());
    let layers = fixture.resolve("base:1").unwrap().layers;
    let stopped = std::sync::atomic::AtomicBool::new(false);
    let is_stopped = || stopped.load(std::sync::atomic::Ordering::Relaxed);
    let name = name("made:1");
    let above =
        LayerAbove { name: &name, layers: &layers, base: None, max_bytes: None, is_stopped: &is_stopped };
    let made = fixture.store.commit(&above, |packer| {
        file(packer, "one", "1")?;
        stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        file(packer, "two", "2")
    });
    assert!(made.is_err() && fixture.resolve("made:1").is_none());
    fixture.assert_tidy();
}

#[test]
fn the_image_below_is_found_by_its_layers_whatever_its_name_means_now() {
    let fixture = with_base(two_layers());
    let layers = fixture.resolve("base:1").unwrap().layers;
    let check = || fixture.store.check_commit(&name("made:1"), &layers, Some(&name("base:1")));
    check().unwrap();
    let other = TestImage::new(&[eyot_image::testing::TestLayer::default().file("bin/sh", "other")]);
    fixture.put(&other, "base:1");
    let error = check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("`base:1`") && error.hint().is_some(), "{error}");
    fixture.put(&two_layers(), "same:1");
    check().unwrap();
}
