//! The capabilities of this host: which parts work, which do not, why, and the one command that
//! fixes each.
//!
//! [`Facts`] are gathered from the system. `cause` is a table of possible problems, each with its
//! sentence and its fix. `report` combines both with a test sandbox; `eyot doctor` prints it. A
//! failed create is explained by the same table, so a cause is worded the same everywhere. A create
//! that succeeds runs nothing of this, except for a check of the state folder's file system.

mod by_hand;
mod cause;
mod cgroup;
mod container;
mod facts;
mod failure;
mod finding;
mod kernel;
mod machine;
mod mount_table;
mod namespaces;
mod peers;
mod profile;
mod report;
mod state_folder;
mod way;

pub use facts::Facts;
pub use finding::{Finding, Status};
pub use profile::apparmor_profile;
pub use report::{Report, diagnose};

pub(crate) use cgroup::fix as fix_of_groups;
pub(crate) use failure::SetupFailure;

use std::path::Path;

use eyot::{Error, ErrorKind, Result};
use serde_json::Value;

/// The hint of a failure without a known cause.
const ASK_THE_DOCTOR: &str = "`eyot doctor` shows what this host can do";

/// Replaces the sentence of a set-up failure by its cause, if that is known, and adds the fix as
/// the hint. The failed step stays in the sentence and in the source. `simulated` is for
/// [`Facts::gather`].
pub(crate) fn explained(error: Error, state: &Path, simulated: Option<&Value>) -> Error {
    let Some(failure) = SetupFailure::of(&error) else { return error };
    let reason = Facts::gather(state, simulated).ok().and_then(|facts| cause::explain(&facts, &failure));
    let Some((_, reason)) = reason else {
        return if error.hint().is_some() { error } else { error.with_hint(ASK_THE_DOCTOR) };
    };
    let hint = reason.fix.as_deref().unwrap_or(ASK_THE_DOCTOR).to_owned();
    let message = failure.explained(&error, &reason.why);
    Error::new(error.kind(), message).with_hint(hint).with_source(error)
}

/// Refuses a state folder that another user controls or could control, and a folder with files of
/// something else. A provider does so when it is opened; this function is for code that reads or
/// writes the folder without a provider. Makes nothing.
///
/// # Errors
/// The cause as the sentence, and the fix as the hint, of a `Setup` error.
pub fn check_folder(state: &Path) -> Result<()> {
    if state.as_os_str().is_empty() {
        let message = "open the state folder: there is no home directory to keep it in";
        return Err(Error::new(ErrorKind::Setup, message)
            .with_hint("name a folder of your own: `--state FOLDER`, or the variable EYOT_STATE"));
    }
    let uid = rustix::process::geteuid().as_raw();
    if state_folder::StateFacts::of(state).is_for_ones_state(uid) {
        return Ok(());
    }
    let facts = Facts::gather(state, None)
        .map_err(|error| Error::new(ErrorKind::Internal, "look at the state folder").with_source(error))?;
    refused(state, state_folder::ownership_refusal(&facts))
}

/// Refuses a state folder where sandboxes can't work, or not safely, although they could be made.
///
/// # Errors
/// The cause as the sentence, and the fix as the hint, of a `Setup` error.
pub(crate) fn check_state_folder(state: &Path, simulated: Option<&Value>) -> Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    if simulated.is_none() && state_folder::StateFacts::of(state).is_fit(uid) {
        return Ok(());
    }
    let facts = Facts::gather(state, simulated).map_err(|error| Error::invalid("simulated", error))?;
    refused(state, state_folder::refusal(&facts))
}

fn refused(state: &Path, reason: Option<finding::Reason>) -> Result<()> {
    match reason {
        None => Ok(()),
        Some(reason) => {
            let error = Error::new(ErrorKind::Setup, format!("open the state folder: {}", reason.why));
            Err(error
                .with_hint(reason.fix.as_deref().unwrap_or(ASK_THE_DOCTOR))
                .with_source(state.display().to_string()))
        }
    }
}
