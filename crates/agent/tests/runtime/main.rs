//! The runtime from outside: real sandboxes (in memory), and a model that says what was written down for it.

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
