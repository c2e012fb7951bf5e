//! Sandboxes as containers of a Docker Engine (or of another that speaks its API), here or on another host.
//!
//! A container's PID 1 is Eyot's guest, from a read-only volume that is filled once per Engine.
//! Commands and files go through the guest, over one stream that stays open: the Engine runs the
//! guest's relay in the container, and a lost stream is opened again. The Engine's own exec and
//! copy are used for nothing else.
//!
//! The labels of a container describe the sandbox, and the sandbox runs or sleeps as its container
//! does. Labels can be forged and copied, so they count only with a MAC by a secret of the state
//! folder (`seal`). All processes with the same state folder and the same Engine have the same
//! sandboxes. Everything else on the Engine is foreign, and left alone (`adopt`).

mod accounts;
mod adopt;
mod archive;
mod baseline;
mod commit;
mod compared;
mod condition;
mod connect;
mod container;
mod covered;
mod create;
mod destroy;
mod driver;
mod engine;
mod find;
mod guest_volume;
mod helper;
mod host;
mod image;
mod images;
mod isolation;
mod kept_snapshot;
mod labels;
mod life;
mod pieces;
mod provider;
mod published;
mod relay;
mod removal;
mod replace;
mod row;
mod seal;
mod sleep;
mod snapshots;
mod state;
mod successor;
mod sweep;
mod tagged;
mod wake;
mod workspace;

pub use baseline::Baseline;
pub use engine::SandboxDockerUnavailable;
pub use image::{DENO_IMAGE, NODE_IMAGE, PYTHON_IMAGE};
pub use images::EngineImages;
pub use provider::{DockerOptions, DockerProvider, capabilities};
pub use row::{ROW, open};

pub use crate::row::{Adopted, Foreign, ForeignKind};

/// The provider's name.
const NAME: &str = "docker";
