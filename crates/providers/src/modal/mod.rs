//! Sandboxes of Modal, reached by its two gRPC services: the control plane, which makes and ends them, and the worker
//! of each, which runs commands.
//!
//! Nothing of Eyot's is put into a sandbox. A command is a process that the worker starts, and files are short
//! scripts, the same as at E2B ([`crate::e2b`]). `docs/providers/modal.md` has the vendor's words for what
//! is not supported.

mod client;
mod connection;
mod create;
mod exec;
mod grpc;
mod id_cache;
mod image;
mod input;
mod link;
mod options;
mod output;
mod provider;
mod pump;
mod record;
mod retry;
mod row;
mod script;
mod status;
pub mod wire;

pub use options::ModalOptions;
pub use provider::{ModalProvider, capabilities};
pub use row::ROW;

/// The provider's name.
pub const NAME: &str = "modal";

/// The rules of the contract that sandboxes of Modal do not keep, with the reasons.
pub const EXCEPTIONS: &[(&str, &str)] = &[(
    "a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise",
    "Modal gives every sandbox the same host name",
)];
