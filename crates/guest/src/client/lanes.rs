//! Limits on open calls: fewer than the guest allows, and file calls few enough for its workers.
//!
//! Reading, writing and short file calls have lanes of their own. If all shared one lane, copies
//! inside the sandbox could fill it: each would hold a place for reading and wait for one for
//! writing, for ever. A ping has a lane of its own too, so that it can ask for a sign of life when
//! all other places are taken.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::protocol::MAX_CALLS;

/// The most open calls of all kinds. It is a little below the guest's limit, so that a cancelled
/// call that still settles is no breach.
const OPEN: usize = MAX_CALLS - 24;
/// Files and trees that are read at a time.
const OUT: usize = 32;
/// Files and trees that are written at a time.
const IN: usize = 16;
/// Other file calls at a time.
const SHORT: usize = 16;
/// The most pings at a time. Together with them the guest's limit is still not reached.
const PINGS: usize = 8;

/// The limit that a call falls under besides that of all calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// None.
    Any,
    /// It streams a file or a tree out.
    Out,
    /// It streams a file or a tree in.
    In,
    /// It is a file call without a stream that a consumer could hold up.
    Short,
    /// It is a ping, which the limit of all calls does not hold up.
    Ping,
}

/// The right to have a call open, given back when the guest ends the call.
#[derive(Debug)]
pub(super) struct Permits {
    _open: Option<OwnedSemaphorePermit>,
    _lane: Option<OwnedSemaphorePermit>,
}

/// The limits of one connection.
#[derive(Debug)]
pub(super) struct Lanes {
    open: Arc<Semaphore>,
    outward: Arc<Semaphore>,
    inward: Arc<Semaphore>,
    short: Arc<Semaphore>,
    pings: Arc<Semaphore>,
}

impl Lanes {
    /// All lanes free.
    pub(super) fn new() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            open: places(OPEN),
            outward: places(OUT),
            inward: places(IN),
            short: places(SHORT),
            pings: places(PINGS),
        }
    }

    /// Waits for a place; `None` once the lanes are closed.
    pub(super) async fn enter(&self, lane: Lane) -> Option<Permits> {
        let (own, all) = match lane {
            Lane::Any => (None, Some(&self.open)),
            Lane::Out => (Some(&self.outward), Some(&self.open)),
            Lane::In => (Some(&self.inward), Some(&self.open)),
            Lane::Short => (Some(&self.short), Some(&self.open)),
            Lane::Ping => (Some(&self.pings), None),
        };
        let lane = match own {
            Some(own) => Some(Arc::clone(own).acquire_owned().await.ok()?),
            None => None,
        };
        let open = match all {
            Some(all) => Some(Arc::clone(all).acquire_owned().await.ok()?),
            None => None,
        };
        Some(Permits { _open: open, _lane: lane })
    }

    /// Turns everybody away, those who wait included.
    pub(super) fn close(&self) {
        for lane in [&self.open, &self.outward, &self.inward, &self.short, &self.pings] {
            lane.close();
        }
    }
}
