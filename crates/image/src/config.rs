//! The configuration of an image: its parts, and how its commands are to be run.

use std::io;

use oci_spec::image::{Arch, Descriptor, ImageConfiguration, ImageManifest, Os};

use crate::digest::Digest;
use crate::failure::refused;

/// The most layers that an image may have: as many as Docker allows.
pub(crate) const MAX_LAYERS: usize = 127;
/// The most bytes of all variables of an image together: a guest gets them in one message.
const MAX_ENV_BYTES: usize = 32 << 10;

/// The way in which an image wants its commands to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunConfig {
    /// Variables, in their order.
    pub env: Vec<(String, String)>,
    /// The directory in which commands start; `None` if the image names none.
    pub workdir: Option<String>,
    /// `user`, `uid`, `user:group` or `uid:gid`; `None` if the image names none.
    pub user: Option<String>,
}

impl RunConfig {
    pub(crate) fn of(config: &ImageConfiguration) -> io::Result<Self> {
        let Some(config) = config.config() else { return Ok(Self::default()) };
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let lines = config.env().clone().unwrap_or_default();
        if lines.iter().map(String::len).sum::<usize>() > MAX_ENV_BYTES {
            return Err(refused("its variables are longer than 32 KiB together"));
        }
        let variable = |line: String| {
            let (name, value) = line.split_once('=')?;
            let is_one = !name.is_empty() && !line.contains('\0');
            is_one.then(|| (name.to_owned(), value.to_owned()))
        };
        Ok(Self {
            env: lines.into_iter().filter_map(variable).collect(),
            workdir: given(config.working_dir()),
            user: given(config.user()),
        })
    }
}

/// A blob by digest and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobRef {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
}

impl BlobRef {
    pub(crate) fn of(descriptor: &Descriptor) -> io::Result<Self> {
        let text = descriptor.digest().to_string();
        let digest =
            Digest::parse(&text).ok_or_else(|| refused(format!("`{text}` is not a SHA-256 digest")))?;
        Ok(Self { digest, bytes: descriptor.size() })
    }
}

/// The parts of an image.
#[derive(Debug, Clone)]
pub(crate) struct ImageParts {
    pub(crate) config: BlobRef,
    /// The layers, the lowest first.
    pub(crate) layers: Vec<BlobRef>,
}

impl ImageParts {
    pub(crate) fn of_manifest(bytes: &[u8]) -> io::Result<Self> {
        let manifest: ImageManifest = serde_json::from_slice(bytes)
            .map_err(|error| refused(format!("its manifest can't be read: {error}")))?;
        let layers: io::Result<Vec<BlobRef>> = manifest.layers().iter().map(BlobRef::of).collect();
        Ok(Self { config: BlobRef::of(manifest.config())?, layers: layers? })
    }
}

/// Parses a configuration.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<ImageConfiguration> {
    serde_json::from_slice(bytes)
        .map_err(|error| refused(format!("its configuration can't be read: {error}")))
}

/// Returns the digests of the uncompressed layers, the lowest first.
///
/// # Errors
/// Refusals: an image for another machine, a number of layers that can't be, malformed digests.
pub(crate) fn diff_ids(config: &ImageConfiguration, layers: usize) -> io::Result<Vec<Digest>> {
    if *config.os() != Os::Linux || *config.architecture() != Arch::default() {
        let (os, architecture) = (config.os(), config.architecture());
        return Err(refused(format!("it is for {os}/{architecture}, not for this machine")));
    }
    let ids = config.rootfs().diff_ids();
    if ids.len() != layers || layers == 0 {
        return Err(refused(format!("it has {layers} layers and tells of {}", ids.len())));
    }
    if layers > MAX_LAYERS {
        return Err(refused(format!("it has {layers} layers; the most is {MAX_LAYERS}")));
    }
    let parse = |text: &String| {
        Digest::parse(text).ok_or_else(|| refused(format!("`{text}` is not a SHA-256 digest")))
    };
    ids.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ImageConfiguration {
        let arch = Arch::default();
        parse(format!(r#"{{"os":"linux","architecture":"{arch}",{text}}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn what_an_image_says_of_its_commands_is_read_and_what_is_empty_is_nothing() {
        let text = r#""config":{"Env":["A=1=2","=x","B"],"WorkingDir":"/app","ImageUser":""},"rootfs":{"type":"layers","diff_ids":[]}"#;
        let run = RunConfig::of(&config(text)).unwrap();
        assert_eq!(run.env, [("A".to_owned(), "1=2".to_owned())]);
        assert_eq!((run.workdir.as_deref(), run.user), (Some("/app"), None));
        assert_eq!(
            RunConfig::of(&config(r#""rootfs":{"type":"layers","diff_ids":[]}"#)).unwrap(),
            RunConfig::default()
        );
        let long = format!(
            r#""config":{{"Env":["A={}"]}},"rootfs":{{"type":"layers","diff_ids":[]}}"#,
            "x".repeat(40_000)
        );
        assert!(RunConfig::of(&config(&long)).is_err());
    }

    #[test]
    fn an_image_of_another_machine_or_with_layers_that_do_not_fit_is_refused() {
        let other = br#"{"os":"windows","architecture":"s390x","rootfs":{"type":"layers","diff_ids":[]}}"#;
        assert!(diff_ids(&parse(other).unwrap(), 0).unwrap_err().to_string().contains("windows/s390x"));
        let id = Digest::of(b"x");
        let with = |count: usize| {
            let ids = vec![format!("\"{id}\""); count].join(",");
            config(&format!(r#""rootfs":{{"type":"layers","diff_ids":[{ids}]}}"#))
        };
        assert_eq!(diff_ids(&with(1), 1).unwrap(), std::slice::from_ref(&id));
        for (ids, layers) in [(1, 2), (0, 0), (128, 128)] {
            assert!(diff_ids(&with(ids), layers).is_err());
        }
        let wrong = config(r#""rootfs":{"type":"layers","diff_ids":["sha256:../x"]}"#);
        assert!(diff_ids(&wrong, 1).is_err());
    }
}
