//! The arguments of `eyot bench`.

use std::path::PathBuf;

use clap::Args;
use eyot_image::ImageName;

const EXAMPLES: &str = "\
Examples:
  eyot bench                      the table of docs/performance.md for this host
  eyot bench --live 1000          and with a thousand idle sandboxes
  eyot bench --rounds 200 --json  for a program to read
  eyot bench --compare ./eyot-before
                                  this build and another one, in turn
  eyot --provider docker bench --image debian:12
                                  containers, beside the Engine's own API

Run it on a machine that does nothing else, and compare ratios: absolute times differ \
between machines and hours. The sandboxes live beside the state folder (--state), on the \
same disk, and are gone afterwards.";

/// The arguments of `eyot bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// The number of rounds; five more rounds warm up
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Also measure with this many idle sandboxes (0: don't); native, at most 4000
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub live: u32,
    /// As root, also measure sandboxes from slots for this many seconds, one after another (0: don't)
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub sustained: u32,
    /// Compare this program with another build of it, in turn: the ratios of the medians
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["live", "transfer", "branches", "image", "sustained"])]
    pub compare: Option<PathBuf>,
    /// Also measure copies from one sandbox to another: 10,000 files, and one file of 1 GiB
    #[arg(long)]
    pub transfer: bool,
    /// Also measure snapshots and forks of a sandbox with 100,000 files and 2 GiB, and of one with a disk limit; native
    #[arg(long)]
    pub branches: bool,
    /// Also measure this image: a pull into an empty store (docker://IMAGE: from the Engine), and
    /// sandboxes of it.
    /// With --provider docker, the image of all containers: it must exist and have `sleep` [env: EYOT_IMAGE]
    #[arg(long, value_name = "IMAGE", value_parser = parse_bench_image)]
    pub image: Option<BenchImage>,
}

/// An image to measure, and its source.
#[derive(Debug, Clone)]
pub enum BenchImage {
    /// An image of a registry.
    Registry(ImageName),
    /// An image of the Docker Engine.
    Engine(ImageName),
}

impl BenchImage {
    /// Returns the image's name.
    pub fn name(&self) -> &ImageName {
        match self {
            Self::Registry(name) | Self::Engine(name) => name,
        }
    }
}

fn parse_bench_image(text: &str) -> Result<BenchImage, eyot::Error> {
    match text.strip_prefix("docker://") {
        Some(name) => ImageName::parse(name).map(BenchImage::Engine),
        None => ImageName::parse(text).map(BenchImage::Registry),
    }
}
