//! Connections to a PostgreSQL database. Calls block, on any thread: a runtime of this module has the connections.

use std::collections::HashMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use bytes::BytesMut;
use futures_util::StreamExt;
use tokio::runtime::Runtime;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, Statement};

use super::database_error::DatabaseError;
use super::database_url::{DatabaseUrl, Messages};
use super::value::{DatabaseRow, Value};

/// The longest wait for the answer to one statement, after which the server ends it as well.
const STATEMENT_PATIENCE: Duration = Duration::from_secs(40);
/// The time for which a call waits for a database that is away.
pub(super) const AWAY_PATIENCE: Duration = Duration::from_secs(10);
const AWAY_PAUSE: Duration = Duration::from_millis(200);
/// The longest wait for a login.
const LOGIN_PATIENCE: Duration = Duration::from_secs(10);
/// Begins a transaction that writes. The number of the lock is "eyot" in ASCII.
pub(super) const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(1702457204)";
/// The settings of each connection. A call waits 10 seconds for the lock; a process that is gone gives it up within
/// half a minute. Nobody waits for the disk, except where a transaction asks for it.
const SETTINGS: &str = "SET synchronous_commit = off; SET lock_timeout = '10s'; SET statement_timeout = '30s'; \
     SET idle_in_transaction_session_timeout = '20s'; SET client_min_messages = warning; \
     SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// A connection.
pub(super) struct PostgresLink {
    client: Arc<Client>,
    /// The statements that the server has parsed.
    statements: Mutex<HashMap<String, Statement>>,
}

impl PostgresLink {
    /// Tells whether it has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs a statement that changes rows. Returns their number.
    pub(super) fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, DatabaseError> {
        let (client, statement, values) = (Arc::clone(&self.client), self.statement(sql)?, values.to_vec());
        wait(async move { Ok(client.execute(&statement, &references(&values)).await?) })
    }

    /// Runs a statement that returns rows.
    pub(super) fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<DatabaseRow>, DatabaseError> {
        let (client, statement, values) = (Arc::clone(&self.client), self.statement(sql)?, values.to_vec());
        let rows = wait(async move { Ok(client.query(&statement, &references(&values)).await?) })?;
        let names =
            rows.first().map(Row::columns).unwrap_or_default().iter().map(|column| column.name().to_owned());
        let names = names.collect();
        rows.iter().map(|found| row(found, &names)).collect()
    }

    /// Runs several statements without values.
    pub(super) fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        let (client, sql) = (Arc::clone(&self.client), sql.to_owned());
        wait(async move { Ok(client.batch_execute(&sql).await?) })
    }

    fn statement(&self, sql: &str) -> Result<Statement, DatabaseError> {
        let mut known = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = known.get(sql) {
            return Ok(statement.clone());
        }
        // Statements number their values in SQLite's way. No text in one has a question mark.
        let (client, own) = (Arc::clone(&self.client), sql.replace('?', "$"));
        let statement = wait(async move { Ok(client.prepare(&own).await?) })?;
        known.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Returns the runtime of the connections.
fn runtime() -> Result<&'static Runtime, DatabaseError> {
    static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("eyot-database").enable_all().build()
    });
    RUNTIME.as_ref().map_err(|error| DatabaseError::Silent(error.to_string()))
}

/// Runs a task in the runtime of the connections.
pub(super) fn spawn(
    task: impl Future<Output = ()> + Send + 'static,
) -> Result<tokio::task::JoinHandle<()>, DatabaseError> {
    Ok(runtime()?.spawn(task))
}

/// Waits for `work`, which the runtime of the connections does.
fn wait<T: Send + 'static>(
    work: impl Future<Output = Result<T, DatabaseError>> + Send + 'static,
) -> Result<T, DatabaseError> {
    let silent = || DatabaseError::Silent("it says nothing".to_owned());
    let (tell, told) = sync_channel(1);
    runtime()?.spawn(async move {
        let done = tokio::time::timeout(STATEMENT_PATIENCE, work).await;
        // Whoever waits is there until it is told.
        let _told = tell.send(done.unwrap_or_else(|_| Err(silent())));
    });
    told.recv().unwrap_or_else(|_| Err(silent()))
}

/// Connects, and again for a while if the database is away.
pub(super) fn connect_patiently(url: &DatabaseUrl) -> Result<PostgresLink, DatabaseError> {
    let given_up = Instant::now() + AWAY_PATIENCE;
    loop {
        let own = url.clone();
        match wait(async move { connect(&own).await }) {
            Err(error) if error.is_away() && Instant::now() < given_up => thread::sleep(AWAY_PAUSE),
            connected => return connected,
        }
    }
}

/// Connects and logs in. A proxy may accept a connection and say nothing.
pub(super) async fn log_in(url: &DatabaseUrl) -> Result<(Client, Messages), DatabaseError> {
    let connected = tokio::time::timeout(LOGIN_PATIENCE, url.connect()).await;
    connected.map_err(|_| DatabaseError::Silent("it lets nobody in".to_owned()))?
}

async fn connect(url: &DatabaseUrl) -> Result<PostgresLink, DatabaseError> {
    let (client, mut messages) = log_in(url).await?;
    // They end with the client.
    tokio::spawn(async move {
        while let Some(message) = messages.next().await {
            if let Err(error) = message {
                tracing::debug!(%error, "a connection to the database has ended");
                return;
            }
        }
    });
    client.batch_execute(SETTINGS).await?;
    Ok(PostgresLink { client: Arc::new(client), statements: Mutex::default() })
}

fn references(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql(of, out),
            Self::Text(text) => text.to_sql(of, out),
            Self::Bytes(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn row(found: &Row, names: &Arc<[String]>) -> Result<DatabaseRow, DatabaseError> {
    let columns = found.columns().iter().enumerate().map(|(index, column)| {
        let value = match *column.type_() {
            Type::INT8 => found.try_get::<_, Option<i64>>(index)?.map(Value::from),
            Type::BYTEA => found.try_get::<_, Option<Vec<u8>>>(index)?.map(Value::Bytes),
            Type::TEXT => found.try_get::<_, Option<String>>(index)?.map(Value::from),
            // Of a function that returns nothing.
            Type::VOID => None,
            ref other => {
                let reason = format!("it is of the type {other}");
                return Err(DatabaseError::unreadable(column.name(), reason.into()));
            }
        };
        Ok(value.unwrap_or(Value::Null))
    });
    Ok(DatabaseRow::new(names, columns.collect::<Result<_, DatabaseError>>()?))
}
