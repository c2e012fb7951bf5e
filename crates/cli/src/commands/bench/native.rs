//! Measures the native provider's sandboxes beside the host's own operations and other isolators.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eyot::{Sandbox, SandboxProvider, SandboxSpec};
use eyot_image::ImageSource;

use super::{WARM_UP, progress, repeat};
use crate::args::{BenchArgs, BenchImage};
use crate::bench::crowd::CrowdProgram;
use crate::bench::{
    BenchReport, BenchSubject, BranchRounds, Items, OverHttp, Peers, Rounds, crowd, images, sustained,
    transfers,
};
use crate::context::Context;
use crate::errors::Failure;
use crate::provider::{self, Makes, OptionValue, SLOTS};

/// The most sandboxes that are kept alive: each has processes, mounts and a connection.
const MOST_LIVE: u32 = 4000;

/// Measures everything that the arguments ask for.
pub async fn measure(args: &BenchArgs, context: &Context) -> Result<BenchReport, Failure> {
    if args.live > MOST_LIVE {
        return Err(Failure::usage(format!("--live is at most {MOST_LIVE} for native sandboxes")));
    }
    raise_open_files()?;
    let folder = own_folder(&context.state_folder()?)?;
    let provider = context.provider_settings.at(folder.path().join("state")).open(Makes::Many)?;
    let peers = Peers::find(folder.path());
    let branches = BranchRounds::open(Arc::clone(&provider))?;
    let mut items =
        measure_rounds(args, context, (provider.as_ref(), &branches), (folder.path(), &peers)).await?;
    if args.branches {
        let bar = progress(context, BranchRounds::LARGE as u64);
        branches.many(&mut items, &|| bar.inc(1)).await?;
        bar.finish_and_clear();
    }
    if args.sustained > 0
        && let Some(slots) = provider_with_slots(context, folder.path())?
    {
        let time = Duration::from_secs(u64::from(args.sustained));
        sustained::measure(slots.as_ref(), time, &mut items).await?;
    }
    if let Some(image) = &args.image {
        measure_image(image, args, context, provider.as_ref(), (folder.path(), &mut items)).await?;
    }
    let mut report = BenchReport::new(BenchSubject::native(), &items, peers.left_out);
    if args.live > 0 {
        let crowd = measure_crowd(args.live as usize, context, provider.as_ref(), folder.path()).await?;
        report.crowd = Some(crowd);
    }
    if args.transfer {
        report.copied = measure_transfers(context, provider.as_ref(), folder.path()).await?;
    }
    Ok(report)
}

async fn measure_rounds(
    args: &BenchArgs,
    context: &Context,
    (provider, branches): (&dyn SandboxProvider, &BranchRounds),
    (folder, peers): (&Path, &Peers),
) -> Result<Items, Failure> {
    let eyot = this_program()?;
    let slots = provider_with_slots(context, folder)?;
    let live = Sandbox::create(provider, SandboxSpec::default()).await?;
    let sleeper = Sandbox::create(provider, SandboxSpec::default()).await?;
    let over_http = OverHttp::begin(&eyot, folder).await?;
    let rounds = Rounds {
        provider,
        slots: slots.as_deref(),
        live: &live,
        sleeper: sleeper.id().as_str(),
        folder,
        eyot: &eyot,
        over_http: &over_http,
        branches,
        peers,
    };
    let items = repeat(args, context, async |items| rounds.round(items).await).await?;
    over_http.end().await?;
    live.destroy().await?;
    provider.remove(sleeper.id().as_str()).await?;
    Ok(items)
}

/// The number of slots that are measured.
const MEASURED_SLOTS: u64 = 4;

/// Opens a provider of sandboxes from slots, with a state folder of its own; `None` for an ordinary
/// user, who has none.
fn provider_with_slots(
    context: &Context,
    folder: &Path,
) -> Result<Option<Arc<dyn SandboxProvider>>, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let mut settings = context.provider_settings.at(folder.join("slots-state"));
    settings.set(SLOTS, OptionValue::Number(MEASURED_SLOTS))?;
    Ok(Some(settings.open(Makes::Many)?))
}

fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::host("find this program", error))
}

async fn measure_image(
    image: &BenchImage,
    args: &BenchArgs,
    context: &Context,
    provider: &dyn SandboxProvider,
    (folder, items): (&Path, &mut Items),
) -> Result<(), Failure> {
    let registries = eyot_image::pull::Registries(context.config.registries.pull_options());
    let engine = provider::engine_images();
    let (source, name): (&dyn ImageSource, _) = match image {
        BenchImage::Registry(name) => (&registries, name),
        BenchImage::Engine(name) => (&engine, name),
    };
    let store = provider::images(&folder.join("state"));
    images::measure(provider, source, &store, name, (WARM_UP, args.rounds), items).await
}

async fn measure_crowd(
    live: usize,
    context: &Context,
    provider: &dyn SandboxProvider,
    folder: &Path,
) -> Result<crowd::Crowd, Failure> {
    let eyot = this_program()?;
    let program = CrowdProgram { eyot: &eyot, state: &folder.join("state") };
    let progress = progress(context, live as u64);
    let crowd = crowd::measure(provider, program, live, &|| progress.inc(1)).await;
    progress.finish_and_clear();
    crowd
}

async fn measure_transfers(
    context: &Context,
    provider: &dyn SandboxProvider,
    folder: &Path,
) -> Result<Vec<transfers::MeasuredCopy>, Failure> {
    let progress = progress(context, 2);
    let copied = transfers::measure(provider, folder, &|| progress.inc(1)).await;
    progress.finish_and_clear();
    copied
}

/// Makes a folder beside the state folder, since the speed of sandboxes depends on that disk.
fn own_folder(state: &Path) -> Result<tempfile::TempDir, Failure> {
    let cannot = |error| Failure::host("make a folder beside the state folder", error);
    let beside = state.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
    std::fs::create_dir_all(&beside).map_err(cannot)?;
    tempfile::Builder::new().prefix("eyot-bench-").tempdir_in(beside).map_err(cannot)
}

/// Raises the limit of open files: every live sandbox has a connection.
fn raise_open_files() -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum })
        .map_err(|error| Failure::host("raise the limit of open files", error.into()))
}
