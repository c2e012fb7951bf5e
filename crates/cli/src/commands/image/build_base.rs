//! `eyot image build-base`: builds a Debian image from packages.

use eyot_image::BaseOptions;

use super::{import, store};
use crate::args::BuildBaseArgs;
use crate::bars::progress;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: BuildBaseArgs, context: &Context) -> Result<u8, Failure> {
    let (store, progress) = (store(context)?, progress(context.output));
    let BuildBaseArgs { name, suite, packages, mirror } = args;
    let options = BaseOptions { suite, packages, mirror };
    let building = tokio::task::spawn_blocking(move || store.build_base(&name, &options, &*progress));
    let building =
        context.output.explain_a_wait("making a Debian; that takes a minute or two", building).await;
    let image = building.map_err(|error| Failure::host("build", std::io::Error::other(error)))??;
    import::print(&[image], context)
}
