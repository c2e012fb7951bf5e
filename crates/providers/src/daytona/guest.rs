//! The guest in a sandbox: it is put there, started, looked for, and ended.

use eyot::Result;
use eyot_guest::PROGRAM;

use super::toolbox::DaytonaToolbox;
use crate::terminal_guest::{BEGIN, GuestLife, GuestTrace, LOOK, PLACE, done, trace};

/// Puts a guest into a sandbox and starts it. Done twice, it is the same guest. A working directory that is missing is made.
pub(super) async fn begin(toolbox: &DaytonaToolbox, life: &GuestLife, workdir: Option<&str>) -> Result<()> {
    let (directory, size) = (life.directory(), PROGRAM.len().to_string());
    let upload = format!("{directory}/upload");
    let directories: Vec<&str> = [directory.as_str()].into_iter().chain(workdir).collect();
    done(&toolbox.run(PLACE, &directories).await?)?;
    toolbox.upload(&upload, PROGRAM).await?;
    done(&toolbox.run(BEGIN, &[&directory, &upload, &size]).await?)
}

/// Looks for a guest.
pub(super) async fn look(toolbox: &DaytonaToolbox, life: &GuestLife) -> Result<GuestTrace> {
    trace(&toolbox.run(LOOK, &[&life.directory()]).await?)
}

/// Ends a guest, and removes what was put into the sandbox.
pub(super) async fn leave(toolbox: &DaytonaToolbox, life: &GuestLife) -> Result<()> {
    trace(&toolbox.run(LOOK, &[&life.directory(), "end"]).await?).map(drop)
}
