//! A state folder for one test. When it is dropped, its sandboxes are destroyed: a guest outlives
//! the program that started it, so if the folder were only deleted, they would keep running.

use std::path::PathBuf;

use eyot::SandboxProvider;
use eyot_native::{NativeOptions, NativeProvider};

pub struct StateFolder {
    folder: tempfile::TempDir,
}

impl StateFolder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("state")
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        if !self.path().exists() {
            return;
        }
        let state = self.path();
        // A thread of its own: the test's runtime can't wait for anything in a drop.
        let cleared = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(destroy_all(state));
        })
        .join();
        if !std::thread::panicking() {
            cleared.unwrap();
        }
    }
}

async fn destroy_all(state: PathBuf) {
    let provider = NativeProvider::new(NativeOptions { state, ..NativeOptions::default() }).unwrap();
    for sandbox in provider.list().await.unwrap() {
        let removed = provider.remove(sandbox.id.as_str()).await;
        // One that ends by itself meanwhile is fine.
        assert!(removed.is_ok() || provider.info(sandbox.id.as_str()).await.is_err(), "{removed:?}");
    }
}
