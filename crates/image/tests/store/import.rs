//! Every form that an image comes in.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;

use eyot_image::testing::{Packing, TestImage, TestLayer};
use serde_json::json;

use crate::fixture::{StoreFixture, two_layers};

#[test]
fn a_layout_is_imported_from_a_folder_and_from_a_tarball_packed_in_any_way() {
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        let fixture = StoreFixture::new();
        let image = TestImage { packing, ..two_layers() };
        let digest = image.write_layout(&fixture.path("layout"), Some("docker.io/library/app:1")).unwrap();
        let found = fixture.import(&fixture.path("layout"), None).unwrap();
        assert_eq!((found[0].name.as_str(), &found[0].digest), ("app:1", &digest.to_string()));
        assert_eq!(fixture.read("app:1", "etc/release"), "new");

        let mut tar = tar::Builder::new(File::create(fixture.path("layout.tar")).unwrap());
        tar.append_dir_all(".", fixture.path("layout")).unwrap();
        tar.finish().unwrap();
        assert_eq!(
            fixture.import(&fixture.path("layout.tar"), Some("other")).unwrap()[0].name,
            "other:latest"
        );
        assert_eq!((fixture.count("layers"), fixture.store.list().unwrap().len()), (2, 2));
        fixture.assert_tidy();
    }
}

#[test]
fn layers_are_topmost_first_and_unpacked_once_for_all_images() {
    let fixture = StoreFixture::new();
    let image = two_layers();
    fixture.put(&image, "a:1");
    fixture.put(&TestImage { layers: image.layers[..1].to_vec(), ..image }, "b:1");
    let (above, system) = (fixture.resolve("a:1").unwrap(), fixture.resolve("b:1").unwrap());
    assert_eq!((above.layers.len(), &above.layers[1..]), (2, &system.layers[..]));
    let gone = above.folder.join(&above.layers[0]).join("etc/gone");
    assert!(fs::symlink_metadata(gone).unwrap().file_type().is_char_device());
    assert_eq!(fixture.count("layers"), 2);
}

#[test]
fn an_archive_of_an_older_docker_is_imported_under_each_of_its_names() {
    let fixture = StoreFixture::new();
    let file = fixture.path("saved.tar");
    two_layers().write_docker_archive(&file, &["node:22", "node:latest"]).unwrap();
    let names: Vec<String> = fixture.import(&file, None).unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["node:22", "node:latest"]);
    assert_eq!(fixture.read("docker.io/library/node:22", "etc/release"), "new");
    assert!(fixture.import(&file, Some("x")).unwrap_err().to_string().contains("several images"));

    let packed = fixture.path("saved.tar.gz");
    let mut writer =
        flate2::write::GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
    writer.write_all(&fs::read(&file).unwrap()).unwrap();
    writer.finish().unwrap();
    assert_eq!(fixture.import(&packed, None).unwrap().len(), 2);
    fixture.assert_tidy();
}

#[test]
fn a_tarball_of_a_root_file_system_is_an_image_of_one_layer_and_needs_a_name() {
    let fixture = StoreFixture::new();
    let layer = TestLayer::default().file("usr/bin/true", "x").symlink("bin", "usr/bin");
    let file = fixture.path("rootfs.tar.zst");
    fs::write(&file, zstd::encode_all(&layer.bytes()[..], 1).unwrap()).unwrap();
    let error = fixture.import(&file, None).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("--name")), "{error}");
    let info = &fixture.import(&file, Some("base:12")).unwrap()[0];
    assert_eq!((info.name.as_str(), info.layers, info.complete), ("base:12", 1, true));
    assert_eq!(fixture.read("base:12", "usr/bin/true"), "x");
    fixture.assert_tidy();
}

#[test]
fn what_an_image_wants_of_its_commands_is_kept() {
    let fixture = StoreFixture::new();
    let config = json!({ "Env": ["PATH=/app/bin", "A=1"], "WorkingDir": "/app", "User": "1001:100" });
    fixture.put(&two_layers().with_config(config), "a");
    let run = fixture.resolve("a").unwrap().run;
    assert_eq!(run.env, [("PATH".into(), "/app/bin".into()), ("A".into(), "1".into())]);
    assert_eq!((run.workdir.as_deref(), run.user.as_deref()), (Some("/app"), Some("1001:100")));
}

#[test]
fn of_an_index_of_several_machines_this_ones_image_is_taken() {
    let fixture = StoreFixture::new();
    let folder = fixture.path("layout");
    let ours = two_layers().write_layout(&folder, None).unwrap();
    let other =
        TestImage { architecture: "s390x".into(), ..two_layers() }.write_layout(&folder, None).unwrap();
    let blob =
        |digest: &eyot_image::Digest| fs::read(folder.join("blobs/sha256").join(digest.hex())).unwrap();
    let describe = |digest: &eyot_image::Digest, architecture: &str| {
        json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest.to_string(),
                "size": blob(digest).len(), "platform": { "os": "linux", "architecture": architecture } })
    };
    let here = TestImage::new(&[]).architecture;
    let inner =
        json!({ "schemaVersion": 2, "manifests": [describe(&other, "s390x"), describe(&ours, &here)] });
    let inner = inner.to_string();
    let digest = eyot_image::Digest::of(inner.as_bytes());
    fs::write(folder.join("blobs/sha256").join(digest.hex()), &inner).unwrap();
    let index = json!({ "schemaVersion": 2, "manifests": [{
        "mediaType": "application/vnd.oci.image.index.v1+json", "digest": digest.to_string(), "size": inner.len(),
        "annotations": { "io.containerd.image.name": "docker.io/library/many:1" } }] });
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
    let found = fixture.import(&folder, None).unwrap();
    assert_eq!((found[0].name.as_str(), &found[0].digest), ("many:1", &ours.to_string()));
}

#[test]
fn a_name_with_a_digest_finds_the_image_whatever_its_tag() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "app:1");
    let digest = fixture.resolve("app:1").unwrap().manifest;
    assert!(fixture.resolve(&format!("app@{digest}")).is_some());
    assert!(fixture.resolve(&format!("other@{digest}")).is_none());
    assert!(fixture.resolve("app:2").is_none());
}

#[test]
fn many_who_import_the_same_at_once_leave_one_of_each_layer() {
    let fixture = StoreFixture::new();
    two_layers().write_layout(&fixture.path("layout"), None).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let fixture = &fixture;
            scope.spawn(move || {
                fixture.import(&fixture.path("layout"), Some(&format!("app:{number}"))).unwrap()
            });
        }
    });
    assert_eq!((fixture.store.list().unwrap().len(), fixture.count("layers")), (8, 2));
    fixture.assert_tidy();
}
