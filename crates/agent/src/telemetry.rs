//! OpenTelemetry spans of what agents do: events in, spans out.
//!
//! Names, kinds and attributes are those of the [conventions for generative AI][conventions], version 1.41.0. A run is a
//! trace; an operation outside of a run is one, too.
//!
//! [conventions]: https://github.com/open-telemetry/semantic-conventions/tree/v1.41.0/docs/gen-ai

mod agent_tracer;
mod attributes;
mod open_spans;
mod span_time;
#[cfg(test)]
mod tests;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use eyot::Result;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{Tracer, TracerProvider};

use crate::model::ModelInfo;
use crate::observe::{Subscription, observe};
use agent_tracer::AgentTracer;
pub use open_spans::MAX_OPEN_SPANS;

const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

/// The options of [`trace_agents`].
#[derive(Debug, Clone, Default)]
pub struct TraceOptions {
    /// Records content, too: payloads of runs, prompts and answers of tasks, answers of prompts, arguments and results of
    /// tools, and the texts of failures. It may be private and large; each text is cut after 64 KiB.
    pub records_content: bool,
    /// The facts about the models that are used ([`Model::info`](crate::Model::info)). Events name a model by its id alone;
    /// the provider of a turn is looked up here, and is `_OTHER` where the id is not found.
    pub models: Vec<ModelInfo>,
}

/// The tracing of agents. Dropping it ends it.
#[derive(Debug)]
#[must_use = "tracing ends when this is dropped"]
pub struct TraceSubscription {
    subscription: Subscription,
    ended: Receiver<()>,
}

/// Makes spans of what every agent in this process does from now on.
///
/// The work is done on a thread of its own, so agents do not wait for it. Nothing that a user or a model wrote is recorded
/// unless [`TraceOptions::records_content`] says so. At most [`MAX_OPEN_SPANS`] spans are open at once: beyond that, the one
/// that was not heard of for the longest time is ended. An error is the host's: no thread can be started.
///
/// ```
/// use eyot_agent::{TraceOptions, trace_agents};
/// use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
/// use std::time::Duration;
///
/// let exporter = InMemorySpanExporter::default();
/// let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
/// let traces = trace_agents(&provider, TraceOptions::default())?;
/// // Agents work here.
/// assert!(traces.finish(Duration::from_secs(5)));
/// provider.shutdown().ok();
/// # Ok::<(), eyot::Error>(())
/// ```
pub fn trace_agents<P>(provider: &P, options: TraceOptions) -> Result<TraceSubscription>
where
    P: TracerProvider,
    P::Tracer: Send + 'static,
    <P::Tracer as Tracer>::Span: Send + 'static,
{
    let scope = InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(SCHEMA_URL)
        .build();
    let (end, ended) = channel();
    let mut tracer = AgentTracer::new(provider.tracer_with_scope(scope), options, end);
    let subscription = observe(move |event| tracer.hear(event))?;
    Ok(TraceSubscription { subscription, ended })
}

impl TraceSubscription {
    /// The number of events that were left out because exporting spans was too slow.
    pub fn missed(&self) -> u64 {
        self.subscription.missed()
    }

    /// Ends the tracing, and waits until all spans so far have been handed to their provider, spans that go on included.
    /// `false`: the time was over before. It blocks the thread, and belongs before the end of the provider.
    pub fn finish(self, timeout: Duration) -> bool {
        let Self { subscription, ended } = self;
        drop(subscription);
        // The tracer never sends: it drops its end of the channel.
        ended.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }
}
