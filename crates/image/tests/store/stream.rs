//! Archives that come as a stream, as a Docker Engine sends them: every format that `docker save`
//! has written, with the files first and their meaning last.

use std::fs;
use std::io::{self, Read};

use eyot::{Error, ErrorKind};
use eyot_image::testing::TestImage;
use eyot_image::{Digest, ImageInfo, ImageName, ImportOptions, NoProgress};

use crate::fixture::{StoreFixture, two_layers};

/// Returns an archive in the older format of `docker save`, before OCI layouts.
fn old_archive(fixture: &StoreFixture, image: &TestImage) -> Vec<u8> {
    image.write_docker_archive(&fixture.path("saved.tar"), &["elsewhere:1"]).unwrap();
    fs::read(fixture.path("saved.tar")).unwrap()
}

fn new_archive(fixture: &StoreFixture, image: &TestImage) -> Vec<u8> {
    image.write_layout(&fixture.path("saved"), None).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("blobs", fixture.path("saved/blobs")).unwrap();
    for name in ["index.json", "oci-layout"] {
        tar.append_path_with_name(fixture.path("saved").join(name), name).unwrap();
    }
    tar.into_inner().unwrap()
}

fn import(
    fixture: &StoreFixture,
    archive: impl Read + Send,
    digest: Option<Digest>,
) -> Result<Vec<ImageInfo>, Error> {
    let options = ImportOptions { name: Some(ImageName::parse("app:1").unwrap()), digest };
    fixture.store.import_stream(archive, "docker://app:1", &options, &NoProgress)
}

fn assert_refused(fixture: &StoreFixture, archive: impl Read + Send, word: &str) {
    let error = import(fixture, archive, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().starts_with("import `docker://app:1`: "), "{error}");
    assert!(error.to_string().contains(word), "{error}");
    assert!(fixture.store.list().unwrap().is_empty());
    fixture.assert_tidy();
}

/// Returns the archive with one bit of this part of it changed.
fn changed(archive: &[u8], within: &[u8]) -> Vec<u8> {
    let at = archive.windows(within.len()).position(|window| window == within).unwrap();
    let mut archive = archive.to_vec();
    archive[at] ^= 1;
    archive
}

#[test]
fn an_archive_of_either_age_is_imported_under_the_name_that_was_asked_for() {
    for archive in [old_archive, new_archive] {
        let fixture = StoreFixture::new();
        let bytes = archive(&fixture, &two_layers());
        let id = Digest::of(&two_layers().config_blob());
        let found = import(&fixture, &bytes[..], Some(id)).unwrap();
        assert_eq!((found.len(), found[0].name.as_str(), found[0].complete), (1, "app:1", true));
        assert_eq!(fixture.read("app:1", "etc/release"), "new");
        fixture.assert_tidy();
        // Once more, packed: nothing is there twice.
        let blobs = fixture.count("blobs/sha256");
        import(&fixture, &zstd::encode_all(&bytes[..], 1).unwrap()[..], None).unwrap();
        assert_eq!((fixture.count("blobs/sha256"), fixture.store.list().unwrap().len()), (blobs, 1));
    }
}

#[test]
fn another_image_than_the_one_that_was_asked_for_is_refused() {
    let fixture = StoreFixture::new();
    let bytes = old_archive(&fixture, &two_layers());
    let error = import(&fixture, &bytes[..], Some(Digest::of(b"another"))).unwrap_err();
    assert!(error.to_string().contains("it holds another image"), "{error}");
    assert!(fixture.store.list().unwrap().is_empty());
    fixture.assert_tidy();
}

#[test]
fn a_changed_layer_or_configuration_is_refused_whatever_the_archive() {
    let fixture = StoreFixture::new();
    let old = old_archive(&fixture, &two_layers());
    assert_refused(&fixture, &changed(&old, b"new")[..], "does not hold what the image says");
    assert_refused(&fixture, &changed(&old, b"2026-01-02T03:04:05Z")[..], "not what its digest says");
    let new = new_archive(&fixture, &two_layers());
    let layer = &two_layers().blobs().unwrap()[1];
    assert_refused(&fixture, &changed(&new, layer)[..], "not what its digest says");
}

#[test]
fn an_archive_that_breaks_off_anywhere_leaves_nothing() {
    let fixture = StoreFixture::new();
    for archive in [old_archive(&fixture, &two_layers()), new_archive(&fixture, &two_layers())] {
        // Not within the bytes behind the last document: without those everything is there.
        for part in 0..=8 {
            let cut = (archive.len() - 3072) * part / 8;
            assert_refused(&fixture, &archive[..cut], "");
            // With or without an error of the sender.
            let broken = archive[..cut].chain(FailingReader);
            let error = import(&fixture, broken, None).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unavailable), "{error}");
            assert!(fixture.store.list().unwrap().is_empty());
            fixture.assert_tidy();
        }
    }
}

struct FailingReader;

impl Read for FailingReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

#[test]
fn names_that_leave_the_archive_and_more_files_than_an_image_has_are_refused() {
    let fixture = StoreFixture::new();
    let climbs = eyot_image::testing::TestLayer::default().file("../x", "x").bytes();
    assert_refused(&fixture, &climbs[..], "`../x` leaves");
    let empty = eyot_image::testing::TestLayer::default();
    let rootfs = empty.clone().file("bin/sh", "#!").bytes();
    assert_refused(&fixture, &rootfs[..], "neither an OCI layout nor");
    let many = (0..10_001).fold(empty, |layer, number| layer.symlink(&format!("l{number}"), "x"));
    assert_refused(&fixture, &many.bytes()[..], "more files than");
}
