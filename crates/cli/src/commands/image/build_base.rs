//! `eyot image build-base`: builds a Debian image from packages.

use std::pin::pin;

use eyot_image::{BaseOptions, BuildStop};

use super::{import, store};
use crate::args::BuildBaseArgs;
use crate::bars::progress;
use crate::context::Context;
use crate::errors::Failure;
use crate::signals::Signals;

pub async fn run(args: BuildBaseArgs, context: &Context) -> Result<u8, Failure> {
    let (store, progress) = (store(context)?, progress(context.output));
    let BuildBaseArgs { name, suite, packages, mirror } = args;
    let options = BaseOptions { suite, packages, mirror };
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let stop = BuildStop::default();
    let stopped = stop.clone();
    let building =
        tokio::task::spawn_blocking(move || store.build_base(&name, &options, &*progress, &stopped));
    let building = context.output.explain_a_wait("making a Debian; that takes a minute or two", building);
    let mut building = pin!(building);
    let built = tokio::select! {
        built = &mut building => built,
        signal = signals.end() => {
            stop.stop();
            // What it has made is removed, unless a second signal comes.
            tokio::select! {
                _ = building => {}
                _ = signals.end() => {}
            }
            return Err(Failure::Interrupted(signal));
        }
    };
    let image = built.map_err(|error| Failure::host("build", std::io::Error::other(error)))??;
    import::print(&[image], context)
}
