//! The images of a server.

use async_trait::async_trait;
use eyot::wire::{ImageList, Problem};
use eyot::{
    ByteStream, Error, ErrorKind, ImageInfo, PruneReport, PullObserver, PullProgress, Result, SandboxImages,
};
use futures_util::StreamExt;
use reqwest::{Body, Method};
use serde::Deserialize;

use super::http::{ServerClient, whole};
use super::server_events::values;
use super::upload::Upload;

/// The images of a server.
pub(super) struct RemoteImages(pub ServerClient);

/// An event of a pull: its progress, or the image. Their fields tell them apart.
#[derive(Deserialize)]
#[serde(untagged)]
enum PullEvent {
    Image(ImageInfo),
    Progress(PullProgress),
}

#[async_trait]
impl SandboxImages for RemoteImages {
    async fn list(&self) -> Result<Vec<ImageInfo>> {
        let request = self.0.request(Method::GET, self.0.url(&["v1", "images"], &[])?);
        let ImageList { images } = self.0.json(self.0.ask(request).await?).await?;
        Ok(images)
    }

    async fn pull(&self, name: &str, observer: PullObserver) -> Result<ImageInfo> {
        let url = self.0.url(&["v1", "images", "pull"], &[("name", name)])?;
        let response = self.0.ask(self.0.request(Method::POST, url)).await?;
        let mut events = values::<PullEvent>(|problem: Problem| whole(problem), self.0.bytes(response));
        while let Some(event) = events.next().await {
            match event? {
                PullEvent::Progress(progress) => observer(progress),
                PullEvent::Image(image) => return Ok(image),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, format!("pull image `{name}`: the server's answer broke off")))
    }

    async fn import(&self, archive: ByteStream, name: Option<&str>) -> Result<Vec<ImageInfo>> {
        let query: Vec<(&str, &str)> = name.map(|name| ("name", name)).into_iter().collect();
        let url = self.0.url(&["v1", "images", "import"], &query)?;
        let upload = Upload::default();
        let request = self.0.request(Method::POST, url).header("content-type", "application/x-tar");
        let answer = self.0.ask(request.body(Body::wrap_stream(upload.watch(archive)))).await;
        // The failure of the archive says more than that the request broke off.
        if let Some(failure) = upload.failure() {
            return Err(failure);
        }
        let ImageList { images } = self.0.json(answer?).await?;
        Ok(images)
    }

    async fn remove(&self, name: &str, force: bool) -> Result<PruneReport> {
        let query = [("name", name), ("force", if force { "true" } else { "false" })];
        let request = self.0.request(Method::DELETE, self.0.url(&["v1", "images"], &query)?);
        self.0.json(self.0.ask(request).await?).await
    }
}
