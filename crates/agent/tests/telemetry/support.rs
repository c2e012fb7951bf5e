//! Parts of the tests: tracing into memory, and agents that do something.

use std::sync::Arc;
use std::time::Duration;

use eyot_agent::{
    AgentSandbox, Agents, Harness, HarnessOptions, MemoryStore, Model, PromptOptions, RunHandle,
    ScriptedModel, ScriptedTurn, Subagent, TraceOptions, TraceSubscription, init, trace_agents,
};
use eyot_providers::memory::MemoryProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Value, json};

/// A tracing whose spans stay in memory.
pub(crate) struct Traces {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
    subscription: TraceSubscription,
}

/// The spans of one trace.
#[derive(Debug)]
pub(crate) struct Trace(pub(crate) Vec<SpanData>);

impl Traces {
    pub(crate) fn start(options: TraceOptions) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let subscription = trace_agents(&provider, options).expect("a subscription");
        Self { exporter, provider, subscription }
    }

    /// Drops the tracing. The spans stay in the exporter.
    pub(crate) fn drop_subscription(self) -> InMemorySpanExporter {
        drop(self.subscription);
        self.exporter
    }

    /// Ends the tracing, and returns the traces whose first span has this name. Other tests have others.
    pub(crate) fn finish(self, root: &str) -> Vec<Trace> {
        assert_eq!(self.subscription.missed(), 0);
        assert!(self.subscription.finish(Duration::from_secs(30)), "the tracing did not end");
        let spans = self.exporter.get_finished_spans().expect("spans");
        self.provider.shutdown().expect("the end of the provider");
        let roots = spans.iter().filter(|span| span.name == root && is_root(span));
        let trace = |root: &SpanData| {
            let id = root.span_context.trace_id();
            let of_trace = |span: &&SpanData| span.span_context.trace_id() == id;
            Trace(spans.iter().filter(of_trace).cloned().collect())
        };
        roots.map(trace).collect()
    }

    /// The same where there is one such trace.
    pub(crate) fn finish_one(self, root: &str) -> Trace {
        let mut traces = self.finish(root);
        assert_eq!(traces.len(), 1, "{traces:?}");
        traces.remove(0)
    }
}

impl Trace {
    /// Each span's name with those that it is in, in order of the names.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.0.iter().map(|span| self.path(span)).collect();
        paths.sort();
        paths
    }

    fn path(&self, span: &SpanData) -> String {
        if is_root(span) {
            return span.name.to_string();
        }
        let parent = self.0.iter().find(|other| other.span_context.span_id() == span.parent_span_id);
        format!("{} > {}", self.path(parent.expect("the parent is in the trace")), span.name)
    }

    /// The only span of this name.
    pub(crate) fn span(&self, name: &str) -> &SpanData {
        let found: Vec<&SpanData> = self.0.iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0]
    }

    /// The only span at the end of this path.
    pub(crate) fn at(&self, path: &str) -> &SpanData {
        let found: Vec<&SpanData> = self.0.iter().filter(|span| self.path(span) == path).collect();
        assert_eq!(found.len(), 1, "{path}: {found:?}");
        found[0]
    }

    /// No span lasts longer than the one that it is in.
    pub(crate) fn assert_nested(&self) {
        for span in &self.0 {
            assert!(span.start_time <= span.end_time, "{span:?}");
            let parent = self.0.iter().find(|other| other.span_context.span_id() == span.parent_span_id);
            if let Some(parent) = parent {
                // Durations and times are rounded to milliseconds, each in its own way.
                let early = parent.start_time.duration_since(span.start_time).unwrap_or_default();
                assert!(early <= Duration::from_millis(2), "{} is {early:?} early", span.name);
                assert!(span.end_time <= parent.end_time, "{span:?} {parent:?}");
            }
        }
    }
}

pub(crate) fn is_root(span: &SpanData) -> bool {
    span.parent_span_id == opentelemetry::SpanId::INVALID
}

/// The attribute of a span, as text; none: empty.
pub(crate) fn attribute(span: &SpanData, name: &str) -> String {
    let found: Vec<_> = span.attributes.iter().filter(|attribute| attribute.key.as_str() == name).collect();
    assert!(found.len() < 2, "{name} is there twice: {span:?}");
    found.first().map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// A run of an agent of this name, whose one prompt is answered by these turns.
pub(crate) async fn run(name: &str, payload: Value, turns: Vec<ScriptedTurn>) -> RunHandle {
    run_with(name, payload, move || options(turns.clone())).await
}

/// The same with these options.
pub(crate) async fn run_with(
    name: &str,
    payload: Value,
    options: impl Fn() -> HarnessOptions + Send + Sync + 'static,
) -> RunHandle {
    let agents = Agents::new(Arc::new(MemoryStore::default()));
    let options = Arc::new(options);
    agents
        .register(name, move |run| {
            let options = Arc::clone(&options);
            async move {
                let session = run.init(options()).await?.session().await?;
                let answer = session.prompt("What is PROMPT-CANARY?", PromptOptions::default()).await?;
                Ok(json!(answer.text))
            }
        })
        .expect("an agent");
    agents.run(name, "customer-42", payload).await.expect("a run")
}

/// A harness of this name outside of a run.
pub(crate) async fn harness(name: &str, turns: Vec<ScriptedTurn>) -> Harness {
    init(HarnessOptions { name: Some(name.to_owned()), ..options(turns) }).await.expect("a harness")
}

/// A sandbox in memory, and a model that says these turns.
pub(crate) fn options(turns: Vec<ScriptedTurn>) -> HarnessOptions {
    HarnessOptions {
        model: Some(Arc::new(ScriptedModel::new(turns))),
        sandbox: AgentSandbox::of_provider(Arc::new(MemoryProvider::default())),
        subagents: vec![Subagent { name: "helper".into(), ..Subagent::default() }],
        ..HarnessOptions::default()
    }
}

/// Options that know the model of the scripts.
pub(crate) fn knowing_the_model() -> TraceOptions {
    let model = ScriptedModel::new([]);
    TraceOptions { models: vec![model.info().clone()], ..TraceOptions::default() }
}
