//! Spans of agents, from outside: real sandboxes (in memory), a model that says what was written down for it, and an exporter
//! that keeps the spans.

mod content;
mod failures;
mod runs;
mod sessions;
mod support;
