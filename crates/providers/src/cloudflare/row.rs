//! The row of Cloudflare.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;

use super::capabilities::capabilities;
use super::options::CloudflareOptions;
use super::provider::CloudflareProvider;
use super::{EXCEPTIONS, NAME};
use crate::row::{
    Adopted, Foreign, ForeignKind, ImagesOfProvider, OptionKind, OptionSchema, ProviderCheck, ProviderRow,
    ProviderSettings, ProviderTests, SandboxAdopter,
};

const URL: &str = "url";

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[OptionSchema {
        name: URL,
        kind: OptionKind::Text,
        default: None,
        help: "The address of the bridge's Worker; without it CLOUDFLARE_SANDBOX_WORKER_URL",
    }],
    is_elsewhere: true,
    check: Some(|settings| Box::pin(check(settings))),
    images: ImagesOfProvider::Elsewhere(
        "these are the images of native sandboxes; a sandbox of Cloudflare has the image that its Worker was deployed with",
    ),
    adopter: Some(|settings| Arc::new(BridgeAdopter(settings.clone()))),
    tests: ProviderTests { exceptions: EXCEPTIONS, rounds: 2, ..ProviderTests::quick() },
    ..ProviderRow::new(NAME, "Cloudflare's containers, by a bridge", capabilities, |settings, _| {
        Ok(open(settings)?)
    })
};

fn open(settings: &ProviderSettings) -> Result<Arc<CloudflareProvider>> {
    let usual = CloudflareOptions::from_environment(&settings.state);
    CloudflareProvider::new(CloudflareOptions { url: settings.text(URL).or(usual.url.clone()), ..usual })
}

async fn check(settings: ProviderSettings) -> ProviderCheck {
    let asked = async { open(&settings)?.count().await };
    match asked.await {
        Ok(count) => {
            ProviderCheck::usable(format!("the bridge answers; {count} of its containers are in use"))
        }
        Err(error) => ProviderCheck::unusable(&error),
    }
}

/// The part that adopts.
struct BridgeAdopter(ProviderSettings);

#[async_trait]
impl SandboxAdopter for BridgeAdopter {
    /// Returns none: the bridge has no call that lists sandboxes.
    async fn foreign(&self) -> Result<Vec<Foreign>> {
        Ok(Vec::new())
    }

    async fn adopt(&self, named: &str) -> Result<Adopted> {
        let (name, id) = open(&self.0)?.adopt(named).await?;
        Ok(Adopted {
            kind: ForeignKind::Machine,
            name: name.to_string(),
            id: Some(id),
            foreign_volume: None,
            lacks_variables: false,
        })
    }
}
