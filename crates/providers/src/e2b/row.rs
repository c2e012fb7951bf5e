//! The row of E2B.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;

use super::options::{E2bOptions, MAX_TIMEOUT_S, OWNER, TEMPLATE};
use super::provider::{E2bProvider, capabilities};
use super::{EXCEPTIONS, NAME};
use crate::row::{
    Adopted, Foreign, ImagesOfProvider, OptionKind, OptionSchema, ProviderCheck, ProviderRow,
    ProviderSettings, ProviderTests, SandboxAdopter, no_such_machine,
};

const DOMAIN_OPTION: &str = "domain";
const API_URL: &str = "api_url";
const SANDBOX_URL: &str = "sandbox_url";
const TEMPLATE_OPTION: &str = "template";
const TIMEOUT_OPTION: &str = "timeout_s";
const OWNER_OPTION: &str = "owner";

const fn text(name: &'static str, default: Option<&'static str>, help: &'static str) -> OptionSchema {
    OptionSchema { name, kind: OptionKind::Text, default, help }
}

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[
        text(DOMAIN_OPTION, None, "The vendor's domain; without it E2B_DOMAIN, else e2b.app"),
        text(API_URL, None, "The address of the REST calls; without it E2B_API_URL, else https://api.DOMAIN"),
        text(
            SANDBOX_URL,
            None,
            "The address of every sandbox's envd; without it E2B_SANDBOX_URL, else https://49983-ID.DOMAIN",
        ),
        text(TEMPLATE_OPTION, Some(TEMPLATE), "The template of sandboxes that name no image"),
        OptionSchema {
            name: TIMEOUT_OPTION,
            kind: OptionKind::Number { unit: "seconds", least: 1, most: MAX_TIMEOUT_S },
            default: Some("3600"),
            help: "The time after which E2B kills a sandbox that was made here; your plan may allow less",
        },
        text(
            OWNER_OPTION,
            Some(OWNER),
            "The owner in the metadata of sandboxes; those of others are not seen",
        ),
    ],
    is_elsewhere: true,
    check: Some(|settings| Box::pin(check(settings))),
    images: ImagesOfProvider::Elsewhere(
        "these are the images of native sandboxes; E2B's are templates, which its own program builds",
    ),
    adopter: Some(|settings| Arc::new(Adopter(settings.clone()))),
    tests: ProviderTests { exceptions: EXCEPTIONS, rounds: 2, ..ProviderTests::quick() },
    ..ProviderRow::new(NAME, "E2B's virtual machines", capabilities, |settings, _| Ok(open(settings)?))
};

fn options(settings: &ProviderSettings) -> E2bOptions {
    let usual = E2bOptions::from_environment(&settings.state);
    let domain = settings.text(DOMAIN_OPTION);
    E2bOptions {
        // A domain that is named here goes before an address that the environment has for another.
        api_url: settings.text(API_URL).or(usual.api_url.filter(|_| domain.is_none())),
        sandbox_url: settings.text(SANDBOX_URL).or(usual.sandbox_url.filter(|_| domain.is_none())),
        domain: domain.unwrap_or(usual.domain),
        template: settings.text(TEMPLATE_OPTION).unwrap_or(usual.template),
        timeout_s: settings.number(TIMEOUT_OPTION).unwrap_or(usual.timeout_s),
        owner: settings.text(OWNER_OPTION).unwrap_or(usual.owner),
        ..usual
    }
}

fn open(settings: &ProviderSettings) -> Result<Arc<E2bProvider>> {
    E2bProvider::new(options(settings))
}

async fn check(settings: ProviderSettings) -> ProviderCheck {
    let asked = async { open(&settings)?.count().await };
    match asked.await {
        Ok(count) => ProviderCheck::usable(format!("E2B answers; it has {count} sandboxes of this owner")),
        Err(error) => ProviderCheck::unusable(&error),
    }
}

/// The part that adopts.
struct Adopter(ProviderSettings);

#[async_trait]
impl SandboxAdopter for Adopter {
    async fn foreign(&self) -> Result<Vec<Foreign>> {
        let names = open(&self.0)?.foreign().await?;
        Ok(names.into_iter().map(Foreign::machine).collect())
    }

    async fn adopt(&self, named: &str) -> Result<Adopted> {
        let adopted = open(&self.0)?.adopt(named).await;
        let (name, id) = adopted.map_err(|error| no_such_machine(error, "E2B", NAME, named))?;
        Ok(Adopted::machine(&name, id))
    }
}
