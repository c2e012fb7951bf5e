//! The row of the native provider, whose code is the crate `eyot-native`.

use eyot::Mount;
use eyot_native::host::{Status, diagnose};
use eyot_native::{NativeOptions, NativeProvider};

use crate::row::{
    BenchMethod, ImagesOfProvider, Makes, OptionKind, OptionSchema, ProviderCheck, ProviderRow,
    ProviderSettings, WorkspacesOfProvider,
};

/// The option with the number of half-made sandboxes.
pub const SLOTS: &str = "slots";

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[OptionSchema {
        name: SLOTS,
        kind: OptionKind::Number { unit: SLOTS, least: 0, most: eyot_native::MOST_SLOTS as u64 },
        default: Some("0"),
        help: "Half-made sandboxes that a server keeps for the next creates, as --slots; `eyot serve` keeps 2",
    }],
    check: Some(|settings| Box::pin(check(settings))),
    keeps_files_in_state_folder: true,
    make_state_folder: |settings| NativeProvider::new(options(settings, Makes::One))?.make_state_folder(),
    why_not_usable,
    refuse_mount: |settings, mount| eyot_native::refuse_state_folder(&mount.source, &settings.state),
    images: ImagesOfProvider::StateFolder,
    workspaces: WorkspacesOfProvider::StateFolder,
    bench: BenchMethod::BesideHost,
    tries_threats: true,
    ..ProviderRow::new("native", "this Linux host itself", eyot_native::capabilities, |settings, makes| {
        Ok(NativeProvider::new(options(settings, makes))?)
    })
};

/// Returns the provider's options.
pub fn options(settings: &ProviderSettings, makes: Makes) -> NativeOptions {
    let slots = settings.number(SLOTS).and_then(|slots| slots.try_into().ok()).unwrap_or_default();
    NativeOptions {
        state: settings.state.clone(),
        in_process: makes == Makes::One,
        slots: if makes == Makes::Many { slots } else { 0 },
        images: settings.images.clone(),
        simulated: settings.simulated.clone(),
        fail_step: settings.fail_step.clone(),
        ..NativeOptions::default()
    }
}

/// Makes a sandbox, and tells what is weaker on this host than on others.
async fn check(settings: ProviderSettings) -> ProviderCheck {
    let report = match diagnose(options(&settings, Makes::One)).await {
        Ok(report) => report,
        Err(error) => return ProviderCheck::unusable(&error),
    };
    let with = |status: Status| report.findings.iter().filter(move |found| found.status == status);
    let worst = if report.works { Status::Ok } else { Status::Error };
    // The cause is told better than the step that failed.
    let found = with(worst).find(|found| found.cause.is_some()).or_else(|| with(worst).next());
    let why = found.map(|found| found.why.as_str()).unwrap_or_default();
    ProviderCheck {
        usable: report.works,
        cause: found.and_then(|found| found.cause),
        why: if report.works { format!("a sandbox was {why}") } else { why.to_owned() },
        fix: found.and_then(|found| found.fix.clone()),
        weaker: with(Status::Warn).map(|found| format!("{}: {}", found.id, found.why)).collect(),
    }
}

fn why_not_usable(mount: &Mount) -> Option<String> {
    let Mount { source, target, writable, cow } = mount;
    let unreadable =
        if *cow { eyot_native::why_not_copied(source) } else { eyot_native::why_not_readable(source) };
    let unwritable = || eyot_native::why_not_writable(source).filter(|_| *writable);
    unreadable
        .map(|why| format!("a sandbox can't read {target}: {why}"))
        .or_else(|| unwritable().map(|why| format!("a sandbox can't write to {target}: {why}")))
}
