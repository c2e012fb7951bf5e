//! A model behind an HTTP API.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::decode::{self, TurnDecoder};
use super::target::ModelTarget;
use super::transport::{FrameStream, Transport};
use crate::model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream};

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
            decoder: decode::decoder(self.target.model.api),
            events: VecDeque::new(),
            failure: None,
            event_time: self.transport.answer_time(),
            last_event: Instant::now(),
        };
        Ok(stream::unfold(turn, async |mut turn| turn.next().await.map(|event| (event, turn))).boxed())
    }
}

/// A turn whose answer is arriving.
struct RunningTurn {
    /// The frames that are left, or `None` if nothing more is read.
    frames: Option<FrameStream>,
    decoder: Box<dyn TurnDecoder>,
    events: VecDeque<ModelEvent>,
    /// The failure at the end of the turn, until it is returned.
    failure: Option<ModelError>,
    /// The longest time without an event, whatever else comes.
    event_time: Duration,
    last_event: Instant,
}

impl RunningTurn {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let Some(frames) = &mut self.frames else { return self.failure.take().map(Err) };
            let next = timeout_at(self.last_event + self.event_time, frames.next()).await;
            let read = match next.unwrap_or_else(|_| Some(Err(late()))) {
                Some(Ok(frame)) => decode::read(&mut *self.decoder, &frame),
                Some(Err(failure)) => Err(failure),
                None => {
                    self.frames = None;
                    self.decoder.end()
                }
            };
            match read {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    self.last_event = Instant::now();
                    self.events.extend(events);
                }
                Err(failure) => {
                    (self.frames, self.failure) = (None, Some(failure.with_usage(self.decoder.usage())));
                }
            }
            if matches!(self.events.back(), Some(ModelEvent::Done(_))) {
                self.frames = None;
            }
        }
    }
}

/// The failure of an answer that has signs of life alone.
fn late() -> ModelError {
    ModelError::new(ModelErrorKind::Timeout, "the model's answer did not go on in time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::decode::StreamFrame;
    use crate::models::http_api::HttpApi;

    /// A turn of these frames, one a minute, without an end.
    fn turn(data: &'static str) -> RunningTurn {
        let frames = stream::repeat_with(|| StreamFrame { event: None, data: data.to_owned() });
        let frames = frames.then(async |frame| {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(frame)
        });
        RunningTurn {
            frames: Some(frames.boxed()),
            decoder: decode::decoder(HttpApi::Messages),
            events: VecDeque::new(),
            failure: None,
            event_time: Duration::from_secs(600),
            last_event: Instant::now(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_are_no_answer() {
        let mut turn = turn(r#"{"type":"ping"}"#);
        let ended = tokio::time::timeout(Duration::from_secs(3600), turn.next()).await;
        assert_eq!(ended.unwrap().unwrap().unwrap_err().kind, ModelErrorKind::Timeout);
        assert!(turn.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_may_last_as_long_as_events_come() {
        let mut turn = turn(r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#);
        for _ in 0..30 {
            assert!(turn.next().await.unwrap().is_ok());
        }
    }
}
