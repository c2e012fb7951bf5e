//! Sandboxes of E2B: virtual machines of the vendor, reached by its REST calls and by envd, which runs in
//! each of them.
//!
//! Nothing of Eyot's is put into a sandbox. Commands and files go through envd's processes, with short
//! scripts (`*.sh`) where the contract asks for more than envd's own calls keep: these act as root,
//! replace no file as a whole, and say neither what a path lacks nor when a command has ended whose
//! children go on. `docs/providers/e2b.md` has the vendor's words for what is not supported.

mod adopt;
mod api;
mod client;
mod create;
mod driver;
mod envd;
mod events;
mod exec;
mod exit;
mod files;
mod link;
mod options;
mod process_io;
mod provider;
mod pump;
mod record;
mod row;
mod script;
mod secret;
mod shell;
mod tar;
mod turns;

pub use options::E2bOptions;
pub use provider::{E2bProvider, capabilities};
pub use row::ROW;
pub use secret::Secret;

/// The provider's name.
pub const NAME: &str = "e2b";

/// The rules of the contract that sandboxes of E2B do not keep, with the reasons.
pub const EXCEPTIONS: &[(&str, &str)] = &[(
    "a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise",
    "E2B gives every machine the same host name",
)];
