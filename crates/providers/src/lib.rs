//! Eyot's providers: a table with a row for each, and those beyond the native one. Each is a module
//! and a cargo feature.
#![forbid(unsafe_code)]

#[cfg(feature = "docker")]
pub mod docker;
#[cfg(feature = "e2b")]
pub mod e2b;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(any(feature = "docker", feature = "kubernetes"))]
mod linked_driver;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "native")]
pub mod native;
pub mod registry;
#[cfg(feature = "remote")]
pub mod remote;
pub mod row;
#[cfg(any(feature = "docker", feature = "kubernetes"))]
mod state_secret;
