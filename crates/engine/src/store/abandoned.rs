//! Sandboxes whose maker or remover ended in the middle of its work.

use eyot::Result;

use super::Store;
use super::claim::KnownOwners;
use super::removing::take_ownership;
use super::row::{SandboxRow, select};

impl Store {
    /// Takes over every sandbox that a process was making or removing when it ended. Each is this process's from now on, in
    /// the state it was in, and no other process gets it as long as this one lives: finish what was begun
    /// ([`Store::finish_making`] for one that turns out whole) or remove it.
    pub fn abandoned(&self) -> Result<Vec<SandboxRow>> {
        let this = self.owner()?;
        self.write_on_spare("take over what was abandoned", |transaction| {
            let (mut abandoned, mut owners) = (Vec::new(), KnownOwners::new(transaction, &this));
            for mut row in select(transaction, "WHERE state != 'live' ORDER BY pool, name", &[])? {
                let Some(owner) = &row.owner else { continue };
                if !owners.is_alive(owner)? {
                    take_ownership(transaction, &row.id, row.state, &this)?;
                    row.owner = Some(this.clone());
                    abandoned.push(row);
                }
            }
            Ok(abandoned)
        })
    }
}
