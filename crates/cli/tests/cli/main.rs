//! The real program against the real provider, each test with a state folder and a home of its own.

mod configuration;
mod copying;
mod files;
mod help;
mod machine;
mod processes;
mod running;
mod sandboxes;
mod signals;
mod terminals;
