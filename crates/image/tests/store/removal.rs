//! Removal of images: what goes and what stays.

use std::fs;

use eyot::{Error, ErrorKind};
use eyot_image::testing::{TestImage, TestLayer};
use eyot_image::{ImageName, ImageUse};

use crate::fixture::{StoreFixture, two_layers};

fn name(text: &str) -> ImageName {
    ImageName::parse(text).unwrap()
}

fn nobody() -> Result<Vec<ImageUse>, Error> {
    Ok(Vec::new())
}

fn used_by(fixture: &StoreFixture, image: &str) -> Vec<ImageUse> {
    vec![ImageUse { sandbox: "box".into(), layers: fixture.resolve(image).unwrap().layers }]
}

#[test]
fn an_image_goes_with_what_no_other_image_needs() {
    let fixture = StoreFixture::new();
    let image = two_layers();
    fixture.put(&image, "a:1");
    fixture.put(&TestImage { layers: image.layers[..1].to_vec(), ..image }, "b:1");
    let done = fixture.store.remove(&name("a:1"), false, nobody).unwrap();
    assert_eq!((done.images, done.layers), (vec!["a:1".to_owned()], 1));
    assert_eq!((fixture.count("layers"), fixture.read("b:1", "etc/release")), (1, "old".into()));
    fixture.store.remove(&name("b:1"), false, nobody).unwrap();
    assert_eq!((fixture.count("layers"), fixture.count("diffs"), fixture.count("blobs/sha256")), (0, 0, 0));
    let error = fixture.store.remove(&name("b:1"), false, nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn an_image_that_a_sandbox_is_made_over_is_not_removed_and_never_its_layers() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    let uses = used_by(&fixture, "a:1");
    let error = fixture.store.remove(&name("a:1"), false, || Ok(uses.clone())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("box"), "{error}");
    assert!(fixture.resolve("a:1").is_some());

    fixture.store.remove(&name("a:1"), true, || Ok(uses.clone())).unwrap();
    assert!(fixture.resolve("a:1").is_none());
    assert_eq!(fixture.count("layers"), 2);
    fixture.store.prune(true, || Ok(uses)).unwrap();
    assert_eq!(fixture.count("layers"), 2);
    assert_eq!(fixture.store.prune(false, nobody).unwrap().layers, 2);
    assert_eq!(fixture.count("layers"), 0);
}

#[test]
fn an_image_with_two_names_may_lose_one_of_them_while_it_is_used() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    fixture.put(&two_layers(), "a:2");
    let uses = used_by(&fixture, "a:1");
    fixture.store.remove(&name("a:1"), false, || Ok(uses.clone())).unwrap();
    assert_eq!(
        fixture.store.remove(&name("a:2"), false, || Ok(uses)).unwrap_err().kind(),
        ErrorKind::Conflict
    );
}

#[test]
fn a_layer_that_was_kept_for_a_sandbox_serves_an_image_that_comes_back() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    let uses = used_by(&fixture, "a:1");
    fixture.store.remove(&name("a:1"), true, || Ok(uses.clone())).unwrap();
    fixture.put(&two_layers(), "a:1");
    assert_eq!(used_by(&fixture, "a:1"), uses);
    assert_eq!(fixture.count("layers"), 2);
}

#[test]
fn prune_removes_what_killed_processes_left_and_with_all_what_nobody_uses() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    fixture.put(&TestImage::new(&[TestLayer::default().file("bin/sh", "other")]), "b:1");
    let layers = fixture.store.layers();
    fs::create_dir_all(layers.join("halfdone22/etc")).unwrap();
    fs::write(fixture.store.root().join("incoming/part"), "x").unwrap();
    fs::write(fixture.store.root().join("blobs/sha256").join("0".repeat(64)), "xyz").unwrap();
    let uses = used_by(&fixture, "a:1");
    let done = fixture.store.prune(false, || Ok(uses.clone())).unwrap();
    assert_eq!((done.images.len(), done.layers, done.blobs, done.blob_bytes), (0, 1, 1, 3));
    let done = fixture.store.prune(true, || Ok(uses)).unwrap();
    assert_eq!(done.images, ["b:1"]);
    assert!(fixture.resolve("a:1").is_some());
    fixture.assert_tidy();
}

#[test]
fn the_next_import_removes_what_a_killed_one_left_but_not_what_a_pull_goes_on_with() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    let incoming = fixture.store.root().join("incoming");
    let part = incoming.join(format!("{}.part", "0".repeat(64)));
    fs::create_dir_all(fixture.store.layers().join("halfdone22/etc")).unwrap();
    fs::create_dir_all(fixture.store.layers().join("not-a-layer")).unwrap();
    fs::create_dir_all(incoming.join("tmp/deep")).unwrap();
    fs::write(incoming.join("copied-halfway"), "x").unwrap();
    fs::write(&part, "x").unwrap();
    fixture.put(&two_layers(), "b:1");
    assert_eq!((fixture.count("incoming"), fixture.count("layers")), (1, 3));
    assert!(part.exists() && fixture.resolve("a:1").is_some());
    fixture.store.prune(false, nobody).unwrap();
    assert!(!part.exists());
}

#[test]
fn whoever_can_not_say_what_is_in_use_removes_nothing() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    let fail = || Err(Error::new(ErrorKind::Unavailable, "no idea"));
    assert!(fixture.store.remove(&name("a:1"), true, fail).is_err());
    assert!(fixture.store.prune(true, fail).is_err());
    assert!(fixture.resolve("a:1").is_some());
}

#[test]
fn layers_stay_while_somebody_holds_them() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    let held = fixture.store.hold().unwrap();
    let found = fixture.resolve("a:1").unwrap();
    std::thread::scope(|scope| {
        let (store, asked) = (fixture.store.clone(), std::sync::mpsc::channel());
        let removing = scope.spawn(move || {
            store.remove(&name("a:1"), false, || {
                asked.0.send(()).unwrap();
                nobody()
            })
        });
        // The remover waits for its turn; the holder of the layers sees them all.
        assert!(found.layers.iter().all(|layer| found.folder.join(layer).is_dir()));
        assert!(asked.1.try_recv().is_err());
        drop(held);
        removing.join().unwrap().unwrap();
    });
    assert_eq!(fixture.count("layers"), 0);
}

#[test]
fn an_image_of_which_a_part_is_missing_says_so_and_can_be_removed() {
    let fixture = StoreFixture::new();
    fixture.put(&two_layers(), "a:1");
    let layer = fixture.resolve("a:1").unwrap().layers.remove(0);
    fs::rename(fixture.store.layers().join(layer), fixture.path("elsewhere")).unwrap();
    let error = fixture.store.resolve(&name("a:1")).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("eyot image rm")), "{error}");
    assert!(!fixture.store.list().unwrap()[0].complete);
    fixture.store.remove(&name("a:1"), false, nobody).unwrap();
}
