//! Files: read, write, describe, list, make, move and remove them; and whole trees as tar streams.

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use eyot::wire::{Exists, Listing, Unpacked, Written};
use eyot::{
    ByteRange, ByteStream, CreateDirOptions, FileStat, RemoveOptions, TarInOptions, WriteMode, WriteOptions,
};
use futures_util::StreamExt;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Chosen, TheSandbox, Where, content};
use super::query::Params;
use crate::problem::{Problems, Refusal};

/// The query of a route about one file.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PathQuery {
    /// Absolute, or relative to the sandbox's working directory.
    #[param(example = "hello.txt")]
    path: String,
}

/// The query of a read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReadQuery {
    /// Absolute, or relative to the sandbox's working directory.
    #[param(example = "hello.txt")]
    path: String,
    /// First byte to return; by default 0. A `Range` header has the same use.
    offset: Option<u64>,
    /// Number of bytes to return at most; by default all.
    limit: Option<u64>,
}

/// Returns the bytes of a file.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files", tag = "files", params(TheSandbox, Where, ReadQuery),
    responses((status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 206, description = "The bytes of the range", content_type = "application/octet-stream"),
        Problems))]
pub(super) async fn read(
    Chosen(sandbox): Chosen,
    Params(asked): Params<ReadQuery>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Some(range) = headers.get(header::RANGE) else {
        let range = ByteRange { offset: asked.offset.unwrap_or(0), limit: asked.limit };
        return Ok(
            octets(after_first_piece(sandbox.read_stream(&asked.path, range).await?).await?).into_response()
        );
    };
    let size = sandbox.stat(&asked.path).await?.size.unwrap_or(0);
    let Some((first, last)) = range.to_str().ok().and_then(|text| range_of(text, size)) else {
        let all = HeaderValue::from_str(&format!("bytes */{size}")).unwrap_or(HeaderValue::from_static(""));
        let unit = [(header::CONTENT_RANGE, all)];
        return Ok((StatusCode::RANGE_NOT_SATISFIABLE, unit).into_response());
    };
    let range = ByteRange { offset: first, limit: Some(last - first + 1) };
    let stream = after_first_piece(sandbox.read_stream(&asked.path, range).await?).await?;
    let mut response = octets(stream).into_response();
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    if let Ok(value) = HeaderValue::from_str(&format!("bytes {first}-{last}/{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    Ok(response)
}

/// Waits for the stream's first piece, so that an early failure decides the answer's status.
async fn after_first_piece(mut stream: ByteStream) -> Result<ByteStream, Refusal> {
    let Some(first) = stream.next().await else { return Ok(stream) };
    let first = first?;
    Ok(futures_util::stream::once(std::future::ready(Ok(first))).chain(stream).boxed())
}

/// Parses a `Range` header with one range into its first and last byte.
fn range_of(text: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let end = size.checked_sub(1)?;
    let (first, last) = match (first.trim(), last.trim()) {
        ("", suffix) => (size.saturating_sub(suffix.parse().ok().filter(|length| *length > 0)?), end),
        (first, "") => (first.parse().ok()?, end),
        (first, last) => (first.parse().ok()?, last.parse::<u64>().ok()?.min(end)),
    };
    (first <= last).then_some((first, last))
}

fn octets(stream: ByteStream) -> impl IntoResponse {
    let kind = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        // Whatever a file holds, no browser shows it as a page of the server.
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (kind, Body::from_stream(stream))
}

/// The query of a write.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WriteQuery {
    /// Absolute, or relative to the sandbox's working directory.
    #[param(example = "hello.txt")]
    path: String,
    /// Treatment of an existing file: `replace` (the default), `append`, or `create_new`, which
    /// refuses it.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    mode: WriteMode,
    /// Permission bits, as a decimal number; by default 420 (`0o644`).
    permissions: Option<u32>,
    /// Largest size in bytes that the file may reach. A larger write is refused, and nothing is
    /// changed.
    max_file_bytes: Option<u64>,
}

/// Writes the request's body to a file and creates missing parent directories.
///
/// If the body breaks off, nothing is changed.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/files", tag = "files", params(TheSandbox, Where, WriteQuery),
    request_body(content_type = "application/octet-stream", description = "The bytes"),
    responses((status = 200, body = Written), Problems))]
pub(super) async fn write(
    Chosen(sandbox): Chosen,
    Params(asked): Params<WriteQuery>,
    body: Body,
) -> Result<Json<Written>, Refusal> {
    let WriteQuery { path, mode, permissions, max_file_bytes } = asked;
    let options = WriteOptions { mode, permissions, max_file_bytes };
    let size = sandbox.write_stream(&path, content(body), options).await?;
    Ok(Json(Written { size }))
}

/// The query of a removal.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RemoveQuery {
    /// Absolute, or relative to the sandbox's working directory.
    #[param(example = "hello.txt")]
    path: String,
    /// Removes a directory and everything below it.
    #[serde(default)]
    recursive: bool,
    /// Succeeds if the path does not exist.
    #[serde(default)]
    force: bool,
}

/// Removes a file, a symbolic link (not its target), or, with `recursive`, a directory.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/files", tag = "files", params(TheSandbox, Where, RemoveQuery),
    responses((status = 204), Problems))]
pub(super) async fn remove(
    Chosen(sandbox): Chosen,
    Params(asked): Params<RemoveQuery>,
) -> Result<StatusCode, Refusal> {
    let RemoveQuery { path, recursive, force } = asked;
    sandbox.remove(&path, RemoveOptions { recursive, force }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the metadata of a file.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/stat", tag = "files", params(TheSandbox, Where, PathQuery),
    responses((status = 200, body = FileStat), Problems))]
pub(super) async fn stat(
    Chosen(sandbox): Chosen,
    Params(PathQuery { path }): Params<PathQuery>,
) -> Result<Json<FileStat>, Refusal> {
    Ok(Json(sandbox.stat(&path).await?))
}

/// Tells whether a path exists.
///
/// A dangling link counts as missing.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/exists", tag = "files", params(TheSandbox, Where, PathQuery),
    responses((status = 200, body = Exists), Problems))]
pub(super) async fn exists(
    Chosen(sandbox): Chosen,
    Params(PathQuery { path }): Params<PathQuery>,
) -> Result<Json<Exists>, Refusal> {
    Ok(Json(Exists { exists: sandbox.exists(&path).await? }))
}

/// The order of a listing.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ListingOrder {
    #[default]
    Name,
    Directory,
}

/// The query of a listing.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Absolute, or relative to the sandbox's working directory.
    #[param(example = ".")]
    path: String,
    /// `name` (the default), or `directory`: the order in which the file system returns the
    /// entries.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    order: ListingOrder,
}

/// Lists a directory, including dot files.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/list", tag = "files", params(TheSandbox, Where, ListQuery),
    responses((status = 200, body = Listing), Problems))]
pub(super) async fn list(
    Chosen(sandbox): Chosen,
    Params(ListQuery { path, order }): Params<ListQuery>,
) -> Result<Json<Listing>, Refusal> {
    let entries = match order {
        ListingOrder::Name => sandbox.list(&path).await?,
        ListingOrder::Directory => sandbox.list_unsorted(&path).await?,
    };
    Ok(Json(Listing { entries }))
}

/// The query that makes a directory.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct MakeDirectoryQuery {
    /// Absolute, or relative to the sandbox's working directory.
    #[param(example = "data")]
    path: String,
    /// Creates missing parents, and succeeds if the directory exists.
    #[serde(default)]
    recursive: bool,
}

/// Creates a directory.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/mkdir", tag = "files", params(TheSandbox, Where, MakeDirectoryQuery),
    responses((status = 204), Problems))]
pub(super) async fn mkdir(
    Chosen(sandbox): Chosen,
    Params(MakeDirectoryQuery { path, recursive }): Params<MakeDirectoryQuery>,
) -> Result<StatusCode, Refusal> {
    sandbox.create_dir(&path, CreateDirOptions { recursive }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The query of a move.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RenameQuery {
    /// The path to move.
    from: String,
    /// The new path.
    to: String,
}

/// Moves a file or a directory, replacing a file (or an empty directory) at the new path.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/rename", tag = "files", params(TheSandbox, Where, RenameQuery),
    responses((status = 204), Problems))]
pub(super) async fn rename(
    Chosen(sandbox): Chosen,
    Params(RenameQuery { from, to }): Params<RenameQuery>,
) -> Result<StatusCode, Refusal> {
    sandbox.rename(&from, &to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Packs a file or a tree as tar.
///
/// Names in it begin with the last segment of the path.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/tree", tag = "files", params(TheSandbox, Where, PathQuery),
    responses((status = 200, description = "The tar stream", content_type = "application/x-tar"),
        Problems))]
pub(super) async fn tree_out(
    Chosen(sandbox): Chosen,
    Params(PathQuery { path }): Params<PathQuery>,
) -> Result<Response, Refusal> {
    let tar = sandbox.tar_out(&path).await?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"))];
    Ok((kind, Body::from_stream(tar)).into_response())
}

/// The query of an unpacking.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UnpackQuery {
    /// An existing directory.
    path: String,
    /// Largest size in bytes of all files together; by default 4 GiB.
    max_total_bytes: Option<u64>,
    /// Largest number of entries; by default 1,000,000.
    max_entries: Option<u64>,
}

/// Unpacks a tar stream, the request's body, below a directory.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/tree", tag = "files", params(TheSandbox, Where, UnpackQuery),
    request_body(content_type = "application/x-tar", description = "The tar stream"),
    responses((status = 200, body = Unpacked), Problems))]
pub(super) async fn tree_in(
    Chosen(sandbox): Chosen,
    Params(asked): Params<UnpackQuery>,
    body: Body,
) -> Result<Json<Unpacked>, Refusal> {
    let usual = TarInOptions::default();
    let options = TarInOptions {
        max_total_bytes: asked.max_total_bytes.unwrap_or(usual.max_total_bytes),
        max_entries: asked.max_entries.unwrap_or(usual.max_entries),
    };
    let entries = sandbox.tar_in(&asked.path, content(body), options).await?;
    Ok(Json(Unpacked { entries }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_read_as_rfc_9110_has_it() {
        for (text, range) in [
            ("bytes=0-0", Some((0, 0))),
            ("bytes=2-", Some((2, 9))),
            ("bytes=-3", Some((7, 9))),
            ("bytes=-99", Some((0, 9))),
            ("bytes=5-99", Some((5, 9))),
            ("bytes=10-", None),
            ("bytes=5-4", None),
            ("bytes=-0", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(range_of(text, 10), range, "{text}");
        }
        assert_eq!(range_of("bytes=0-", 0), None);
    }
}
