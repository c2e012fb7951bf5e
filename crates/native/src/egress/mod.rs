//! The host's side of the network `egress`: starts the program that serves a sandbox, and talks to
//! it. The program itself is the crate `eyot-egress`.

mod control;
mod inside;
mod start;

pub(crate) use control::{EgressProgramClient, SOCKET, changed_rules};
pub(crate) use inside::{RESOLV_CONF, variables};
pub(crate) use start::{Channel, EgressProgram, STEP};
