//! `eyot image pull`: pulls one image after the other. The first failure ends it.

use super::{import, store};
use crate::args::PullArgs;
use crate::bars::progress;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: PullArgs, context: &Context) -> Result<u8, Failure> {
    let (store, options) = (store(context)?, context.config.registries.pull_options());
    let mut images = Vec::new();
    for name in &args.names {
        images.push(store.pull(name, &options, progress(context.output)).await?);
    }
    import::print(&images, context)
}
