//! Whole files over plain HTTP: `GET /files` and `POST /files`.

use std::io;

use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use bytes::Bytes;
use eyot::{ByteRange, Error, ErrorKind, Sandbox, WriteOptions};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::E2bApi;
use super::gateway::{GatewayEntry, no_files_of};
use super::process::absolute;
use super::refusal::E2bRefusal;
use super::signature::parameter;

/// Returns the routes. Files have no limit but the disk's.
pub(super) fn routes() -> Router<E2bApi> {
    Router::new().route("/files", get(read).post(write)).layer(DefaultBodyLimit::disable())
}

/// Refuses to act as somebody else: the files of this API are the sandbox's own user's.
fn check_user(entered: &GatewayEntry, uri: &Uri) -> Result<(), E2bRefusal> {
    let named = parameter(uri, "username").filter(|name| name != "user");
    match named.or_else(|| entered.user.clone()) {
        None => Ok(()),
        Some(user) => Err(E2bRefusal::new(StatusCode::BAD_REQUEST, no_files_of(&user))),
    }
}

fn path_of(uri: &Uri) -> Option<String> {
    parameter(uri, "path").map(|path| absolute(&path))
}

async fn read(Extension(entered): Extension<GatewayEntry>, uri: Uri) -> Result<Response, E2bRefusal> {
    check_user(&entered, &uri)?;
    let no_path = || E2bRefusal::new(StatusCode::BAD_REQUEST, "the request names no path");
    let path = path_of(&uri).ok_or_else(no_path)?;
    let sandbox = entered.record.sandbox();
    let content =
        sandbox.read_stream(&path, ByteRange::default()).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                E2bRefusal::new(StatusCode::NOT_FOUND, format!("path '{path}' does not exist"))
            }
            ErrorKind::IsDirectory => {
                E2bRefusal::new(StatusCode::BAD_REQUEST, format!("path '{path}' is a directory"))
            }
            _ => E2bRefusal::from(error),
        })?;
    let body = Body::from_stream(content.map_err(io::Error::other));
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

async fn write(
    Extension(entered): Extension<GatewayEntry>,
    uri: Uri,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<Vec<Value>>, E2bRefusal> {
    check_user(&entered, &uri)?;
    let sandbox = entered.record.sandbox();
    let refused = |message: &str| E2bRefusal::new(StatusCode::BAD_REQUEST, message);
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(refused("compressed uploads are not supported"));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/octet-stream") {
        let no_path = || refused("path query parameter is required for raw body upload");
        let path = path_of(&uri).ok_or_else(no_path)?;
        let content = request.into_body().into_data_stream();
        return Ok(Json(vec![written(&sandbox, &path, content).await?]));
    }
    let parts = Multipart::from_request(request, &()).await;
    let mut parts = parts.map_err(|error| refused(&error.body_text()))?;
    let cut = |error: MultipartError| refused(&error.body_text());
    let mut files = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(cut)? {
        if part.name() == Some("file") {
            let path = path_of(&uri).or_else(|| part.file_name().map(absolute));
            let path = path.ok_or_else(|| refused("a file has no name"))?;
            files.push(written_part(&sandbox, &path, part).await?);
        }
    }
    Ok(Json(files))
}

/// Writes a part of a request as it comes: the part borrows from the request, and a file's content
/// must own what it has.
async fn written_part(sandbox: &Sandbox, path: &str, mut part: Field<'_>) -> Result<Value, E2bRefusal> {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, axum::Error>>(1);
    let content = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (piece, receiver))
    })
    .fuse();
    let passing = async move {
        loop {
            let piece = part.chunk().await.map_err(axum::Error::new).transpose();
            let Some(piece) = piece else { return };
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(written(sandbox, path, content), passing).0
}

async fn written(
    sandbox: &Sandbox,
    path: &str,
    content: impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
) -> Result<Value, E2bRefusal> {
    let cut = |error| Error::new(ErrorKind::Cancelled, "the upload was cut off").with_source(error);
    let content = content.map_err(cut).boxed();
    sandbox.write_stream(path, content, WriteOptions::default()).await?;
    let name = path.rsplit('/').next().unwrap_or_default();
    Ok(json!({ "path": path, "name": name, "type": "file" }))
}
