//! The row of Modal.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;

use super::options::{APP, IMAGE, MAX_TIMEOUT_S, ModalOptions};
use super::provider::{ModalProvider, capabilities};
use super::{EXCEPTIONS, NAME};
use crate::row::{
    Adopted, Foreign, ImagesOfProvider, OptionKind, OptionSchema, ProviderCheck, ProviderRow,
    ProviderSettings, ProviderTests, SandboxAdopter, no_such_machine,
};

const SERVER_URL: &str = "server_url";
const ENVIRONMENT: &str = "environment";
const APP_OPTION: &str = "app";
const IMAGE_OPTION: &str = "image";
const TIMEOUT_OPTION: &str = "timeout_s";

const fn text(name: &'static str, default: Option<&'static str>, help: &'static str) -> OptionSchema {
    OptionSchema { name, kind: OptionKind::Text, default, help }
}

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[
        text(
            SERVER_URL,
            None,
            "The address of the control plane; without it MODAL_SERVER_URL, else https://api.modal.com",
        ),
        text(
            ENVIRONMENT,
            None,
            "The environment; without it MODAL_ENVIRONMENT, else the workspace's default",
        ),
        text(APP_OPTION, Some(APP), "The app that sandboxes are made in; those of others are foreign"),
        text(IMAGE_OPTION, Some(IMAGE), "The image of sandboxes that name none"),
        OptionSchema {
            name: TIMEOUT_OPTION,
            kind: OptionKind::Number { unit: "seconds", least: 1, most: MAX_TIMEOUT_S },
            default: Some("3600"),
            help: "The time after which Modal ends a sandbox that was made here",
        },
    ],
    is_elsewhere: true,
    check: Some(|settings| Box::pin(check(settings))),
    images: ImagesOfProvider::Elsewhere(
        "these are the images of native sandboxes; Modal builds its own from those of a registry",
    ),
    adopter: Some(|settings| Arc::new(ModalAdopter(settings.clone()))),
    tests: ProviderTests { exceptions: EXCEPTIONS, rounds: 2, ..ProviderTests::quick() },
    ..ProviderRow::new(NAME, "Modal's sandboxes", capabilities, |settings, _| Ok(open(settings)?))
};

fn open(settings: &ProviderSettings) -> Result<Arc<ModalProvider>> {
    let usual = ModalOptions::from_environment(&settings.state);
    ModalProvider::new(ModalOptions {
        server_url: settings.text(SERVER_URL).unwrap_or(usual.server_url),
        environment: settings.text(ENVIRONMENT).unwrap_or(usual.environment),
        app: settings.text(APP_OPTION).unwrap_or(usual.app),
        image: settings.text(IMAGE_OPTION).unwrap_or(usual.image),
        timeout_s: settings.number(TIMEOUT_OPTION).unwrap_or(usual.timeout_s),
        ..usual
    })
}

async fn check(settings: ProviderSettings) -> ProviderCheck {
    let asked = async { open(&settings)?.count().await };
    match asked.await {
        Ok(count) => ProviderCheck::usable(format!("Modal answers; {count} sandboxes run in this app")),
        Err(error) => ProviderCheck::unusable(&error),
    }
}

/// The part that adopts.
struct ModalAdopter(ProviderSettings);

#[async_trait]
impl SandboxAdopter for ModalAdopter {
    async fn foreign(&self) -> Result<Vec<Foreign>> {
        let names = open(&self.0)?.foreign().await?;
        Ok(names.into_iter().map(Foreign::machine).collect())
    }

    async fn adopt(&self, named: &str) -> Result<Adopted> {
        let adopted = open(&self.0)?.adopt(named).await;
        let (name, id) = adopted.map_err(|error| no_such_machine(error, "Modal", NAME, named))?;
        Ok(Adopted::machine(&name, id))
    }
}
