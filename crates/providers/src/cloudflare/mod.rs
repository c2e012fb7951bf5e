//! Sandboxes of Cloudflare: containers of an account of the user's, reached through the bridge, a Worker whose code and
//! contract are in the vendor's package `@cloudflare/sandbox`.
//!
//! The bridge's own calls say neither what a path lacks, nor take input for a command, and its output is text alone. So
//! Eyot's guest is put into the sandbox as one more program, and the bridge's terminal is the stream to it
//! (`docs/decisions/080-cloudflare-by-a-terminal.md`). The bridge lists no sandboxes and keeps no names: both are in records of
//! the state folder. `docs/providers/cloudflare.md` has the vendor's words for what is not supported.

mod answer;
mod bridge;
mod capabilities;
mod create;
mod exec_call;
mod guest_place;
mod host;
mod isolation;
mod link;
mod options;
mod provider;
mod record;
mod records;
mod removal;
mod row;
mod sessions;
mod socket;

pub use capabilities::capabilities;
pub use options::CloudflareOptions;
pub use provider::CloudflareProvider;
pub use row::ROW;

/// The provider's name.
pub const NAME: &str = "cloudflare";

/// The rules of the contract that sandboxes of Cloudflare do not keep, with the reasons.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "a_sandbox_is_called_by_its_name_inside_unless_the_spec_says_otherwise",
        "Cloudflare names its containers itself",
    ),
    (
        "a_workdir_of_its_own_is_where_everything_starts",
        "the user of the bridge's own image may make directories in /workspace, /tmp and its home alone",
    ),
];
