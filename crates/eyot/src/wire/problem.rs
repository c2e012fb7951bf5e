//! Errors on the wire.

use serde::{Deserialize, Serialize};

/// The media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// An error (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// `urn:eyot:problem:` and the kind.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(example = "urn:eyot:problem:not_found"))]
    pub problem_type: String,
    /// The kind, for people.
    pub title: String,
    /// The response's status.
    pub status: u16,
    /// The whole sentence: what was to be done, where, and why it failed.
    pub detail: String,
    /// The kind, for code to match on.
    #[cfg_attr(feature = "openapi", schema(example = "not_found"))]
    pub kind: String,
    /// The reason why it failed, without what was to be done.
    pub reason: String,
    /// Advice for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The part of the request that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The sandbox sleeps, or has slept since the life that was asked for, or is dead. It can be woken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sleeping: bool,
    /// With `sleeping`: the sandbox's guest ended unexpectedly. Its files are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    /// With `sleeping`: the name of the sandbox, or its id where it was asked for by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// It is the sandbox itself that is not there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_sandbox: bool,
    /// The operation that the provider can't do, where it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<Unsupported>,
}

/// An operation that a provider can't do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unsupported {
    /// The operation.
    pub operation: String,
    /// The provider.
    pub provider: String,
    /// The options with which it can't; empty: not at all.
    pub options: Vec<String>,
}
