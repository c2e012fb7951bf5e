//! Eyot's providers: a table with a row for each, and those beyond the native one. Each is a module
//! and a cargo feature.
#![forbid(unsafe_code)]

#[cfg(feature = "cloudflare")]
pub mod cloudflare;
#[cfg(feature = "daytona")]
pub mod daytona;
#[cfg(feature = "docker")]
pub mod docker;
#[cfg(feature = "e2b")]
pub mod e2b;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(any(feature = "cloudflare", feature = "daytona", feature = "docker", feature = "kubernetes"))]
mod linked_driver;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "modal")]
pub mod modal;
#[cfg(feature = "native")]
pub mod native;
pub mod registry;
#[cfg(feature = "remote")]
pub mod remote;
#[cfg(any(feature = "e2b", feature = "remote"))]
mod root_cause;
pub mod row;
#[cfg(any(feature = "cloudflare", feature = "daytona", feature = "docker", feature = "kubernetes"))]
#[cfg_attr(
    not(any(feature = "docker", feature = "kubernetes")),
    allow(dead_code, reason = "records of Cloudflare and Daytona need the folder, and no secret")
)]
mod state_secret;
#[cfg(any(feature = "e2b", feature = "memory"))]
mod tar_limit;
#[cfg(any(feature = "cloudflare", feature = "daytona"))]
mod terminal_guest;
