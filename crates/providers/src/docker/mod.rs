//! Sandboxes as containers of a Docker Engine (or of another that speaks its API), here or on another host.
//!
//! A container's PID 1 is Eyot's guest, from a read-only volume that is filled once per Engine. Commands and files go
//! through it, over one stream that is held open: the Engine runs the guest's relay in the container, and a lost stream
//! is opened again. The Engine's own exec and copy are for nothing else.
//!
//! Nothing is kept outside of the Engine: what a sandbox is stands in its container's labels, and whether it runs or
//! sleeps is whether its container does. So every process that may use the Engine sees the same sandboxes.

mod accounts;
mod baseline;
mod condition;
mod connect;
mod container;
mod create;
mod destroy;
mod driver;
mod engine;
mod find;
mod guest_volume;
mod host;
mod image;
mod images;
mod isolation;
mod labels;
mod life;
mod pieces;
mod provider;
mod published;
mod relay;
mod sleep;
mod sweep;
mod wake;
mod workspace;

pub use baseline::Baseline;
pub use engine::SandboxDockerUnavailable;
pub use image::{DENO_IMAGE, NODE_IMAGE, PYTHON_IMAGE};
pub use images::EngineImages;
pub use provider::{DockerOptions, DockerProvider, capabilities};

/// The provider's name.
const NAME: &str = "docker";
