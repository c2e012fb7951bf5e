//! `eyot bench`: measures sandboxes on this machine, beside the host's own operations and other
//! isolators; or, with `--provider docker`, beside the Engine's own operations.

mod calls;
mod compare;
mod docker;
mod native;

use indicatif::ProgressBar;

use crate::args::BenchArgs;
use crate::bench::{BenchReport, Items};
use crate::context::Context;
use crate::errors::Failure;
use crate::provider::BenchMethod;

const WARM_UP: u32 = 5;

pub async fn run(args: BenchArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(other) = &args.compare {
        return compare::run(other, args.rounds, context).await;
    }
    let report = match context.provider_settings.row.bench {
        BenchMethod::BesideHost => native::measure(&args, context).await?,
        BenchMethod::BesideEngine => docker::measure(&args, context).await?,
        BenchMethod::Calls => calls::measure(&args, context).await?,
    };
    print(&report, context)?;
    Ok(0)
}

fn print(report: &BenchReport, context: &Context) -> Result<(), Failure> {
    if context.output.json { context.output.value(report) } else { context.output.text(&report.markdown()) }
}

/// Runs all rounds; the first ones only warm up.
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

/// Shows a bar to a person who waits, and nothing to a program.
fn progress(context: &Context, steps: u64) -> ProgressBar {
    if context.output.shows_progress() { ProgressBar::new(steps) } else { ProgressBar::hidden() }
}
