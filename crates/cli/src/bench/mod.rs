//! Measures for `eyot bench`: every operation of a sandbox once per round, interleaved with the
//! same operation of the host and with other isolators that are installed, so that a noisy machine
//! disturbs all alike.

mod branches;
mod calls;
pub mod crowd;
mod engine_rounds;
pub mod images;
mod items;
mod memory;
mod over_http;
mod peers;
mod report;
mod rounds;
pub mod sustained;
pub mod transfers;

pub use branches::BranchRounds;
pub use calls::{CallRounds, LiveCalls};
pub use engine_rounds::EngineRounds;
pub use items::{Item, Items, quantile};
pub use over_http::OverHttp;
pub use peers::{Peers, SkippedPeer};
pub use report::{BenchReport, BenchSubject};
pub use rounds::Rounds;
