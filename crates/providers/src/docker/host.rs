//! What a provider and its sandboxes share.

use eyot::Result;
use tokio::sync::{OnceCell, Semaphore};

use super::engine::Engine;
use super::guest_volume;
use super::image::Fetchable;
use super::state::State;

/// How many containers are made or started at once. The Engine gets slower, not faster, by more.
const TURNS: usize = 8;

/// The Engine, and what was done there once.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) engine: Engine,
    /// Whose sandboxes they are.
    pub(crate) state: State,
    /// The image of specs that name none.
    pub(crate) default_image: String,
    /// The images that may be fetched for creates.
    pub(crate) fetchable: Fetchable,
    pub(crate) turns: Semaphore,
    placed: OnceCell<()>,
}

impl Host {
    pub(crate) fn new(engine: Engine, state: State, default_image: String, fetchable: Fetchable) -> Self {
        let (turns, placed) = (Semaphore::new(TURNS), OnceCell::new());
        Self { engine, state, default_image, fetchable, turns, placed }
    }

    /// Makes sure that the Engine has the guest. `image`: any that is there.
    pub(crate) async fn place_guest(&self, image: &str) -> Result<()> {
        self.placed.get_or_try_init(|| guest_volume::ensure(self, image)).await.copied()
    }
}
