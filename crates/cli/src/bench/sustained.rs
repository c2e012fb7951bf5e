//! Measures sandboxes from slots under load: one client that makes, uses and destroys one after
//! another, on the same processors that make the slots.

use std::process::Command;
use std::time::{Duration, Instant};

use eyot::{Command as Run, ExecOptions, Sandbox, SandboxProvider, SandboxSpec};

use super::{Item, Items};
use crate::errors::Failure;

const SPAWN: Item = Item::plain("sustained: host: spawn /bin/true and wait");
const CREATE: Item = Item::ratio("sustained: create → ready, from a slot", SPAWN.name, 1.0);
const WHOLE: Item = Item::plain("sustained: create + exec + destroy, from a slot");

/// Makes, uses and destroys sandboxes for this long.
pub async fn measure(
    provider: &dyn SandboxProvider,
    time: Duration,
    items: &mut Items,
) -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < time {
        let since = Instant::now();
        let spawned = Command::new("/bin/true").status();
        spawned.map_err(|error| Failure::host("run /bin/true", error))?;
        items.note(SPAWN, since);
        let whole = Instant::now();
        let sandbox = Sandbox::create(provider, SandboxSpec::default()).await?;
        items.note(CREATE, whole);
        sandbox.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        sandbox.destroy().await?;
        items.note(WHOLE, whole);
    }
    Ok(())
}
