//! `eyot bench`: what sandboxes cost on this machine, beside what the host's own operations and other isolators do; or,
//! with `--provider docker`, beside what the Engine's own operations do.

mod docker;
mod native;

use indicatif::ProgressBar;

use crate::args::{BenchArgs, ProviderArg};
use crate::bench::{Items, Report};
use crate::context::Context;
use crate::errors::Failure;

const WARM_UP: u32 = 5;

pub async fn run(args: BenchArgs, context: &Context) -> Result<u8, Failure> {
    let report = match context.place.kind {
        ProviderArg::Native => native::measure(&args, context).await?,
        ProviderArg::Docker => docker::measure(&args, context).await?,
    };
    print(&report, context)?;
    Ok(0)
}

fn print(report: &Report, context: &Context) -> Result<(), Failure> {
    if context.output.json { context.output.value(report) } else { context.output.text(&report.markdown()) }
}

/// All rounds, those that only warm up first.
async fn repeat(
    args: &BenchArgs,
    context: &Context,
    mut round: impl AsyncFnMut(&mut Items) -> Result<(), Failure>,
) -> Result<Items, Failure> {
    let progress = progress(context, u64::from(args.rounds + WARM_UP));
    let mut items = Items::default();
    for number in 0..args.rounds + WARM_UP {
        items.warming_up = number < WARM_UP;
        round(&mut items).await?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(items)
}

/// A bar for whoever waits, and nothing for a program.
fn progress(context: &Context, steps: u64) -> ProgressBar {
    if context.output.shows_progress() { ProgressBar::new(steps) } else { ProgressBar::hidden() }
}
