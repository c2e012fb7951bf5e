//! A stand-in of the vendor's bridge and of its containers, which are native sandboxes. It speaks the wire of
//! `@cloudflare/sandbox` 0.12.10: the routes of the bridge's OpenAPI document, and the program of the containers as far as
//! the bridge uses it.

#[allow(clippy::result_large_err, reason = "a refusal is the response")]
pub mod bridge;
pub mod container;
pub mod containers;
#[allow(clippy::result_large_err, reason = "a refusal is the response")]
pub mod program;
pub mod shell_words;
pub mod terminal;

pub use containers::Containers;
