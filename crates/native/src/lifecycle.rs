//! Changes of deadlines while a sandbox lives. The new ones go into its record, for a later wake or
//! for a process that finds it ended, and to its guest.

use std::path::PathBuf;

use async_trait::async_trait;
use eyot::{Error, ErrorKind, Lifecycle, Result};
use eyot_guest::client::LifecycleKeeper;

use crate::blocking::on_blocking_thread;
use crate::condition::Condition;
use crate::ready::ReadyMark;
use crate::record::{Lock, Record};

/// The keeper of the record of the sandbox in this directory.
pub(crate) struct Keeper(pub PathBuf);

#[async_trait]
impl LifecycleKeeper for Keeper {
    async fn keep(&self, lifecycle: &Lifecycle) -> Result<Option<u64>> {
        let (directory, lifecycle) = (self.0.clone(), lifecycle.clone());
        on_blocking_thread(move || {
            let gone =
                |error| Error::new(ErrorKind::Destroyed, "the sandbox has been destroyed").with_source(error);
            // Whoever puts it to sleep or wakes it writes the record too.
            let _lock = Lock::wait(&directory).map_err(gone)?;
            ReadyMark::end_move(&directory).map_err(gone)?;
            let mut record = Record::read(&directory).map_err(gone)?;
            match Condition::of(&directory).1 {
                Condition::Running => {}
                condition => return Err(condition.refusal(record.info.name.as_str())),
            }
            record.info.spec.lifecycle = lifecycle;
            record.write(&directory).map_err(|error| {
                if directory.exists() {
                    Error::host("write the sandbox's record", error)
                } else {
                    gone(error)
                }
            })?;
            Ok(record.ttl_left_ms())
        })
        .await
    }
}
