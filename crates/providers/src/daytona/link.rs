//! Connecting to the guest of a sandbox, starting another one, and finding out why a stream to it has ended.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use eyot::internal::{now_ms, run_detached};
use eyot::{Created, Error, ErrorKind, Isolation, PublishedPort, Result};
use eyot_guest::client::{Connection, Verdict};
use eyot_guest::protocol::container::{ContainerConfig, RELAY_TO_MAKER};
use tokio::io::DuplexStream;

use super::bring::failed;
use super::facts::DaytonaPhase;
use super::host::DaytonaHost;
use super::record::{FoundDaytonaSandbox, capabilities, found, isolation};
use super::toolbox::DaytonaToolbox;
use super::{NAME, guest, removal, terminal};
use crate::linked_driver::{GuestBackend, LinkedDriver, lost_stream, send_config, unknown_end};
use crate::terminal_guest::{GuestLife, GuestTrace, guest_ended, read_role};

/// The longest wait for Daytona's word of a sandbox whose stream has ended.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);
/// The processes that a life is thought to have in a second: the numbers of the next one begin after so many.
const PROCESSES_PER_SECOND: i64 = 64;
/// The most guests that are tried while other processes start some, too.
const MAX_GUESTS: usize = 5;

/// A guest of this life in a sandbox.
#[derive(Debug, Clone)]
pub(super) struct DaytonaGuest {
    host: Arc<DaytonaHost>,
    found: Arc<FoundDaytonaSandbox>,
    toolbox: DaytonaToolbox,
    life: GuestLife,
    /// The last number that a process of an earlier life may have.
    last_process_id: u32,
}

/// A sandbox with a connection to its guest.
pub(super) struct GuestConnection {
    sandbox: DaytonaGuest,
    isolation: Isolation,
    connection: Connection,
}

/// The part of a sandbox that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedPart {
    /// Nothing but a stream.
    None,
    /// The guest.
    Guest,
    /// All processes: it sleeps, or has slept since.
    Life,
    /// All of it.
    Sandbox,
}

/// Connects to the guest of a sandbox that runs. If there is none, one is started.
pub(super) async fn connected(
    host: &Arc<DaytonaHost>,
    found: FoundDaytonaSandbox,
) -> Result<GuestConnection> {
    let toolbox = DaytonaToolbox { address: host.client.toolbox(&found.facts)?, client: host.client.clone() };
    let found = Arc::new(found);
    let of_life = |life, last_process_id| DaytonaGuest {
        host: Arc::clone(host),
        found: Arc::clone(&found),
        toolbox: toolbox.clone(),
        life,
        last_process_id,
    };
    let mut last = None;
    for _ in 0..MAX_GUESTS {
        let noted = host.guests.read(&found.facts.id)?;
        if let Some(life) = noted.clone() {
            let sandbox = of_life(life, 0);
            // A relay waits for a guest that is not there, so it is looked for first.
            match sandbox.ended().await? {
                EndedPart::None => {
                    let connection = sandbox.connect().await?;
                    return GuestConnection::new(sandbox, connection);
                }
                EndedPart::Guest => {}
                EndedPart::Life if host.guests.read(&found.facts.id)? != noted => continue,
                EndedPart::Life => return Err(Error::sleeping(&found.note.name)),
                EndedPart::Sandbox => return Err(Error::destroyed(&found.note.name)),
            }
        }
        let used = if noted.is_some() { used_numbers(found.note.created_ms, now_ms()) } else { 0 };
        let next = of_life(GuestLife::generate(), used);
        // A task of its own starts it, so that no guest is left that no one knows.
        match run_detached(async move { begin(next, noted).await }).await {
            // Another process has just started one.
            Err(error) if error.kind() == ErrorKind::Conflict => last = Some(error),
            begun => return begun,
        }
    }
    Err(last.unwrap_or_else(|| Error::sleeping(&found.note.name)))
}

/// Returns the last number that processes may have had until now.
fn used_numbers(created_ms: i64, now_ms: i64) -> u32 {
    let lived_ms = now_ms.saturating_sub(created_ms).max(0);
    u32::try_from(lived_ms.saturating_mul(PROCESSES_PER_SECOND) / 1000)
        .unwrap_or(u32::MAX / 2)
        .min(u32::MAX / 2)
}

/// Starts a guest in the place of one that has ended, and notes it. What is left of that one is removed.
async fn begin(next: DaytonaGuest, before: Option<GuestLife>) -> Result<GuestConnection> {
    let (host, found) = (&next.host, &next.found);
    let workdir = found.note.spec.workdir.as_ref().filter(|_| !found.is_adopted);
    let workdir = workdir.map(|workdir| workdir.as_str());
    let begun = async {
        guest::begin(&next.toolbox, &next.life, workdir).await?;
        let connection = next.connect().await?;
        host.guests.change(&found.facts.id, before.as_ref(), &next.life)?;
        Ok::<_, Error>(connection)
    };
    let (begun, left) = match begun.await {
        Ok(connection) => (Ok(connection), before.as_ref()),
        Err(error) => (Err(error), Some(&next.life)),
    };
    if let Some(left) = left
        && let Err(error) = guest::leave(&next.toolbox, left).await
    {
        tracing::debug!(%error, "a guest that has ended could not be cleared away");
    }
    GuestConnection::new(next.clone(), begun?)
}

impl DaytonaGuest {
    /// Connects to the guest, and configures it if it waits for that.
    async fn connect(&self) -> Result<Connection> {
        let (mut stream, role) = self.open().await?;
        let (client_nonce, guest_nonce) = self.life.secret.nonces();
        if role == RELAY_TO_MAKER {
            let mut config = ContainerConfig::of_own_user(self.life.secret.nonces());
            config.guest.last_process_id = self.last_process_id;
            send_config(&mut stream, &config).await?;
        }
        let connection = Connection::open(stream, client_nonce, guest_nonce).await?;
        let sandbox = self.clone();
        connection.set_inquiry(Arc::new(move || {
            let sandbox = sandbox.clone();
            Box::pin(async move { sandbox.verdict().await })
        }));
        if role == RELAY_TO_MAKER {
            connection.adopt().await?;
        }
        Ok(connection)
    }

    async fn open(&self) -> Result<(DuplexStream, u8)> {
        let mut stream = terminal::open(&self.toolbox, &self.life).await?;
        let role = read_role(&mut stream).await?;
        Ok((stream, role))
    }

    /// Finds out why the stream to the sandbox ended, for the calls that were in flight.
    async fn verdict(&self) -> Verdict {
        let name = self.found.note.name.to_string();
        match self.ended().await {
            Ok(EndedPart::None) => Arc::new(lost_stream),
            Ok(EndedPart::Sandbox) => Arc::new(move || Error::destroyed(&name)),
            Ok(EndedPart::Life) => Arc::new(move || Error::sleeping(&name)),
            Ok(EndedPart::Guest) => Arc::new(move || guest_ended(&name)),
            Err(error) => unknown_end(&error),
        }
    }

    /// Makes the error for a call that can't reach the sandbox now.
    async fn refusal(&self) -> Error {
        (self.verdict().await)()
    }

    /// Finds out what has ended.
    async fn ended(&self) -> Result<EndedPart> {
        let late = |_| Error::new(ErrorKind::Unavailable, "Daytona does not say whether the sandbox lives");
        tokio::time::timeout(LOOK_PATIENCE, self.look()).await.map_err(late)?
    }

    async fn look(&self) -> Result<EndedPart> {
        match self.phase().await? {
            None => return Ok(EndedPart::Sandbox),
            Some(DaytonaPhase::Started) => {}
            Some(_) => return Ok(EndedPart::Life),
        }
        if self.host.guests.read(&self.found.facts.id)?.is_some_and(|noted| noted != self.life) {
            return Ok(EndedPart::Life);
        }
        let seen = match guest::look(&self.toolbox, &self.life).await {
            Ok(GuestTrace::Here) => EndedPart::None,
            Ok(GuestTrace::Ended | GuestTrace::Gone) => EndedPart::Guest,
            // It may have been stopped, or removed, under the question.
            Err(error) => match self.phase().await? {
                None => EndedPart::Sandbox,
                Some(DaytonaPhase::Started) => return Err(error),
                Some(_) => EndedPart::Life,
            },
        };
        Ok(seen)
    }

    /// Returns the part of its life that the sandbox is in; `None`: it is gone.
    async fn phase(&self) -> Result<Option<DaytonaPhase>> {
        let Some(facts) = self.host.client.get(&self.found.facts.id).await? else { return Ok(None) };
        match facts.phase() {
            DaytonaPhase::Failed => Err(failed(&facts)),
            phase => Ok(Some(phase)),
        }
    }
}

impl GuestConnection {
    fn new(sandbox: DaytonaGuest, connection: Connection) -> Result<Self> {
        let silent = || Error::new(ErrorKind::Setup, "the sandbox's guest does not say what protects it");
        let protections = connection.protections().ok_or_else(silent)?;
        let isolation = found(isolation(&sandbox.found.note.spec), protections);
        Ok(Self { sandbox, isolation, connection })
    }

    /// Returns the sandbox in the form that a provider gives.
    pub fn created(self) -> Created {
        let Self { sandbox, isolation, connection } = self;
        let mut info = sandbox.found.info();
        (info.isolation, info.life) = (isolation.clone(), sandbox.life.key.clone());
        let workdir = info.workdir.clone();
        let driver = LinkedDriver::new(sandbox, capabilities(), (isolation, workdir), connection);
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

#[async_trait]
impl GuestBackend for DaytonaGuest {
    fn provider(&self) -> &'static str {
        NAME
    }

    fn sandbox(&self) -> String {
        self.found.note.name.to_string()
    }

    async fn reconnect(&self) -> Result<Connection> {
        if self.host.guests.read(&self.found.facts.id)?.as_ref() != Some(&self.life) {
            return Err(self.refusal().await);
        }
        match self.connect().await {
            Ok(connection) => Ok(connection),
            // Whatever is said of the stream: the sandbox may have been stopped or removed.
            Err(error) => {
                tracing::debug!(%error, "a lost stream could not be opened again");
                Err(self.refusal().await)
            }
        }
    }

    async fn destroy(&self) -> Result<()> {
        removal::remove(&self.host, &self.found.facts, self.found.is_adopted).await
    }

    async fn abandon(&self) -> Result<()> {
        self.destroy().await
    }

    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_with_a_sandbox_age_and_end_where_half_of_them_are_used() {
        assert_eq!(used_numbers(1000, 3000), 128);
        assert_eq!(used_numbers(3000, 1000), 0);
        assert_eq!(used_numbers(0, i64::MAX), u32::MAX / 2);
    }
}
