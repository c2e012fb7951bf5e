//! The network `egress` on the host's side: starting the program that serves a sandbox, and talking to it. What it decides
//! and how is `eyot-egress`.

mod control;
mod inside;
mod start;

pub(crate) use control::{Control, SOCKET, changed_rules};
pub(crate) use inside::{RESOLV_CONF, variables};
pub(crate) use start::{Channel, Program, STEP};
