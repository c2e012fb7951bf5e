//! The presence of this process among the servers of a database. Each has a row there, which it renews: so the others
//! know whether one that was at work on a sandbox can still go on. Times are the database's, so clocks may differ.
//!
//! The same connection hears of the changes that others make.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use super::database_error::DatabaseError;
use super::database_url::{DatabaseUrl, Messages};
use super::owner::Owner;
use super::postgres_link::{PostgresLink, log_in, spawn};
use super::value::values;

/// The time between two renewals.
const RENEWAL: Duration = Duration::from_secs(5);
/// The pause before a connection that ended is made again.
const PAUSE: Duration = Duration::from_millis(500);
/// Notes this server, or renews its row. Its presence begins anew if it was silent for 15 seconds.
const RENEW: &str = "INSERT INTO servers SELECT $1, now.ms, now.ms FROM \
         (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now \
     ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms, since_ms = CASE \
         WHEN servers.seen_ms > excluded.seen_ms - 15000 THEN servers.since_ms ELSE excluded.seen_ms END";
/// Forgets the servers that were silent for a day.
const FORGET: &str =
    "DELETE FROM servers WHERE seen_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000";
const LISTEN: &str = "LISTEN eyot_store; LISTEN eyot_events";
const OF_EVENTS: &str = "eyot_events";

/// The presence of this process. It ends with this.
pub(super) struct Presence {
    id: String,
    store: watch::Receiver<u64>,
    events: watch::Receiver<u64>,
    renewing: JoinHandle<()>,
}

/// Counters of the changes of a database.
struct ChangeCounters {
    store: watch::Sender<u64>,
    events: watch::Sender<u64>,
}

impl Presence {
    /// Notes this process among the servers.
    pub(super) fn begin(url: &DatabaseUrl, link: &PostgresLink) -> Result<Self, DatabaseError> {
        let id = Uuid::now_v7().to_string();
        link.execute(&RENEW.replace('$', "?"), values![&id])?;
        link.batch(FORGET)?;
        let ((to_store, store), (to_events, events)) = (watch::channel(0), watch::channel(0));
        let counters = ChangeCounters { store: to_store, events: to_events };
        let renewing = spawn(renew(url.clone(), id.clone(), counters))?;
        Ok(Self { id, store, events, renewing })
    }

    /// Returns this process as an owner of work.
    pub(super) fn owner(&self) -> Owner {
        Owner::of_server(&self.id)
    }

    /// Counts the changes of the store by any process, and more often than that.
    pub(super) fn store_changes(&self) -> watch::Receiver<u64> {
        self.store.clone()
    }

    /// Counts the new events of any process, and more often than that.
    pub(super) fn event_changes(&self) -> watch::Receiver<u64> {
        self.events.clone()
    }

    /// Takes this process off the servers.
    pub(super) fn end(&self, link: &PostgresLink) {
        self.renewing.abort();
        if let Err(error) = link.execute("DELETE FROM servers WHERE id = ?1", values![&self.id]) {
            tracing::debug!(%error, "this process is taken for a live server for half a minute more");
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// Renews the row of this server, and tells what it hears, until it is aborted.
async fn renew(url: DatabaseUrl, id: String, counters: ChangeCounters) {
    loop {
        if let Err(error) = renew_once_connected(&url, &id, &counters).await {
            tracing::debug!(%error, "the presence among the servers could not be renewed");
        }
        // Something may have changed unheard.
        counters.tell_all();
        tokio::time::sleep(PAUSE).await;
    }
}

async fn renew_once_connected(
    url: &DatabaseUrl,
    id: &str,
    counters: &ChangeCounters,
) -> Result<(), DatabaseError> {
    let (client, messages) = log_in(url).await?;
    tokio::select! {
        ended = hear(messages, counters) => ended,
        ended = renew_over(&client, id, counters) => ended,
    }
}

async fn renew_over(client: &Client, id: &str, counters: &ChangeCounters) -> Result<(), DatabaseError> {
    let silent = |_| DatabaseError::Silent("it says nothing".to_owned());
    tokio::time::timeout(RENEWAL, client.batch_execute(LISTEN)).await.map_err(silent)??;
    counters.tell_all();
    let mut due = tokio::time::interval(RENEWAL);
    loop {
        due.tick().await;
        let renewed = tokio::time::timeout(RENEWAL, client.execute(RENEW, &[&id])).await;
        renewed.map_err(silent)??;
    }
}

async fn hear(mut messages: Messages, counters: &ChangeCounters) -> Result<(), DatabaseError> {
    while let Some(message) = messages.next().await {
        if let AsyncMessage::Notification(notice) = message? {
            count(if notice.channel() == OF_EVENTS { &counters.events } else { &counters.store });
        }
    }
    Ok(())
}

impl ChangeCounters {
    fn tell_all(&self) {
        count(&self.store);
        count(&self.events);
    }
}

fn count(counter: &watch::Sender<u64>) {
    counter.send_modify(|count| *count = count.wrapping_add(1));
}
