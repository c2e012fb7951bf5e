//! Measures the sandboxes of a provider by the calls of the contract alone.

use eyot::{Error, SandboxOperationUnsupported};

use super::{progress, repeat};
use crate::args::BenchArgs;
use crate::bench::{BenchReport, BenchSubject, CallRounds};
use crate::context::Context;
use crate::errors::Failure;
use crate::provider::Makes;

/// Measures everything that the arguments ask for.
pub async fn measure(args: &BenchArgs, context: &Context) -> Result<BenchReport, Failure> {
    let row = context.provider_settings.row;
    refuse_what_is_native(args, row.name)?;
    let folder = tempfile::tempdir().map_err(|error| Failure::host("make a folder", error))?;
    let provider = context.provider_settings.at(folder.path().join("state")).open(Makes::Many)?;
    let mut spec = (row.tests.spec)();
    if let Some(image) = &args.image {
        spec.image = Some(image.name().short().to_owned());
    }
    let rounds = CallRounds { provider: provider.as_ref(), spec };
    let items = repeat(args, context, async |items| rounds.round(items).await).await?;
    let mut report = BenchReport::new(BenchSubject::Other { name: row.name }, &items, Vec::new());
    if args.live > 0 {
        let progress = progress(context, u64::from(args.live));
        let live = rounds.live(args.live as usize, &|| progress.inc(1)).await;
        progress.finish_and_clear();
        report.live = Some(live?);
    }
    Ok(report)
}

fn refuse_what_is_native(args: &BenchArgs, provider: &str) -> Result<(), Failure> {
    let refuse = |option: &str| {
        Err(Error::from(SandboxOperationUnsupported::new("bench", provider, &[option])).into())
    };
    match args {
        BenchArgs { sustained: 1.., .. } => refuse("--sustained"),
        BenchArgs { transfer: true, .. } => refuse("--transfer"),
        BenchArgs { branches: true, .. } => refuse("--branches"),
        _ => Ok(()),
    }
}
