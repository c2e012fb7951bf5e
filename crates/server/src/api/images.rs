//! The images that the server's sandboxes are made from: list, pull, import and remove them. All
//! keys share them, so a key that only opens pools lists and pulls, and no more.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use eyot::wire::ImageList;
use eyot::{ByteStream, Error, ErrorKind, ImageInfo, PruneReport, PullProgress};
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use utoipa::IntoParams;

use super::access::Caller;
use super::events_stream::{event, keep_alive};
use super::extract::content;
use super::query::Params;
use super::state::Api;
use crate::problem::{Problems, Refusal};

/// The time in which a pull that fails decides the status of the answer. Later failures are events.
const EARLY: Duration = Duration::from_secs(1);
/// The pause between two events of progress.
const PAUSE: Duration = Duration::from_millis(100);

/// Lists the images, sorted by name. Every key may use them.
#[utoipa::path(get, path = "/v1/images", tag = "images", responses((status = 200, body = ImageList), Problems))]
pub(super) async fn list(State(api): State<Api>) -> Result<Json<ImageList>, Refusal> {
    Ok(Json(ImageList { images: api.engine().images()?.list().await? }))
}

/// The query of a pull.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PullQuery {
    /// The image's name, such as `node:22` or `registry.example/team/app:1`.
    #[param(example = "node:22")]
    name: String,
}

/// Pulls an image from its registry, even if there is one of that name: the events `progress`, and
/// last `image` or `problem`. The pull ends when the connection does, and a later one continues.
///
/// With a key: images that the configuration names or that `allow` under `[registries]` matches.
/// Others are refused (`403`).
#[utoipa::path(post, path = "/v1/images/pull", tag = "images", params(PullQuery),
    responses((status = 200, description = "The progress, and the image", content_type = "text/event-stream"), Problems))]
pub(super) async fn pull(
    State(api): State<Api>,
    Params(PullQuery { name }): Params<PullQuery>,
) -> Result<impl IntoResponse, Refusal> {
    let images = api.engine().images()?;
    let (sender, progress) = watch::channel(PullProgress::default());
    let observer = Arc::new(move |progress| {
        sender.send_replace(progress);
    });
    let pulling = tokio::spawn(async move { images.pull(&name, observer).await });
    let mut pull = RunningPull { pulling: AbortOnDropHandle::new(pulling), progress };
    let first = match timeout(EARLY, pull.next()).await {
        Ok(PullStep::Ended(ended)) => Some(PullStep::Ended(Ok(ended?))),
        Ok(step) => Some(step),
        Err(_) => None,
    };
    Ok(Sse::new(pull.events(first).map(Ok::<_, Infallible>)).keep_alive(keep_alive()))
}

/// A pull that runs. Dropping it ends the pull.
struct RunningPull {
    pulling: AbortOnDropHandle<eyot::Result<ImageInfo>>,
    progress: watch::Receiver<PullProgress>,
}

/// The next step of a pull.
enum PullStep {
    Progress,
    Ended(eyot::Result<ImageInfo>),
}

impl RunningPull {
    /// Waits for the next step. The future may be dropped.
    async fn next(&mut self) -> PullStep {
        tokio::select! {
            biased;
            Ok(()) = self.progress.changed() => PullStep::Progress,
            ended = &mut self.pulling => PullStep::Ended(ended.unwrap_or_else(ended_early)),
        }
    }

    /// Waits until the next event of progress may be sent, or the pull has ended.
    async fn pause(&mut self) -> Option<PullStep> {
        tokio::select! {
            () = sleep(PAUSE) => None,
            ended = &mut self.pulling => Some(PullStep::Ended(ended.unwrap_or_else(ended_early))),
        }
    }

    /// Streams all steps as events, beginning with `first`.
    fn events(self, first: Option<PullStep>) -> impl Stream<Item = Event> + Send {
        futures_util::stream::unfold(Some((self, first)), async |state| {
            let (mut pull, first) = state?;
            let step = match first {
                Some(step) => step,
                None => pull.next().await,
            };
            match step {
                PullStep::Progress => {
                    let next = pull.pause().await;
                    let progress = *pull.progress.borrow_and_update();
                    Some((event("progress", &progress, None), Some((pull, next))))
                }
                PullStep::Ended(Ok(image)) => Some((event("image", &image, None), None)),
                PullStep::Ended(Err(error)) => {
                    Some((event("problem", &Refusal::from(error).problem(), None), None))
                }
            }
        })
    }
}

fn ended_early(error: JoinError) -> eyot::Result<ImageInfo> {
    Err(Error::new(ErrorKind::Internal, "pull an image: its task ended early").with_source(error))
}

/// The query of an import.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportQuery {
    /// The image's name. By default it has the name in the archive. A tarball of a root file system
    /// has none.
    name: Option<String>,
}

/// Imports the images of an archive, the request's body: an OCI layout, what `docker save` writes,
/// or a tarball of a root file system. It may be compressed by gzip or zstd.
///
/// Only keys that `eyot serve --image-key` names may import.
#[utoipa::path(post, path = "/v1/images/import", tag = "images", params(ImportQuery),
    request_body(content_type = "application/x-tar", description = "The archive"),
    responses((status = 200, body = ImageList), Problems))]
pub(super) async fn import(
    State(api): State<Api>,
    caller: Caller,
    Params(ImportQuery { name }): Params<ImportQuery>,
    body: Body,
) -> Result<Json<ImageList>, Refusal> {
    caller.refuse_unless_it_may_change_images(&api, "import an image")?;
    let archive = at_most(api.limits().max_image_bytes, content(body));
    let imported = api.engine().images()?.import(archive, name.as_deref()).await;
    let images = imported.map_err(|error| Refusal::from(error).calling("image", "name"))?;
    Ok(Json(ImageList { images }))
}

/// Ends the archive with an error if it has more than so many bytes.
fn at_most(max_bytes: u64, archive: ByteStream) -> ByteStream {
    let mut left = max_bytes;
    let counted = archive.map(move |piece| {
        let piece = piece?;
        left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
            let message = format!("import an image: the archive has more than {max_bytes} bytes");
            Error::new(ErrorKind::TooLarge, message)
                .with_hint("whoever runs the server may allow more: `eyot serve --max-image-bytes`")
        })?;
        Ok(piece)
    });
    counted.boxed()
}

/// The query of a removal.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RemoveImageQuery {
    /// The image's name.
    #[param(example = "node:22")]
    name: String,
    /// Removes the name even if sandboxes are made over the image. They keep their layers.
    #[serde(default)]
    force: bool,
}

/// Removes an image, and what no other image and no sandbox needs of it. An image that sandboxes
/// are made over is refused (`409`).
///
/// Only keys that `eyot serve --image-key` names may remove.
#[utoipa::path(delete, path = "/v1/images", tag = "images", params(RemoveImageQuery),
    responses((status = 200, body = PruneReport), Problems))]
pub(super) async fn remove(
    State(api): State<Api>,
    caller: Caller,
    Params(RemoveImageQuery { name, force }): Params<RemoveImageQuery>,
) -> Result<Json<PruneReport>, Refusal> {
    caller.refuse_unless_it_may_change_images(&api, "remove an image")?;
    Ok(Json(api.engine().images()?.remove(&name, force).await?))
}
