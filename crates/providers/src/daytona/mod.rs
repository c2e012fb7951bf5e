//! Sandboxes of Daytona, reached by the calls of its API and by the *toolbox*, the vendor's program in each of them.
//!
//! The toolbox runs a command with an answer that is text, and has no call for a signal. So Eyot's guest is put into the
//! sandbox as one more program, and a terminal of the toolbox is the stream to it, as at Cloudflare ([`crate::cloudflare`];
//! `docs/decisions/081-daytona-by-a-terminal.md`). `docs/providers/daytona.md` has the vendor's words for what is not
//! supported.

mod answer;
mod bring;
mod client;
mod create;
mod facts;
mod guest;
mod guest_notes;
mod host;
mod link;
mod options;
mod provider;
mod record;
mod removal;
mod row;
mod terminal;
mod toolbox;

pub use options::DaytonaOptions;
pub use provider::DaytonaProvider;
pub use record::capabilities;
pub use row::ROW;

/// The provider's name.
pub const NAME: &str = "daytona";

/// The rules of the contract that sandboxes of Daytona do not keep, with the reasons.
pub const EXCEPTIONS: &[(&str, &str)] = &[(
    "a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise",
    "Daytona gives its sandboxes host names of its own",
)];
