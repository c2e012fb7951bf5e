//! The containers: one for each id, from the first call with it on.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use eyot::{Result, Sandbox, SandboxProvider, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};
use tokio::sync::Mutex;

use super::container::StandInContainer;

/// The containers of one Worker.
pub struct Containers {
    pub native: Arc<NativeProvider>,
    running: Mutex<HashMap<String, Arc<StandInContainer>>>,
    /// The most containers at once.
    pub most: usize,
}

impl Containers {
    pub fn new(state: &Path, most: usize) -> Self {
        let options = NativeOptions { state: state.join("containers"), ..NativeOptions::default() };
        let native = NativeProvider::new(options).expect("a provider");
        Self { native, running: Mutex::default(), most }
    }

    /// Returns the container of an id, which is made now if there is none; `None`: there is no room.
    pub async fn of(&self, id: &str) -> Result<Option<Arc<StandInContainer>>> {
        let mut running = self.running.lock().await;
        if let Some(container) = running.get(id) {
            return Ok(Some(Arc::clone(container)));
        }
        if running.len() >= self.most {
            return Ok(None);
        }
        let sandbox = Sandbox::create(&*self.native, SandboxSpec::default()).await?;
        let driver = self.native.open(sandbox.id().as_str()).await?.driver;
        let container = Arc::new(StandInContainer::new(sandbox, driver));
        running.insert(id.to_owned(), Arc::clone(&container));
        Ok(Some(container))
    }

    /// Returns the container of an id, if it runs.
    pub async fn running(&self, id: &str) -> Option<Arc<StandInContainer>> {
        self.running.lock().await.get(id).cloned()
    }

    pub async fn ids(&self) -> Vec<String> {
        self.running.lock().await.keys().cloned().collect()
    }

    /// Ends a container, as a removal does, and as the vendor does when it moves one.
    pub async fn end(&self, id: &str) -> Result<()> {
        if let Some(container) = self.running(id).await {
            container.cut_terminals();
        }
        self.vanish(id).await
    }

    /// Ends a container, and no connection to it.
    pub async fn vanish(&self, id: &str) -> Result<()> {
        match self.running.lock().await.remove(id) {
            Some(container) => container.sandbox.destroy().await,
            None => Ok(()),
        }
    }
}
