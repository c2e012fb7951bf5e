//! Tests of the runtime from outside, with real sandboxes in memory and a scripted model.

mod aborting;
mod aborting_run;
mod compaction;
mod events;
mod images;
mod many;
mod prompts;
mod results;
mod runs;
mod sandboxes;
mod sessions;
mod skills;
mod support;
mod tasks;
mod tools;
