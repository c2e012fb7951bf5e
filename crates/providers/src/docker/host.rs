//! The state that a provider shares with its sandboxes.

use std::sync::Arc;

use eyot::Result;
use tokio::sync::{OnceCell, Semaphore};

use super::engine::Engine;
use super::guest_volume;
use super::image::Fetchable;
use super::state::State;

/// The number of containers that are made or started at once. More would make the Engine slower.
const TURNS: usize = 8;

/// The Engine, with the parts that are set up there once.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) engine: Engine,
    /// The state folder that the sandboxes belong to.
    pub(crate) state: State,
    /// The image of specs that name none.
    pub(crate) default_image: String,
    /// The images that may be fetched for creates.
    pub(crate) fetchable: Fetchable,
    pub(crate) turns: Semaphore,
    /// Held while this process changes snapshots, or waits for another process that does.
    pub(crate) snapshot_turn: Arc<Semaphore>,
    placed: OnceCell<()>,
}

impl Host {
    pub(crate) fn new(engine: Engine, state: State, default_image: String, fetchable: Fetchable) -> Self {
        let (turns, placed) = (Semaphore::new(TURNS), OnceCell::new());
        let snapshot_turn = Arc::new(Semaphore::new(1));
        Self { engine, state, default_image, fetchable, turns, snapshot_turn, placed }
    }

    /// Makes sure that the Engine has the guest. `image` can be any that the Engine has.
    pub(crate) async fn place_guest(&self, image: &str) -> Result<()> {
        self.placed.get_or_try_init(|| guest_volume::ensure(self, image)).await.copied()
    }
}
