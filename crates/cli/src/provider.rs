//! Opens the provider of sandboxes. This is the only file that knows which providers there are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{
    Capabilities, Enforcement, Error, ErrorKind, Limits, LimitsEnforced, Mount, Result, SandboxNamer,
    SandboxProvider,
};
use eyot_engine::store::Store;
use eyot_image::{AllowedImages, ImageSource, ImageStore, ImageUse, Progress};
use eyot_native::host;
use eyot_native::{ImageSources, NativeOptions, NativeProvider, default_state_dir};
use eyot_providers::docker::{DockerOptions, DockerProvider, EngineImages};
use serde::Deserialize;

use crate::args::{MOST_SLOTS, ProviderArg};
use crate::config::RegistrySettings;

const _: () = assert!(MOST_SLOTS == eyot_native::MOST_SLOTS, "native has another limit");

/// The number of sandboxes that a command makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// One at most.
    One,
    /// Many.
    Many,
}

pub use eyot_native::KeptWorkspace;
pub use eyot_native::host::{Finding, Report, Status};
pub use eyot_providers::docker::Foreign;

/// The settings with which a provider is opened.
#[derive(Debug, Clone, Default)]
pub struct ProviderSettings {
    /// The state folder; `None`: the default one.
    pub state: Option<PathBuf>,
    /// For tests: simulated facts about the host.
    pub simulated: Simulated,
    /// The provider.
    pub kind: ProviderArg,
    /// The number of half-made sandboxes that native keeps for the next creates.
    pub slots: usize,
    /// The sources of images that native's state folder does not have. On Docker, the names that are
    /// fetched.
    pub images: Option<Arc<ImageSources>>,
}

/// Simulated facts about the host, for tests: see `NativeOptions`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    facts: Option<serde_json::Value>,
    fail_step: Option<String>,
}

impl Simulated {
    /// Reads them from a file.
    pub fn read(file: &Path) -> Result<Self> {
        let refuse = |reason: &dyn std::fmt::Display| Error::invalid("EYOT_SIMULATED", reason);
        let text = std::fs::read_to_string(file).map_err(|error| refuse(&error))?;
        serde_json::from_str(&text).map_err(|error| refuse(&error))
    }
}

impl ProviderSettings {
    /// Returns the same settings with another state folder.
    pub fn at(&self, state: PathBuf) -> Self {
        Self { state: Some(state), ..self.clone() }
    }

    fn options(&self, makes: Makes) -> NativeOptions {
        let mut options = NativeOptions { in_process: makes == Makes::One, ..NativeOptions::default() };
        if let Some(state) = &self.state {
            options.state = state.clone();
        }
        options.slots = if makes == Makes::Many { self.slots } else { 0 };
        options.images = self.images.clone();
        options.simulated = self.simulated.facts.clone();
        options.fail_step = self.simulated.fail_step.clone();
        options
    }
}

/// Opens the provider of these settings.
pub fn open(settings: &ProviderSettings, makes: Makes) -> Result<Arc<dyn SandboxProvider>> {
    match settings.kind {
        ProviderArg::Native => Ok(NativeProvider::new(settings.options(makes))?),
        ProviderArg::Docker => Ok(docker_provider(settings)),
    }
}

/// Makes the state folder of native sandboxes, for a command that keeps something in it.
pub fn make_state_folder(settings: &ProviderSettings) -> Result<()> {
    match settings.kind {
        ProviderArg::Native => NativeProvider::new(settings.options(Makes::One))?.make_state_folder(),
        ProviderArg::Docker => Ok(()),
    }
}

/// Opens the provider of this name for the same state folder; `None` if there is none, or if it
/// cannot be opened here.
pub fn of_name(settings: &ProviderSettings, name: &str) -> Option<Arc<dyn SandboxProvider>> {
    let kind = <ProviderArg as clap::ValueEnum>::from_str(name, false).ok()?;
    open(&ProviderSettings { kind, ..settings.clone() }, Makes::One)
        .inspect_err(|error| tracing::debug!(%error, name, "open the provider that made a sandbox"))
        .ok()
}

/// Opens Docker's provider, whichever provider the settings name.
pub fn docker_provider(settings: &ProviderSettings) -> Arc<DockerProvider> {
    let state = settings.state.clone().unwrap_or_else(default_state_folder);
    let fetched = settings.images.as_ref().and_then(|images| images.only.clone());
    DockerProvider::new(DockerOptions { fetched, ..DockerOptions::node(state) })
}

/// Returns the capabilities of a provider's sandboxes, without opening it.
pub fn capabilities(kind: ProviderArg) -> Capabilities {
    match kind {
        ProviderArg::Native => eyot_native::capabilities(),
        ProviderArg::Docker => eyot_providers::docker::capabilities(),
    }
}

/// Returns what a sandbox of this provider can't do with what it mounts from this host, as a sentence
/// with the reason, where that can be foreseen.
pub fn why_not_usable(kind: ProviderArg, mount: &Mount) -> Option<String> {
    let Mount { source, target, writable } = mount;
    match kind {
        ProviderArg::Native => {
            let unreadable = eyot_native::why_not_readable(source);
            let unwritable = || eyot_native::why_not_writable(source).filter(|_| *writable);
            unreadable
                .map(|why| format!("a sandbox can't read {target}: {why}"))
                .or_else(|| unwritable().map(|why| format!("a sandbox can't write to {target}: {why}")))
        }
        // The Engine may be on another host, and its root may write everywhere.
        ProviderArg::Docker => None,
    }
}

/// Returns a sandbox's limit of memory, in MiB: what its spec says, or the default where one is held.
pub fn memory_limit_mib(limits: &Limits, held: &LimitsEnforced) -> Option<u64> {
    let default = (held.memory != Enforcement::None).then_some(eyot_native::DEFAULT_MEMORY_MIB);
    limits.memory_mib.or(default)
}

/// Returns a sandbox's limit of processes: what its spec says, or the default where one is held.
pub fn process_limit(limits: &Limits, held: &LimitsEnforced) -> Option<u64> {
    limits.pids.or((held.pids != Enforcement::None).then_some(Limits::DEFAULT_PIDS))
}

/// Opens the images of a state folder.
pub fn images(state: &Path) -> ImageStore {
    eyot_native::image_store(state)
}

/// Returns the images of the Docker Engine.
pub fn engine_images() -> EngineImages {
    EngineImages::new(None)
}

/// Returns the configured sources of images that the state folder lacks. `only`: the names that
/// they may fetch.
pub fn image_sources(
    registries: &RegistrySettings,
    only: Option<AllowedImages>,
    progress: Arc<dyn Progress>,
) -> Arc<ImageSources> {
    let engine = registries.docker_engine.unwrap_or(true);
    let engine = engine.then(|| Arc::new(engine_images()) as Arc<dyn ImageSource>);
    let registry = eyot_image::pull::Registries(registries.pull_options());
    Arc::new(ImageSources::new(engine, Some(Arc::new(registry)), only, progress))
}

/// Returns the sandboxes that use images, by the names that users know.
pub fn image_uses(state: &Path) -> Result<Vec<ImageUse>> {
    eyot_native::image_uses(state, namer(state)?.as_ref())
}

/// Lists the persistent workspaces of native sandboxes.
pub fn kept_workspaces(state: &Path) -> Result<Vec<KeptWorkspace>> {
    eyot_native::kept_workspaces(state, namer(state)?.as_ref())
}

/// Removes a persistent workspace of native sandboxes, unless a sandbox has it.
pub fn remove_kept_workspace(state: &Path, name: &str) -> Result<()> {
    eyot_native::remove_kept_workspace(state, name, namer(state)?.as_ref())
}

/// Returns a function that returns the names that users know.
fn namer(state: &Path) -> Result<SandboxNamer> {
    let store = state.join("eyot.db");
    if Store::is_missing(&store) { Ok(Arc::new(|_| None)) } else { Ok(Store::open(store)?.namer()) }
}

/// Returns the default state folder.
pub fn default_state_folder() -> PathBuf {
    default_state_dir()
}

/// Refuses a state folder that another user controls or could, and one of something else.
pub fn check_state_folder(state: &Path) -> Result<()> {
    host::check_folder(state)
}

/// Reports what this host can do for sandboxes in that state folder, and whether a Docker Engine
/// answers, which only matters to users of that provider.
pub async fn diagnose(settings: &ProviderSettings) -> Result<Report> {
    let mut report = host::diagnose(settings.options(Makes::One)).await?;
    let (finding, answers) = docker(settings).await;
    report.findings.push(finding);
    if settings.kind == ProviderArg::Docker {
        report.works = answers;
    }
    Ok(report)
}

/// Adds what `eyot doctor` finds to an error of a state folder without room, for a command that
/// makes a sandbox.
pub async fn with_cause(error: Error, settings: &ProviderSettings) -> Error {
    if error.kind() != ErrorKind::Quota {
        return error;
    }
    let findings = diagnose(settings).await.map(|report| report.findings).unwrap_or_default();
    let cause = findings.into_iter().find(|found| found.status == Status::Error && found.cause.is_some());
    let Some(Finding { why, fix, .. }) = cause else { return error };
    let explained = Error::new(error.kind(), format!("create sandbox: {why} ({error})"));
    let explained = match fix {
        Some(fix) => explained.with_hint(fix),
        None => explained,
    };
    explained.with_source(error)
}

async fn docker(settings: &ProviderSettings) -> (Finding, bool) {
    let found = docker_provider(settings).version().await;
    let answers = found.is_ok();
    let (status, cause, why) = match found {
        Ok(version) => (Status::Ok, None, format!("an Engine {version} answers: --provider docker")),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let is_wanted = settings.kind == ProviderArg::Docker;
            let status = if is_wanted { Status::Error } else { Status::Info };
            (status, Some("no-engine"), format!("{error}{hint}"))
        }
    };
    (Finding { id: "docker", cause, status, why, fix: None }, answers)
}

/// Returns the AppArmor profile that lets a program create sandboxes.
pub fn apparmor_profile(program: &Path) -> String {
    host::apparmor_profile(program)
}
