//! Eyot's providers beyond the native one, each a module and a cargo feature.
#![forbid(unsafe_code)]

#[cfg(feature = "docker")]
pub mod docker;
#[cfg(feature = "remote")]
pub mod remote;
