//! A model that is asked again when it fails before its first event.
//!
//! After the first event, this module does not retry, because the events may have been shown. The agent loop decides then.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use super::options::ModelOptions;
use crate::model::{Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream};
use crate::usage::TokenUsage;

/// A model that is asked again after a transient failure before its first event. Dropping the future of [`Model::stream`]
/// ends the waiting.
pub(super) struct RetryModel {
    inner: Arc<dyn Model>,
    options: ModelOptions,
}

impl RetryModel {
    /// Creates a model that retries as these options say.
    pub(super) fn new(inner: Arc<dyn Model>, options: ModelOptions) -> Self {
        Self { inner, options }
    }

    /// Returns the time to wait before the next try, or `None` if there is no next try.
    fn wait(&self, failure: &ModelError, tried: u32) -> Option<Duration> {
        if !failure.kind.is_transient() || tried >= self.options.tries {
            return None;
        }
        match failure.retry_after {
            Some(wait) => {
                (wait <= Duration::from_millis(self.options.longest_retry_after_ms)).then_some(wait)
            }
            None => Some(jitter(self.back_off(tried))),
        }
    }

    fn back_off(&self, tried: u32) -> Duration {
        let doubled = 2_u64.saturating_pow(tried.saturating_sub(1));
        let wait = self.options.first_wait_ms.saturating_mul(doubled);
        Duration::from_millis(wait.min(self.options.longest_wait_ms))
    }
}

#[async_trait]
impl Model for RetryModel {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let (mut tried, mut spent) = (0, TokenUsage::default());
        loop {
            let failure = match begin(&*self.inner, request.clone()).await {
                Ok(stream) => return Ok(stream),
                Err(failure) => failure,
            };
            spent += *failure.usage;
            let failure = failure.with_usage(spent);
            tried += 1;
            let Some(wait) = self.wait(&failure, tried) else { return Err(failure) };
            let (provider, kind) = (&self.info().provider, failure.kind);
            tracing::info!(%provider, ?kind, tried, wait_ms = wait.as_millis() as u64, "asking the model again");
            tokio::time::sleep(wait).await;
        }
    }
}

/// Asks for a turn and waits for its first event.
async fn begin(model: &dyn Model, request: ModelRequest) -> Result<ModelStream, ModelError> {
    let mut stream = model.stream(request).await?;
    match stream.next().await {
        Some(Ok(first)) => Ok(stream::iter([Ok(first)]).chain(stream).boxed()),
        Some(Err(failure)) => Err(failure),
        None => Err(ModelError::new(ModelErrorKind::Cut, "the model's answer ended before it began")),
    }
}

/// Shortens a wait by up to a quarter, at random.
fn jitter(wait: Duration) -> Duration {
    wait.mul_f64(1.0 - fastrand::f64() / 4.0)
}
