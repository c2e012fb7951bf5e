//! Tarballs of a root file system: images of one layer, without a configuration for commands.

use std::fs::File;
use std::io;
use std::path::Path;

use eyot::ImageInfo;
use oci_spec::image::{Arch, ImageConfigurationBuilder, Os, RootFsBuilder};

use super::manifest_of;
use crate::ImageName;
use crate::config::BlobRef;
use crate::failure::refused;
use crate::progress::Progress;
use crate::store::ImageStore;

impl ImageStore {
    pub(super) fn import_rootfs(
        &self,
        source: &Path,
        name: &ImageName,
        progress: &dyn Progress,
    ) -> io::Result<ImageInfo> {
        let (digest, bytes) = self.put_blob(File::open(source)?, None, progress)?;
        progress.begin(&digest, bytes);
        progress.advance(&digest, bytes);
        let diff = self.add_unknown_layer(&digest)?;
        let layer = self.layer_of(&diff).ok_or(io::ErrorKind::NotFound)?;
        if !["bin", "usr/bin"]
            .iter()
            .any(|folder| self.layers().join(&layer).join(folder).symlink_metadata().is_ok())
        {
            return Err(refused("it holds no root file system: neither /bin nor /usr/bin is in it"));
        }
        let rootfs = RootFsBuilder::default().typ("layers").diff_ids([diff.to_string()]).build();
        let config = ImageConfigurationBuilder::default()
            .os(Os::Linux)
            .architecture(Arch::default())
            .rootfs(rootfs.map_err(io::Error::other)?)
            .build()
            .map_err(io::Error::other)?;
        let config = serde_json::to_vec(&config)?;
        let config = BlobRef { digest: self.put_document(&config)?, bytes: config.len() as u64 };
        let info =
            self.name_image(name, &manifest_of(&config, &[BlobRef { digest: digest.clone(), bytes }])?)?;
        progress.finish(&digest);
        Ok(info)
    }
}
