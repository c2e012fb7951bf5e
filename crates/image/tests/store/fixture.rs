//! A store for a test, and images to put into it.

use std::fs;
use std::path::{Path, PathBuf};

use eyot::Error;
use eyot_image::testing::{TestImage, TestLayer};
use eyot_image::{ImageInfo, ImageName, ImageStore, ImportOptions, NoProgress, ResolvedImage};
use tempfile::TempDir;

pub struct StoreFixture {
    folder: TempDir,
    pub store: ImageStore,
}

impl StoreFixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::new(folder.path().join("images"));
        Self { folder, store }
    }

    pub fn with_store(self, store: ImageStore) -> Self {
        Self { store, ..self }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn import(&self, source: &Path, name: Option<&str>) -> Result<Vec<ImageInfo>, Error> {
        let name = name.map(|name| ImageName::parse(name).unwrap());
        self.store.import(source, &ImportOptions { name, ..ImportOptions::default() }, &NoProgress)
    }

    /// Imports an image by way of an OCI layout.
    pub fn put(&self, image: &TestImage, name: &str) {
        let folder = self.path(&format!("layout-{}", name.replace([':', '/'], "-")));
        image.write_layout(&folder, None).unwrap();
        self.import(&folder, Some(name)).unwrap();
    }

    pub fn resolve(&self, name: &str) -> Option<ResolvedImage> {
        self.store.resolve(&ImageName::parse(name).unwrap()).unwrap()
    }

    /// Returns the text of a file of the topmost layer that has it.
    pub fn read(&self, name: &str, path: &str) -> String {
        let image = self.resolve(name).unwrap();
        let layers = image.layers.iter().map(|layer| image.folder.join(layer).join(path));
        fs::read_to_string(layers.into_iter().find(|path| path.exists()).unwrap()).unwrap()
    }

    /// Counts the entries in a folder of the store.
    pub fn count(&self, folder: &str) -> usize {
        fs::read_dir(self.store.root().join(folder)).map_or(0, Iterator::count)
    }

    /// Asserts that nothing is half done.
    pub fn assert_tidy(&self) {
        assert_eq!(self.count("incoming"), 0);
        assert_eq!(self.count("layers"), self.count("diffs"));
    }
}

/// Returns an image of two layers: a system, and something above it.
pub fn two_layers() -> TestImage {
    let system = TestLayer::default().file("bin/sh", "#!").file("etc/release", "old").file("etc/gone", "x");
    let above = TestLayer::default().file("etc/release", "new").file("etc/.wh.gone", "");
    TestImage::new(&[system, above])
}
