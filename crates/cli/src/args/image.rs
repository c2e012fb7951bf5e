//! The arguments of `eyot image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use eyot_image::ImageName;

const EXAMPLES: &str = "\
Examples:
  eyot image pull node:22                      from a registry
  eyot image import app.tar                    what `docker save` wrote
  eyot image import rootfs.tar.zst --name base:12
  docker save app:1 | eyot image import -      from another machine, say
  eyot image import docker://app:1             from the local Docker Engine
  eyot image build-base --name py:3 -p python3 a Debian of your own
  eyot image ls
  eyot run --image node:22 -- node -e 'console.log(6 * 7)'
  eyot image rm app:1
  eyot image prune                             remove what nothing needs
  eyot --server URL image pull node:22         on a server; also ls, import, rm

An image is kept once, in the state folder, and its layers are shared by all sandboxes made over it. \
Its environment, working directory and user count where a sandbox is not told otherwise.";

const LS_EXAMPLES: &str = "\
Examples:
  eyot image ls
  eyot image ls -q                             names only";

const RM_EXAMPLES: &str = "\
Examples:
  eyot image rm app:1
  eyot image rm --force app:1 app:2            even if sandboxes use them";

const PRUNE_EXAMPLES: &str = "\
Examples:
  eyot image prune
  eyot image prune --all                       images without a sandbox, too";

const IMPORT_EXAMPLES: &str = "\
Examples:
  eyot image import app.tar
  eyot image import rootfs.tar.zst --name base:12
  eyot image import docker://app:1             from the local Docker Engine
  docker save app:1 | eyot image import -";

/// `eyot image`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImageArgs {
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// A command about images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Import images from a file, a folder or a Docker Engine: an OCI layout, a `docker save`
    /// archive, a rootfs tarball
    Import(ImportArgs),
    /// Pull images from a registry
    Pull(PullArgs),
    /// Build a Debian image from packages, without a registry
    BuildBase(BuildBaseArgs),
    /// List the images
    #[command(visible_alias = "list", after_help = LS_EXAMPLES)]
    Ls,
    /// Remove images, and the layers that no other image or sandbox needs
    #[command(after_help = RM_EXAMPLES)]
    Rm {
        /// The images' names
        #[arg(value_name = "IMAGE", required = true, value_parser = parse_image)]
        names: Vec<ImageName>,
        /// Remove the name even if sandboxes use the image; they keep their layers
        #[arg(long, short)]
        force: bool,
    },
    /// Remove everything that no image and no sandbox needs
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune {
        /// Also remove images that no sandbox uses
        #[arg(long)]
        all: bool,
    },
}

/// `eyot image import`
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub struct ImportArgs {
    /// A tarball (plain, gzip or zstd), a folder, an image of the Docker Engine such as
    /// docker://node:22, or `-` for a `docker save` archive on standard input
    #[arg(value_name = "FILE|DIR|docker://IMAGE|-", value_parser = parse_source)]
    pub source: ImportSource,
    /// The name of the image; required for a rootfs tarball, which has none
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    pub name: Option<ImageName>,
}

/// The source of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportSource {
    /// A file or a folder.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// An image of the Docker Engine at `DOCKER_HOST`, else at the usual socket.
    Engine(ImageName),
}

fn parse_source(text: &str) -> Result<ImportSource, eyot::Error> {
    match text.strip_prefix("docker://") {
        Some(name) => ImageName::parse(name).map(ImportSource::Engine),
        None if text == "-" => Ok(ImportSource::Stdin),
        None => Ok(ImportSource::Path(PathBuf::from(text))),
    }
}

/// `eyot image pull`
#[derive(Debug, Args)]
#[command(after_help = PULL_NOTES)]
pub struct PullArgs {
    /// References such as `node:22` or `registry.example/team/app:1`
    #[arg(value_name = "IMAGE", required = true, value_parser = parse_image)]
    pub names: Vec<ImageName>,
}

const PULL_NOTES: &str = "\
Examples:
  eyot image pull node:22
  eyot image pull debian:12 registry.example/team/app:1

Credentials are Docker's (docker login) or Podman's. A pull that broke off goes on where it stopped. \
The configuration names mirrors:

  [registries]
  mirrors = { \"registry.example.com\" = [\"mirror.example:5000\"] }
  plain_http_on_loopback = true";

/// `eyot image build-base`
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct BuildBaseArgs {
    /// The name of the image
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    pub name: ImageName,
    /// The release, such as bookworm [default: the host's own]
    #[arg(long)]
    pub suite: Option<String>,
    /// Packages to add to the smallest system
    #[arg(long = "package", short = 'p', value_name = "PACKAGE", value_delimiter = ',')]
    pub packages: Vec<String>,
    /// The archive to take packages from [default: Debian's]
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  eyot image build-base --name debian:12 --suite bookworm
  eyot image build-base --name python:3 -p python3,python3-pip,git

It is made by mmdebstrap (sudo apt-get install mmdebstrap), as root, or as a user with ids in \
/etc/subuid and /etc/subgid and with newuidmap (sudo apt-get install uidmap).";

/// Parses a reference such as `node:22`.
pub fn parse_image(text: &str) -> Result<ImageName, String> {
    // The parser shows no hint.
    ImageName::parse(text).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}
