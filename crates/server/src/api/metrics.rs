//! Metrics of the server for Prometheus. Labels name routes, methods, statuses and states, and
//! never a key, a pool or a sandbox.

mod process;

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind, ExecResult, Outcome};
use eyot_engine::store::{RowState, SandboxRow};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::access::Caller;
use super::state::Api;
use crate::http::holding::{HeldValue, hold_until_sent};
use crate::problem::{Problems, Refusal};

const TEXT: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
/// The upper bounds of the histogram, from a millisecond to ten minutes.
const BUCKETS_SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExecLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    by: &'static str,
}

/// The counters and gauges of a server.
pub(super) struct Metrics {
    registry: Registry,
    answered: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    in_flight: Gauge,
    connections: Gauge,
    refused: Family<RefusalLabels, Counter>,
    execs: Family<ExecLabels, Counter>,
    sandboxes: Family<StateLabels, Gauge>,
    process: process::Gauges,
}

impl Metrics {
    /// Makes them, all at zero.
    pub fn new() -> Self {
        let durations =
            Family::new_with_constructor((|| Histogram::new(BUCKETS_SECONDS)) as fn() -> Histogram);
        let mut new = Self {
            registry: Registry::with_prefix("eyot"),
            answered: Family::default(),
            durations,
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            refused: Family::default(),
            execs: Family::default(),
            sandboxes: Family::default(),
            process: process::Gauges::default(),
        };
        new.register();
        new
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("http_requests", "Requests that were answered", self.answered.clone());
        let what = "How long answers took to begin";
        registry.register_with_unit("http_request_duration", what, Unit::Seconds, self.durations.clone());
        let what = "Requests whose answers are under way";
        registry.register("http_requests_in_flight", what, self.in_flight.clone());
        let what = "Connections, those that have become WebSockets included";
        registry.register("http_connections", what, self.connections.clone());
        let what = "Requests of which nothing was done because a key or an address asked too much";
        registry.register("http_requests_refused", what, self.refused.clone());
        let what = "Commands that ended, of those that the exec routes ran";
        registry.register("execs", what, self.execs.clone());
        let what = "Sandboxes of the state folder; live ones may be awake or asleep";
        registry.register("sandboxes", what, self.sandboxes.clone());
        self.process.register(registry);
    }

    /// Returns the gauge of open connections.
    pub fn connections(&self) -> Gauge {
        self.connections.clone()
    }

    /// Counts a request that a limit refused: `rate_of_key`, `requests_of_key` (too many at once),
    /// or `rate_of_wrong_keys`.
    pub fn refused(&self, by: &'static str) {
        self.refused.get_or_create(&RefusalLabels { by }).inc();
    }

    /// Counts a command that ended.
    pub fn exec_ended(&self, result: &ExecResult) {
        let outcome = match result.outcome {
            Outcome::Exited(_) => "exited",
            Outcome::Signaled(_) => "signaled",
            Outcome::TimedOut => "timed_out",
            Outcome::Cancelled => "cancelled",
            Outcome::OutOfMemory => "out_of_memory",
        };
        self.execs.get_or_create(&ExecLabels { outcome }).inc();
    }

    fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    fn answered(&self, route: String, method: &'static str, status: StatusCode, since: Instant) {
        let status = status.as_u16();
        self.durations
            .get_or_create(&RouteLabels { route: route.clone(), method })
            .observe(since.elapsed().as_secs_f64());
        self.answered.get_or_create(&RequestLabels { route, method, status }).inc();
    }

    fn count_sandboxes(&self, rows: &[SandboxRow]) {
        for (of, state) in
            [(RowState::Making, "making"), (RowState::Live, "live"), (RowState::Removing, "removing")]
        {
            let count = rows.iter().filter(|row| row.state == of).count();
            let gauge = self.sandboxes.get_or_create(&StateLabels { state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

/// A request whose answer is under way. Dropping it ends the count.
struct InFlight(Gauge);

impl HeldValue for InFlight {}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts a request and its answer.
pub(super) async fn measure(State(api): State<Api>, request: Request, next: Next) -> Response {
    let (since, in_flight) = (Instant::now(), api.metrics().begin());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let method = method_label(request.method());
    let answer = next.run(request).await;
    api.metrics().answered(route, method, answer.status(), since);
    hold_until_sent(answer, in_flight)
}

/// Returns the method's label. Unknown methods share one, since a client could send any word, and
/// each would be a metric that stays.
fn method_label(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// Returns metrics of the server for Prometheus: requests by route, method and status, their
/// durations, and those in flight; connections; commands; sandboxes by state; the memory, file
/// descriptors and threads of the server.
///
/// Only keys that `eyot serve --metrics-key` names may read them.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "The figures, as OpenMetrics 1.0 has them", body = String, content_type = "application/openmetrics-text"),
        Problems))]
pub(super) async fn metrics(State(api): State<Api>, caller: Caller) -> Result<Response, Refusal> {
    if caller.key_name().is_some_and(|name| !api.metrics_keys().contains(name)) {
        let error =
            Error::new(ErrorKind::Permission, "the metrics are about the whole server, and not for this key");
        let hint =
            "whoever runs the server names the keys that may read them: `eyot serve --metrics-key NAME`";
        return Err(error.with_hint(hint).into());
    }
    let told = tokio::task::spawn_blocking(move || text(&api)).await;
    let failed = |error| Error::new(ErrorKind::Internal, "tell the metrics").with_source(error);
    Ok(([(header::CONTENT_TYPE, TEXT)], told.map_err(failed)??).into_response())
}

fn text(api: &Api) -> Result<String, Error> {
    let metrics = api.metrics();
    metrics.count_sandboxes(&api.engine().store().all_sandboxes()?);
    let failed = |what: &'static str| move |error| Error::new(ErrorKind::Internal, what).with_source(error);
    metrics.process.read().map_err(failed("tell the metrics: read /proc/self"))?;
    let mut text = String::new();
    encode(&mut text, &metrics.registry)
        .map_err(|error| Error::new(ErrorKind::Internal, "tell the metrics").with_source(error))?;
    Ok(text)
}
