//! Sandboxes of E2B: virtual machines of the vendor, reached by its REST calls and by envd, which runs in
//! each of them.
//!
//! Nothing of Eyot's is put into a sandbox. Commands and files go through envd's processes, with short
//! scripts (`*.sh`) where the contract asks for more than envd's own calls keep: these act as root,
//! replace no file as a whole, and say neither what a path lacks nor when a command has ended whose
//! children go on. `docs/providers/e2b.md` has the vendor's words for what is not supported.

pub(crate) mod adopt;
mod answer;
mod api;
pub(crate) mod client;
pub(crate) mod create;
pub(crate) mod driver;
mod envd;
mod envd_process;
mod events;
pub(crate) mod exec;
mod exit;
pub(crate) mod files;
mod link;
mod options;
mod process_io;
mod provider;
mod pump;
pub(crate) mod record;
mod row;
pub(crate) mod script;
pub(crate) mod secret;
pub(crate) mod shell;
pub(crate) mod tar;

pub use options::E2bOptions;
pub use provider::{E2bProvider, capabilities};
pub use row::ROW;
pub use secret::Secret;

/// The parts that providers of other vendors use, too.
#[cfg(feature = "cloudflare")]
pub(crate) mod vendor {
    pub(crate) use super::answer::AnswerSource;
    pub(crate) use super::client::{FIRST_WAIT, clean_text, gives_up, retry_after};
}

/// The provider's name.
pub const NAME: &str = "e2b";

/// The rules of the contract that sandboxes of E2B do not keep, with the reasons.
pub const EXCEPTIONS: &[(&str, &str)] = &[(
    "a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise",
    "E2B gives every machine the same host name",
)];
