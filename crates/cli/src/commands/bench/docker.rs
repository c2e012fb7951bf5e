//! Measures the Docker provider's sandboxes beside the Engine's own operations.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use eyot::{
    Error, ErrorKind, Lifecycle, PullPolicy, Sandbox, SandboxOperationUnsupported, SandboxProvider,
    SandboxSpec,
};
use eyot_providers::docker::{Baseline, NODE_IMAGE};

use super::repeat;
use crate::args::BenchArgs;
use crate::bench::{BenchReport, BenchSubject, EngineRounds, Items, SkippedPeer};
use crate::context::Context;
use crate::errors::Failure;
use crate::provider::open_docker;

/// The time after which the sandboxes of a killed benchmark are removed, in milliseconds.
const TTL_MS: u64 = 3_600_000;

/// Measures everything that the arguments ask for.
pub async fn measure(args: &BenchArgs, context: &Context) -> Result<BenchReport, Failure> {
    refuse_what_is_native(args)?;
    let provider = open_docker(&context.provider_settings);
    let engine = provider.version().await?;
    let named = args
        .image
        .as_ref()
        .map(|image| image.name().short().to_owned())
        .or_else(|| context.config.defaults.image.clone());
    let image = named.unwrap_or_else(|| NODE_IMAGE.to_owned());
    let baseline = Baseline::new(None, image.clone(), HashMap::from([label()]));
    baseline.check().await.map_err(|error| without_image(&image, error))?;
    let (items, left_out) = measure_rounds(args, context, &*provider, &baseline, &image).await?;
    Ok(BenchReport::new(BenchSubject::Docker { engine, image }, &items, left_out))
}

fn refuse_what_is_native(args: &BenchArgs) -> Result<(), Failure> {
    let refuse = |option: &str| {
        Err(Error::from(SandboxOperationUnsupported::new("bench", "docker", &[option])).into())
    };
    match args {
        BenchArgs { live: 1.., .. } => refuse("--live"),
        BenchArgs { transfer: true, .. } => refuse("--transfer"),
        BenchArgs { branches: true, .. } => refuse("--branches"),
        _ => Ok(()),
    }
}

fn without_image(image: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("the Engine has no image `{image}`"))
            .with_hint(format!("name one that is there: --image NAME; or: docker pull {image}"))
            .with_source(error),
        _ => error,
    }
}

async fn measure_rounds(
    args: &BenchArgs,
    context: &Context,
    provider: &dyn SandboxProvider,
    baseline: &Baseline,
    image: &str,
) -> Result<(Items, Vec<SkippedPeer>), Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::host("make a folder", error))?;
    let spec = spec(image);
    let live = Sandbox::create(provider, spec.clone()).await?;
    let rounds = EngineRounds {
        provider,
        spec,
        live: &live,
        baseline,
        container: format!("eyot-bench-{}", live.name()),
        image: image.to_owned(),
        has_program: has_program(),
        folder: folder.path().to_owned(),
    };
    let measured = all_rounds(args, context, &rounds).await;
    let cleared = rounds.clear().await;
    let destroyed = live.destroy().await;
    let items = measured?;
    cleared?;
    destroyed?;
    let missing = SkippedPeer { peer: "docker", reason: "is not installed".to_owned() };
    Ok((items, if rounds.has_program { Vec::new() } else { vec![missing] }))
}

async fn all_rounds(
    args: &BenchArgs,
    context: &Context,
    rounds: &EngineRounds<'_>,
) -> Result<Items, Failure> {
    rounds.baseline.create(&rounds.container).await?;
    repeat(args, context, async |items| rounds.round(items).await).await
}

/// Returns the label of every container of this benchmark.
fn label() -> (String, String) {
    ("eyot-bench".to_owned(), std::process::id().to_string())
}

fn spec(image: &str) -> SandboxSpec {
    let lifecycle = Lifecycle { ttl_ms: Some(TTL_MS), ..Lifecycle::default() };
    let mut spec = SandboxSpec { image: Some(image.to_owned()), lifecycle, ..SandboxSpec::default() };
    spec.container.pull = PullPolicy::Never;
    spec.labels.extend([label()]);
    spec
}

fn has_program() -> bool {
    let tried = Command::new("docker").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}
