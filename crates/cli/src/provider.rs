//! The providers of sandboxes: the table that commands ask, and what only the native provider and
//! its images have, such as the findings of `eyot doctor`. No other file names the native provider.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{
    Enforcement, Error, ErrorKind, Limits, LimitsEnforced, Result, SandboxInfo, SandboxNamer, SandboxProvider,
};
use eyot_engine::store::Store;
use eyot_image::{AllowedImages, ImageSource, ImageStore, ImageUse, Progress};
use eyot_native::{ImageSources, default_state_dir, host};
use eyot_providers::docker::EngineImages;
use eyot_providers::native::{self, options};
use serde::Deserialize;

use crate::args::MOST_SLOTS;
use crate::config::{ConfiguredOptions, RegistrySettings};

const _: () = assert!(MOST_SLOTS == eyot_native::MOST_SLOTS, "native has another limit");

pub use eyot_native::KeptWorkspace;
pub use eyot_native::host::{Finding, Report, Status};
pub use eyot_providers::docker::open as open_docker;
pub use eyot_providers::native::SLOTS;
pub use eyot_providers::registry::{default_row, find, in_words, rows};
pub use eyot_providers::row::{
    BenchMethod, Foreign, ImagesOfProvider, Makes, OptionSchema, OptionValue, ProviderCheck, ProviderOptions,
    ProviderRow, ProviderSettings, SandboxAdopter, WorkspacesOfProvider,
};

/// Tells whether `eyot doctor` knows what holds for a sandbox: it looks at native ones.
pub fn is_known_to_doctor(sandbox: &SandboxInfo) -> bool {
    sandbox.provider == native::ROW.name
}

/// Tells whether the programs of a sandbox are this machine's own.
pub fn has_hosts_programs(sandbox: &SandboxInfo) -> bool {
    is_known_to_doctor(sandbox) && sandbox.spec.image.as_deref().is_none_or(|image| image == "host")
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

    /// Puts them into the settings of a provider.
    pub fn simulate(self, settings: &mut ProviderSettings) {
        settings.simulated = self.facts;
        settings.fail_step = self.fail_step;
    }
}

/// Returns the names of the providers of which this holds, as `native, docker or memory`.
pub fn names_where(holds: impl Fn(&ProviderRow) -> bool) -> String {
    let names: Vec<&str> = rows().iter().filter(|row| holds(row)).map(|row| row.name).collect();
    in_words(&names)
}

/// Opens the provider of this name for the same state folder; `None` if there is none, or if it
/// cannot be opened here.
pub fn of_name(
    settings: &ProviderSettings,
    configured: &ConfiguredOptions,
    name: &str,
) -> Option<Arc<dyn SandboxProvider>> {
    let row = find(name).ok()?;
    settings
        .of(row, configured.of(row))
        .open(Makes::One)
        .inspect_err(|error| tracing::debug!(%error, name, "open the provider that made a sandbox"))
        .ok()
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

/// Reports what this host can do for native sandboxes in that state folder, and whether the other
/// providers can be used, which only matters to their users.
pub async fn diagnose(settings: &ProviderSettings) -> Result<Report> {
    let mut report = host::diagnose(options(settings, Makes::One)).await?;
    for row in rows().iter().filter(|row| **row != native::ROW) {
        let is_wanted = row == settings.row;
        let settings =
            if is_wanted { settings.clone() } else { settings.of(row, ProviderOptions::default()) };
        let check = settings.check().await;
        if is_wanted {
            report.works = check.usable;
        }
        if row.check.is_some() {
            report.findings.push(finding(row, check, is_wanted));
        }
    }
    Ok(report)
}

/// Returns the finding about another provider than the native one.
fn finding(row: &'static ProviderRow, check: ProviderCheck, is_wanted: bool) -> Finding {
    let ProviderCheck { usable, why, fix, cause, .. } = check;
    let (status, why) = if usable {
        (Status::Ok, format!("{why}: --provider {}", row.name))
    } else {
        let hint = fix.map(|fix| format!("; {fix}")).unwrap_or_default();
        let status = if is_wanted { Status::Error } else { Status::Info };
        (status, format!("{why}{hint}"))
    };
    Finding { id: row.name, cause, status, why, fix: None }
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

/// Returns the AppArmor profile that lets a program create sandboxes.
pub fn apparmor_profile(program: &Path) -> String {
    host::apparmor_profile(program)
}
