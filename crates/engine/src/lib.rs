//! Eyot's engine: pools of named sandboxes over any provider, and what has to be remembered of them.
//!
//! A [`SandboxPool`] makes a sandbox when its name is first used, wakes it when it is used again, and keeps quotas. An
//! [`Engine`] has the pools of a state folder: the [`store`] of their sandboxes, which several processes share, and the
//! log of [`events`]. [`transfer()`] copies between two sandboxes, whatever their providers.
#![forbid(unsafe_code)]

mod blocking;
mod changes;
mod engine;
pub mod events;
mod name_in_pool;
mod pool;
mod pool_options;
mod records;
pub mod store;
mod transfer;

pub use changes::ChangeWatch;
pub use engine::{Engine, Reconciled};
pub use name_in_pool::{NameInPool, shown_name};
pub use pool::{
    Changes, CommitOptions, ComparedPoint, ForkOptions, ForkSource, Forks, ImageCommitted, MAX_OPEN_PORTS,
    PoolProvider, Preview, RollbackDone, RollbackOptions, SandboxPool, SnapshotOptions, SnapshotTaken,
};
pub use pool_options::{
    DEFAULT_SANDBOX, DEFAULT_SLEEP_AFTER_MS, DefaultLimits, POOL_WORKDIR, PoolCreate, PoolCreated,
    PoolOptions, PoolQuotas,
};
pub use records::FindProvider;
pub use transfer::{Transfer, TransferObserver, Transferred, check_source, transfer, transfer_observed};
