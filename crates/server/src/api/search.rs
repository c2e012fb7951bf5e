//! Finds files, and lines in files.

use axum::Json;
use eyot::{ConfinedPath, GlobOptions, GlobResult, GrepOptions, GrepResult, Sandbox};
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Chosen, TheSandbox, Where};
use super::query::Params;
use crate::problem::{Problems, Refusal};

/// The number of results if the request does not say, and the longest line that is returned whole,
/// in bytes.
const RESULTS: u32 = 1000;
const LINE_BYTES: u32 = 500;

/// The query of a search for files.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct GlobQuery {
    /// A glob such as `**/*.rs`, relative to `path`.
    pattern: String,
    /// Directory to search; by default the working directory.
    path: Option<String>,
    /// Includes names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Number of paths to return at most; by default 1,000.
    max_results: Option<u32>,
}

/// Finds files whose path matches a pattern, sorted by path.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/glob", tag = "files", params(TheSandbox, Where, GlobQuery),
    responses((status = 200, body = GlobResult), Problems))]
pub(super) async fn glob(
    Chosen(sandbox): Chosen,
    Params(asked): Params<GlobQuery>,
) -> Result<Json<GlobResult>, Refusal> {
    let root = root(&sandbox, asked.path.as_deref())?;
    let max_results = asked.max_results.unwrap_or(RESULTS);
    let options = GlobOptions { pattern: asked.pattern, root, hidden: asked.hidden, max_results };
    Ok(Json(sandbox.glob(&options).await?))
}

/// The query of a search for lines.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct GrepQuery {
    /// A regular expression.
    pattern: String,
    /// File or directory to search, with everything below it; by default the working directory.
    path: Option<String>,
    /// Takes the pattern as literal text.
    #[serde(default)]
    literal: bool,
    /// Ignores upper and lower case.
    #[serde(default)]
    ignore_case: bool,
    /// Searches only files that match this glob.
    include: Option<String>,
    /// Number of lines to return at most; by default 1,000.
    max_matches: Option<u32>,
    /// Length in bytes from which a line is cut; by default 500.
    max_line_bytes: Option<u32>,
}

/// Finds lines that match a pattern, sorted by path and line.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/grep", tag = "files", params(TheSandbox, Where, GrepQuery),
    responses((status = 200, body = GrepResult), Problems))]
pub(super) async fn grep(
    Chosen(sandbox): Chosen,
    Params(asked): Params<GrepQuery>,
) -> Result<Json<GrepResult>, Refusal> {
    let options = GrepOptions {
        root: root(&sandbox, asked.path.as_deref())?,
        pattern: asked.pattern,
        literal: asked.literal,
        ignore_case: asked.ignore_case,
        include: asked.include,
        max_matches: asked.max_matches.unwrap_or(RESULTS),
        max_line_bytes: asked.max_line_bytes.unwrap_or(LINE_BYTES),
    };
    Ok(Json(sandbox.grep(&options).await?))
}

fn root(sandbox: &Sandbox, path: Option<&str>) -> Result<ConfinedPath, Refusal> {
    Ok(match path {
        Some(path) => sandbox.resolve_confined(path)?,
        None => sandbox.resolve_confined(sandbox.cwd().as_str())?,
    })
}
