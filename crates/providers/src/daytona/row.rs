//! The row of Daytona.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;

use super::options::{DaytonaOptions, MAX_AUTO_STOP_MINUTES, OWNER};
use super::provider::DaytonaProvider;
use super::record::capabilities;
use super::{EXCEPTIONS, NAME};
use crate::row::{
    Adopted, Foreign, ImagesOfProvider, OptionKind, OptionSchema, ProviderCheck, ProviderRow,
    ProviderSettings, ProviderTests, SandboxAdopter, no_such_machine,
};

const API_URL: &str = "api_url";
const TARGET: &str = "target";
const SNAPSHOT: &str = "snapshot";
const AUTO_STOP: &str = "auto_stop_minutes";
const OWNER_OPTION: &str = "owner";

const fn text(name: &'static str, default: Option<&'static str>, help: &'static str) -> OptionSchema {
    OptionSchema { name, kind: OptionKind::Text, default, help }
}

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[
        text(
            API_URL,
            None,
            "The address of the API; without it DAYTONA_API_URL, else https://app.daytona.io/api",
        ),
        text(
            TARGET,
            None,
            "The region of new sandboxes; without it DAYTONA_TARGET, else the organization's default",
        ),
        text(SNAPSHOT, None, "The snapshot of sandboxes that name no image; without it the vendor's default"),
        OptionSchema {
            name: AUTO_STOP,
            kind: OptionKind::Number { unit: "minutes", least: 0, most: MAX_AUTO_STOP_MINUTES },
            default: Some("60"),
            help: "The time without activity after which Daytona stops a sandbox that was made here; 0: never",
        },
        text(OWNER_OPTION, Some(OWNER), "The owner in the labels of sandboxes; those of others are not seen"),
    ],
    is_elsewhere: true,
    check: Some(|settings| Box::pin(check(settings))),
    images: ImagesOfProvider::Elsewhere(
        "these are the images of native sandboxes; Daytona's are snapshots, which its own program makes",
    ),
    adopter: Some(|settings| Arc::new(DaytonaAdopter(settings.clone()))),
    tests: ProviderTests { exceptions: EXCEPTIONS, rounds: 2, ..ProviderTests::quick() },
    ..ProviderRow::new(NAME, "Daytona's sandboxes", capabilities, |settings, _| Ok(open(settings)?))
};

fn open(settings: &ProviderSettings) -> Result<Arc<DaytonaProvider>> {
    let usual = DaytonaOptions::from_environment(&settings.state);
    DaytonaProvider::new(DaytonaOptions {
        api_url: settings.text(API_URL).unwrap_or(usual.api_url),
        target: settings.text(TARGET).or(usual.target),
        snapshot: settings.text(SNAPSHOT).or(usual.snapshot),
        auto_stop_minutes: settings.number(AUTO_STOP).unwrap_or(usual.auto_stop_minutes),
        owner: settings.text(OWNER_OPTION).unwrap_or(usual.owner),
        ..usual
    })
}

async fn check(settings: ProviderSettings) -> ProviderCheck {
    let asked = async { open(&settings)?.count().await };
    match asked.await {
        Ok(count) => {
            ProviderCheck::usable(format!("Daytona answers; it has {count} sandboxes of this owner"))
        }
        Err(error) => ProviderCheck::unusable(&error),
    }
}

/// The part that adopts.
struct DaytonaAdopter(ProviderSettings);

#[async_trait]
impl SandboxAdopter for DaytonaAdopter {
    async fn foreign(&self) -> Result<Vec<Foreign>> {
        let names = open(&self.0)?.foreign().await?;
        Ok(names.into_iter().map(Foreign::machine).collect())
    }

    async fn adopt(&self, named: &str) -> Result<Adopted> {
        let adopted = open(&self.0)?.adopt(named).await;
        let (name, id) = adopted.map_err(|error| no_such_machine(error, "Daytona", NAME, named))?;
        Ok(Adopted::machine(&name, id))
    }
}
