//! One name of a pool: the sandbox behind it, and how it is made.

use tokio::sync::OnceCell;

use super::{POOL_WORKDIR, PoolCreate, SandboxPool};
use crate::error::Result;
use crate::exec::Command;
use crate::path::SandboxPath;
use crate::sandbox::{Sandbox, StartOptions};
use crate::spec::{SandboxName, SandboxSpec};

/// A name's place: empty until somebody has made, or found, its sandbox.
#[derive(Default)]
pub(super) struct Member(OnceCell<Up>);

/// A sandbox that was up when it was last looked at.
#[derive(Debug, Clone)]
pub(super) struct Up {
    pub sandbox: Sandbox,
    /// Its image, as it was named.
    pub image: String,
    /// What it was made from.
    pub made_from: PoolCreate,
}

impl Member {
    /// What is there, if anything is.
    pub(super) fn get(&self) -> Option<&Up> {
        self.0.get()
    }

    /// What is there; else what `make` makes, whoever asks. Of several who ask at once one makes it.
    pub(super) async fn up(&self, make: impl Future<Output = Result<Up>>) -> Result<&Up> {
        self.0.get_or_try_init(|| make).await
    }
}

impl SandboxPool {
    /// Makes the sandbox of this name, and starts what is to run in it.
    pub(super) async fn make(&self, name: &SandboxName, create: &PoolCreate) -> Result<Up> {
        let (spec, image) = self.spec(create)?;
        let sandbox = Sandbox::create(self.provider().as_ref(), spec).await;
        let sandbox = sandbox.map_err(|error| error.context(format!("make sandbox `{name}` of the pool")))?;
        start_services(&sandbox, create).await?;
        Ok(Up { sandbox, image, made_from: create.clone() })
    }

    /// What a sandbox is made from, and its image as it is named.
    fn spec(&self, create: &PoolCreate) -> Result<(SandboxSpec, String)> {
        let options = self.options();
        let mut spec = create.spec.clone().unwrap_or_else(|| options.template.clone());
        (spec.id, spec.name) = (None, None);
        if spec.workdir.is_none() {
            spec.workdir = Some(SandboxPath::parse(POOL_WORKDIR)?);
        }
        let named = create.image.as_ref().or(options.default_image.as_ref());
        spec.image = named.map(|named| options.images.get(named).unwrap_or(named).clone());
        let shown = named.cloned().unwrap_or_else(|| "host".to_owned());
        Ok((spec, shown))
    }

    /// In what a sandbox that is there differs from what is asked for.
    pub(super) fn differences(&self, asked: &PoolCreate, up: &Up) -> Vec<String> {
        let other_image = asked.image.as_ref().is_some_and(|image| *image != up.image);
        let other_spec = asked.spec.as_ref().is_some_and(|spec| up.made_from.spec.as_ref() != Some(spec));
        let differs = [("image", other_image), ("spec", other_spec)];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()).collect()
    }
}

async fn start_services(sandbox: &Sandbox, create: &PoolCreate) -> Result<()> {
    for service in &create.services {
        let options = StartOptions { cwd: service.cwd.clone(), env: service.env.clone(), user: None };
        sandbox.start(Command::shell(&service.command), options).await?;
    }
    Ok(())
}
