//! Images: an id of Modal's is taken as it is, and a name of a registry is built there, which Modal does once.

use std::time::Duration;

use eyot::{Error, ErrorKind, Result, ValidSpec};
use tokio::time::Instant;

use super::client::ModalClient;
use super::retry::Retry;
use super::status::GrpcFailure;
use super::wire::{
    EnvironmentGetOrCreateRequest, EnvironmentGetOrCreateResponse, GenericResult, ImageDefinition,
    ImageGetOrCreateRequest, ImageGetOrCreateResponse, ImageJoinStreamingRequest, ImageJoinStreamingResponse,
    SUCCESS,
};
use crate::e2b::client::clean_text;

/// The longest wait for an image to be built.
const BUILD_PATIENCE: Duration = Duration::from_secs(20 * 60);
/// The time for which one question about a build is kept open, in seconds.
const JOIN_S: f32 = 55.0;
/// The time for which a stream about a build was open that has done its work.
const LONG: Duration = Duration::from_secs(10);
/// The longest name of an image, in characters.
const MAX_NAME_CHARS: usize = 512;

/// Refuses a name that is no single word: it becomes a line of a Dockerfile.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_word = name.chars().all(|char| char.is_ascii_graphic() && !"\\\"'`$#".contains(char));
    if name.is_empty() || name.len() > MAX_NAME_CHARS || name.starts_with('-') || !is_word {
        return Err(Error::invalid("image", "must be an id of Modal's or an image of a registry"));
    }
    Ok(())
}

impl ModalClient {
    /// Returns Modal's id of the image of a spec.
    pub async fn image_of(&self, spec: &ValidSpec) -> Result<String> {
        self.image_id(spec.spec().image.as_deref().unwrap_or(&self.options.image)).await
    }

    /// Returns Modal's id of an image.
    async fn image_id(&self, name: &str) -> Result<String> {
        check_name(name)?;
        if name.starts_with("im-") {
            return Ok(name.to_owned());
        }
        if let Some(id) = self.images.get(name) {
            return Ok(id);
        }
        let late = |_| Error::new(ErrorKind::Setup, "the image takes too long to build");
        let id = tokio::time::timeout(BUILD_PATIENCE, self.build(name)).await.map_err(late)??;
        self.images.note(name, &id);
        Ok(id)
    }

    async fn build(&self, name: &str) -> Result<String> {
        let environment = EnvironmentGetOrCreateRequest {
            deployment_name: self.options.environment.clone(),
            object_creation_type: 0,
        };
        let environment: EnvironmentGetOrCreateResponse =
            self.call("EnvironmentGetOrCreate", &environment).await?;
        let settings = environment.metadata.and_then(|metadata| metadata.settings);
        let request = ImageGetOrCreateRequest {
            image: Some(ImageDefinition { dockerfile_commands: vec![format!("FROM {name}")] }),
            app_id: self.app().await?,
            builder_version: settings.map(|settings| settings.image_builder_version).unwrap_or_default(),
        };
        let answer: ImageGetOrCreateResponse = self.call("ImageGetOrCreate", &request).await?;
        match answer.result {
            Some(result) if result.status != 0 => judge(&result)?,
            _ => self.join(&answer.image_id).await?,
        }
        Ok(answer.image_id)
    }

    /// Waits for the end of a build. A stream that ends without a word of it is opened again after a pause, and a few times only
    /// if nothing comes at all.
    async fn join(&self, image_id: &str) -> Result<()> {
        let (mut last_entry_id, mut retry) = (String::new(), Retry::default());
        loop {
            let request = ImageJoinStreamingRequest {
                image_id: image_id.to_owned(),
                timeout: JOIN_S,
                last_entry_id: last_entry_id.clone(),
            };
            let mut opened = None;
            match self.follow_build(&request, &mut last_entry_id, &mut opened).await {
                Ok(Some(result)) => return judge(&result),
                broken => {
                    // It had something to tell, or nothing yet: a build may take long.
                    if last_entry_id != request.last_entry_id
                        || opened.is_some_and(|at: Instant| at.elapsed() >= LONG)
                    {
                        retry = Retry::default();
                    }
                    let failure =
                        broken.err().unwrap_or_else(|| GrpcFailure::Lost("it told nothing".to_owned()));
                    if !retry.waits(&failure).await {
                        return Err(failure.into_error());
                    }
                }
            }
        }
    }

    /// Follows a build until it ends; `None`: the stream has ended before. Notes when the stream was opened.
    async fn follow_build(
        &self,
        request: &ImageJoinStreamingRequest,
        last_entry_id: &mut String,
        opened: &mut Option<Instant>,
    ) -> Result<Option<GenericResult>, GrpcFailure> {
        let mut stream = self.stream("ImageJoinStreaming", request).await?;
        *opened = Some(Instant::now());
        while let Some(told) = stream.next::<ImageJoinStreamingResponse>().await? {
            if let Some(result) = told.result.filter(|result| result.status != 0) {
                return Ok(Some(result));
            }
            if !told.entry_id.is_empty() {
                *last_entry_id = told.entry_id;
            }
        }
        Ok(None)
    }
}

fn judge(result: &GenericResult) -> Result<()> {
    if result.status == SUCCESS {
        return Ok(());
    }
    let message = format!("Modal can't build the image: {}", clean_text(&result.exception));
    Err(Error::new(ErrorKind::Setup, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_image_is_one_word() {
        for good in ["debian:12", "im-01ABC", "ghcr.io/a/b@sha256:00ff", &"x".repeat(MAX_NAME_CHARS)] {
            check_name(good).unwrap();
        }
        for wrong in ["", "a b", "a\nRUN x", "-x", "a\\", "$x", &"x".repeat(MAX_NAME_CHARS + 1)] {
            assert_eq!(check_name(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
        }
    }
}
