//! Images for tests, made from nothing: layers entry by entry, in the forms that common tools
//! write.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use oci_spec::image::{Arch, Descriptor, ImageIndexBuilder, ImageManifestBuilder, MediaType};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::digest::Digest;

/// A layer in the making.
#[derive(Debug, Clone, Default)]
pub struct TestLayer(Vec<u8>);

impl TestLayer {
    /// Adds an entry of any kind, with any path and link.
    #[must_use]
    pub fn entry(mut self, kind: EntryType, path: &str, link: &str, mode: u32, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(1_000_000_000);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// Adds a file that everybody may read.
    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(EntryType::Regular, path, "", 0o644, content.as_ref())
    }

    /// Adds a directory.
    #[must_use]
    pub fn directory(self, path: &str, mode: u32) -> Self {
        self.entry(EntryType::Directory, path, "", mode, b"")
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, path, target, 0o777, b"")
    }

    /// Adds everything below a directory of the host, as if it belonged to root.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn tree(mut self, root: &Path) -> io::Result<Self> {
        let mut tar = Builder::new(Vec::new());
        tar.mode(tar::HeaderMode::Deterministic);
        tar.follow_symlinks(false);
        tar.append_dir_all("", root)?;
        let mut tree = tar.into_inner()?;
        tree.truncate(tree.len() - 1024);
        self.0.extend_from_slice(&tree);
        Ok(self)
    }

    /// Returns the tar stream.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [&self.0[..], &[0; 1024]].concat()
    }
}

/// The compression of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    Plain,
    /// Compression by gzip.
    Gzip,
    /// Compression by zstd.
    Zstd,
}

/// An image in the making.
#[derive(Debug, Clone)]
pub struct TestImage {
    /// The uncompressed layers, the lowest first.
    pub layers: Vec<Vec<u8>>,
    /// The compression of the layers.
    pub packing: Packing,
    /// The object under `config`: `Env`, `WorkingDir`, `User`.
    pub config: Value,
    /// The machine that the image is for. The default is this one.
    pub architecture: String,
}

impl TestImage {
    /// Returns an image of these layers, the lowest first.
    #[must_use]
    pub fn new(layers: &[TestLayer]) -> Self {
        let layers = layers.iter().map(TestLayer::bytes).collect();
        let architecture = Arch::default().to_string();
        Self { layers, packing: Packing::Gzip, config: json!({}), architecture }
    }

    /// Sets the configuration for commands.
    #[must_use]
    pub fn with_config(self, config: Value) -> Self {
        Self { config, ..self }
    }

    /// Returns the layers as blobs.
    ///
    /// # Errors
    /// Errors of the packer.
    pub fn blobs(&self) -> io::Result<Vec<Vec<u8>>> {
        self.layers.iter().map(|layer| self.packing.pack(layer)).collect()
    }

    /// Returns the configuration as a blob.
    #[must_use]
    pub fn config_blob(&self) -> Vec<u8> {
        let diffs: Vec<String> = self.layers.iter().map(|layer| Digest::of(layer).to_string()).collect();
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": "2026-01-02T03:04:05Z",
            "config": self.config,
            "rootfs": { "type": "layers", "diff_ids": diffs },
        });
        config.to_string().into_bytes()
    }

    /// Writes an OCI layout into a folder, or adds to the one that is there.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn write_layout(&self, folder: &Path, name: Option<&str>) -> io::Result<Digest> {
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        let blobs: io::Result<Vec<Descriptor>> =
            self.blobs()?.iter().map(|blob| put(folder, self.packing.media_type(), blob)).collect();
        let config = put(folder, MediaType::ImageConfig, &self.config_blob())?;
        let manifest = ImageManifestBuilder::default().schema_version(2_u32).config(config).layers(blobs?);
        let manifest = serde_json::to_vec(&manifest.build().map_err(io::Error::other)?)?;
        let mut descriptor = put(folder, MediaType::ImageManifest, &manifest)?;
        let annotation = name.map(|name| HashMap::from([(crate::index::NAME.to_owned(), name.to_owned())]));
        descriptor.set_annotations(annotation);
        let index = ImageIndexBuilder::default().schema_version(2_u32).manifests(vec![descriptor]);
        fs::write(folder.join("index.json"), serde_json::to_vec(&index.build().map_err(io::Error::other)?)?)?;
        Ok(Digest::of(&manifest))
    }

    /// Writes an archive in the older format of `docker save`, before OCI layouts. A repeated layer
    /// becomes a link.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn write_docker_archive(&self, file: &Path, names: &[&str]) -> io::Result<()> {
        let mut tar = Builder::new(File::create(file)?);
        let mut add = |name: &str, bytes: &[u8]| {
            let mut header = Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(1_000_000_000);
            tar.append_data(&mut header, name, bytes)
        };
        let config = self.config_blob();
        let config_name = format!("{}.json", Digest::of(&config).hex());
        add(&config_name, &config)?;
        let mut layers = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            layers.push(format!("layer-{number}/layer.tar"));
            add(&layers[number], layer)?;
        }
        let manifest = json!([{ "Config": config_name, "RepoTags": names, "Layers": layers }]);
        add("manifest.json", manifest.to_string().as_bytes())?;
        tar.finish()
    }
}

impl Packing {
    fn pack(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(bytes.to_vec()),
            Self::Zstd => zstd::encode_all(bytes, 1),
            Self::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                writer.write_all(bytes)?;
                writer.finish()
            }
        }
    }

    fn media_type(self) -> MediaType {
        match self {
            Self::Plain => MediaType::ImageLayer,
            Self::Gzip => MediaType::ImageLayerGzip,
            Self::Zstd => MediaType::ImageLayerZstd,
        }
    }
}

fn put(folder: &Path, kind: MediaType, bytes: &[u8]) -> io::Result<Descriptor> {
    let digest = Digest::of(bytes);
    fs::write(folder.join("blobs/sha256").join(digest.hex()), bytes)?;
    let digest = digest.to_string().parse::<oci_spec::image::Digest>().map_err(io::Error::other)?;
    Ok(Descriptor::new(kind, bytes.len() as u64, digest))
}
