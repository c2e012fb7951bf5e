//! The handle's own rules, held against a driver that does what a test tells it and writes down what it was asked.
//! What a real backend owes is in the conformance suite.

#![allow(clippy::unwrap_used)]

mod exec;
mod hooks;
mod lifecycle;
mod paths;
mod scripted;
mod stop;
mod workspace;
mod write;
