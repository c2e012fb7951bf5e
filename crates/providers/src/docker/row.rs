//! The row of the Docker provider.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;

use super::NAME;
use super::engine::Engine;
use super::image::NODE_IMAGE;
use super::provider::{DockerOptions, DockerProvider, capabilities};
use crate::row::{
    Adopted, BenchMethod, Foreign, ImagesOfProvider, OptionKind, OptionSchema, ProviderCheck, ProviderRow,
    ProviderSettings, ProviderTests, SandboxAdopter, WorkspacesOfProvider,
};

const ADDRESS: &str = "address";
const IMAGE: &str = "image";

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    options: &[
        OptionSchema {
            name: ADDRESS,
            kind: OptionKind::Text,
            default: None,
            help: "The Engine's address, such as unix:///var/run/docker.sock; without it DOCKER_HOST, else the \
                   usual socket",
        },
        OptionSchema {
            name: IMAGE,
            kind: OptionKind::Text,
            default: Some(NODE_IMAGE),
            help: "The image of sandboxes that name none",
        },
    ],
    check: Some(|settings| Box::pin(check(settings))),
    takes_container_options: true,
    images: ImagesOfProvider::Elsewhere(
        "these are the images of native sandboxes; the Engine keeps its own: docker images, docker pull, docker \
         load, docker rmi",
    ),
    workspaces: WorkspacesOfProvider::Elsewhere {
        place: "the workspaces of containers are volumes of the Docker Engine",
        hint: "`docker volume ls --filter name=eyot-workspace-` lists them, and `docker volume rm` removes one",
    },
    adopter: Some(|settings| open(settings)),
    bench: BenchMethod::BesideEngine,
    // A container takes a third of a second to make, and seconds to put to sleep.
    tests: ProviderTests { rounds: 2, reuses_sandboxes: true, ..ProviderTests::quick() },
    ..ProviderRow::new(NAME, "a Docker Engine", capabilities, |settings, _| Ok(open(settings)))
};

/// Opens the provider.
pub fn open(settings: &ProviderSettings) -> Arc<DockerProvider> {
    let usual = DockerOptions::node(settings.state.clone());
    DockerProvider::new(DockerOptions {
        address: settings.text(ADDRESS),
        image: settings.text(IMAGE).unwrap_or(usual.image),
        fetched: settings.fetched.clone(),
        state: usual.state,
    })
}

async fn check(settings: ProviderSettings) -> ProviderCheck {
    match Engine::new(settings.text(ADDRESS)).version().await {
        Ok(version) => ProviderCheck::usable(format!("an Engine {version} answers")),
        Err(error) => ProviderCheck { cause: Some("no-engine"), ..ProviderCheck::unusable(&error) },
    }
}

#[async_trait]
impl SandboxAdopter for DockerProvider {
    async fn foreign(&self) -> Result<Vec<Foreign>> {
        DockerProvider::foreign(self).await
    }

    async fn adopt(&self, named: &str) -> Result<Adopted> {
        DockerProvider::adopt(self, named).await
    }
}
