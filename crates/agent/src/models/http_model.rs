//! A model behind an HTTP API.

use std::collections::VecDeque;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use super::decode::{self, TurnDecoder};
use super::target::ModelTarget;
use super::transport::{FrameStream, Transport};
use crate::model::{Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream};

/// A model behind an HTTP API.
pub(super) struct HttpModel {
    target: ModelTarget,
    transport: Transport,
}

impl HttpModel {
    pub(super) fn new(target: ModelTarget, transport: Transport) -> Self {
        Self { target, transport }
    }
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.target.model.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let frames = self.transport.send(self.target.request(&request)?).await?;
        let turn = RunningTurn {
            frames: Some(frames),
            decoder: decode::decoder(self.target.model.info.api),
            events: VecDeque::new(),
            failure: None,
        };
        Ok(stream::unfold(turn, async |mut turn| turn.next().await.map(|event| (event, turn))).boxed())
    }
}

/// A turn whose answer arrives.
struct RunningTurn {
    /// `None`: nothing more is to be read.
    frames: Option<FrameStream>,
    decoder: Box<dyn TurnDecoder>,
    events: VecDeque<ModelEvent>,
    /// The failure with which it ends, until it is told.
    failure: Option<ModelError>,
}

impl RunningTurn {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let Some(frames) = &mut self.frames else { return self.failure.take().map(Err) };
            let read = match frames.next().await {
                Some(Ok(frame)) => decode::read(&mut *self.decoder, &frame),
                Some(Err(failure)) => Err(failure),
                None => {
                    self.frames = None;
                    self.decoder.end()
                }
            };
            match read {
                Ok(events) => self.events.extend(events),
                Err(failure) => (self.frames, self.failure) = (None, Some(failure)),
            }
            if matches!(self.events.back(), Some(ModelEvent::Done(_))) {
                self.frames = None;
            }
        }
    }
}
