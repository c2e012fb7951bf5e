//! Reconciling after a crash or any other end: live sandboxes are kept, those that should be awake
//! are woken, and those without an owner are removed.

use std::collections::{BTreeMap, BTreeSet};

use eyot::{ErrorKind, Result, SandboxInfo, SandboxStatus};
use serde::Serialize;

use super::Engine;
use crate::events::EventKind;
use crate::pool::{PoolMetadata, remove_snapshots_of, wake_in_turn};
use crate::pool_options::PoolOptions;
use crate::records::{UNREQUESTED_SLEEP, is_gone, is_own};
use crate::store::{RowState, SandboxRow, Store};

/// A sandbox that was put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// The pool.
    pub pool: String,
    /// The sandbox's name.
    pub sandbox: String,
    /// A sentence that says what was found and done.
    pub what: &'static str,
}

impl Engine {
    /// Looks at every sandbox of every pool, and puts right what a process left that ended in the
    /// middle of something. Returns what it did; each is an event as well. Sandboxes that other
    /// processes work on are left to them. A sandbox that can't be put right now is logged, and
    /// left to the next time.
    ///
    /// - one that was being made, and whose maker has ended, was never anybody's: it is removed;
    /// - one that was being removed is removed;
    /// - one that the provider does not have any more (its ttl has passed, say) frees its name;
    /// - one of a session's pool whose process has ended is removed, and the pool is forgotten;
    /// - one that somebody was waking who has ended is woken from the beginning;
    /// - one that has a name and is in no pool is taken into the pool `default`;
    /// - one without processes though it was not put to sleep (the host was restarted) is woken if it has services.
    pub async fn reconcile(&self) -> Result<Vec<Reconciled>> {
        let is_own = |row: &SandboxRow| is_own(self.provider.as_ref(), row);
        let rows = self.records.store.ask(|store| {
            let abandoned = store.abandoned()?.into_iter().map(|row| (store.claim(&row.id), row));
            Ok((abandoned.collect::<Vec<_>>(), store.all_sandboxes()?))
        });
        let (abandoned, all) = rows.await?;
        let mut done = Vec::new();
        // A sandbox that is not removed now is given up with its claim.
        for (_claim, row) in abandoned.iter().filter(|(_, row)| is_own(row)) {
            let what = match row.state {
                RowState::Removing => "it was being removed by a process that has ended; now it is",
                _ => "it was being made by a process that has ended; it is removed",
            };
            let removed = self.records.remove(self.provider.as_ref(), row, what).await;
            self.record_outcome(&mut done, row, what, removed).await;
        }
        self.end_sessions(&all, &mut done).await?;
        let infos = self.provider.list().await?;
        self.adopt(&all, &infos).await?;
        let statuses: BTreeMap<_, _> = infos.into_iter().map(|info| (info.id, info.status)).collect();
        for row in all.iter().filter(|row| is_own(row) && row.state == RowState::Live) {
            self.reconcile_row(row, statuses.get(&row.id), &mut done).await;
        }
        self.finish_wakes(&mut done).await?;
        Ok(done)
    }

    /// Removes the sandboxes of sessions whose process has ended.
    async fn end_sessions(&self, all: &[SandboxRow], done: &mut Vec<Reconciled>) -> Result<()> {
        let what = "its session's process has ended; it is removed";
        for pool in self.records.ask(Store::pools).await? {
            let owner =
                serde_json::from_value::<PoolMetadata>(pool.options).ok().and_then(|noted| noted.owner);
            let Some(owner) = owner else { continue };
            if self.records.ask(move |store| store.is_alive(&owner)).await? {
                continue;
            }
            let is_own = |row: &&SandboxRow| is_own(self.provider.as_ref(), row);
            // Another provider's are its own engine's to end; the pool stays until then.
            for row in all.iter().filter(is_own).filter(|row| row.pool == pool.name) {
                let removed = self.records.remove(self.provider.as_ref(), row, what).await;
                self.record_outcome(done, row, what, removed).await;
            }
            remove_snapshots_of(self.provider.as_ref(), &pool.name).await?;
            match self.records.ask(move |store| store.remove_pool(&pool.name)).await {
                // Sandboxes that could not be removed keep the pool until the next time.
                Err(error) if error.kind() != ErrorKind::Conflict => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Wakes again from the beginning the sandboxes whose waker has ended: some of their services
    /// may not run.
    async fn finish_wakes(&self, done: &mut Vec<Reconciled>) -> Result<()> {
        let what = "it was being woken by a process that has ended; it was woken again, with its services";
        let left = self.records.ask(Store::abandoned_wakes).await?;
        for row in left.iter().filter(|row| is_own(self.provider.as_ref(), row)) {
            let woken = self.wake(row).await;
            self.record_outcome(done, row, what, woken).await;
        }
        Ok(())
    }

    /// Takes the named sandboxes that are in no pool into the pool `default`. Those without a name
    /// are throw-away ones, or were found by their ids before.
    async fn adopt(&self, known: &[SandboxRow], infos: &[SandboxInfo]) -> Result<()> {
        let known: BTreeSet<_> = known.iter().map(|row| &row.id).collect();
        let is_alone = |info: &&SandboxInfo| {
            !known.contains(&info.id)
                && info.name != info.id.default_name()
                && matches!(info.status, SandboxStatus::Running | SandboxStatus::Sleeping)
        };
        let mut alone = infos.iter().filter(is_alone).peekable();
        if alone.peek().is_none() {
            return Ok(());
        }
        let pool = self.pool(PoolOptions::default())?;
        for info in alone {
            pool.adopt(info).await?;
        }
        Ok(())
    }

    async fn reconcile_row(
        &self,
        row: &SandboxRow,
        status: Option<&SandboxStatus>,
        done: &mut Vec<Reconciled>,
    ) {
        match status {
            // A listing may leave out what it can't read just now, and a sandbox is not destroyed on a guess.
            None if is_gone(self.provider.as_ref(), row).await => {
                let what = "its sandbox is gone; its name is free";
                let removed = self.records.remove(self.provider.as_ref(), row, what).await;
                self.record_outcome(done, row, what, removed).await;
            }
            Some(SandboxStatus::Dead) if !row.services.is_empty() => {
                let what = "it had lost its processes; it was woken, and its services were started";
                let woken = self.wake(row).await;
                self.record_outcome(done, row, what, woken).await;
            }
            Some(SandboxStatus::Sleeping) => {
                // Nothing is to be put right; it is only told that it fell asleep while nobody looked.
                if let Err(error) = self.records.record_sleep(row, UNREQUESTED_SLEEP).await {
                    tracing::warn!(%error, sandbox = %row.id, "record that a sandbox sleeps");
                }
            }
            None | Some(_) => {}
        }
    }

    async fn wake(&self, row: &SandboxRow) -> Result<()> {
        wake_in_turn(&self.records, self.provider.as_ref(), row, "it has services").await.map(drop)
    }

    async fn record_outcome(
        &self,
        done: &mut Vec<Reconciled>,
        row: &SandboxRow,
        what: &'static str,
        result: Result<()>,
    ) {
        match result {
            Ok(()) => {
                let kind = EventKind::Reconciled { what: what.to_owned() };
                if let Err(error) = self.records.record(row, kind, "a look at what was left").await {
                    tracing::error!(%error, sandbox = %row.id, "what was reconciled was not recorded");
                }
                let (pool, sandbox) = (row.pool.to_string(), row.name.to_string());
                done.push(Reconciled { pool, sandbox, what });
            }
            // Another process does the same, and was faster.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {}
            Err(error) => tracing::warn!(%error, sandbox = %row.id, "reconcile; the next time tries again"),
        }
    }
}
