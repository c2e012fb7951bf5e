//! Making a sandbox: what is refused before, and what is undone if it can't be finished.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, ValidSpec};

use super::NAME;
use super::bring::{self, WantedPhase, bring};
use super::client::{DaytonaClient, NewDaytonaSandbox};
use super::facts::DaytonaFacts;
use super::host::DaytonaHost;
use super::link::{GuestConnection, connected};
use super::record::{FoundDaytonaSandbox, create_query, is_of_create, isolation};
use crate::e2b::create::{Reservation, in_use, refuse_more};
use crate::e2b::record::SandboxNote;
use crate::e2b::vendor::FIRST_WAIT;

/// The fields of a spec that are honoured. Limits are the snapshot's: they are reported as not enforced, and refused where
/// they are required.
const HONOURED: [&str; 5] = ["image", "limits", "network", "require", "security.drop_capabilities"];
/// The looks for what a create without an answer has made.
const LOOKS: u32 = 5;

/// Refuses a spec that asks for more than Daytona has.
pub(super) fn check(spec: &ValidSpec) -> Result<()> {
    refuse_more(spec, NAME, &HONOURED, &isolation(spec.spec()))
}

/// A sandbox that is being made. It is removed when it is dropped before it is done.
pub(super) struct UnfinishedDaytonaSandbox {
    host: Arc<DaytonaHost>,
    pub facts: DaytonaFacts,
    is_done: bool,
    _names: Reservation,
}

impl UnfinishedDaytonaSandbox {
    pub fn finish(mut self) {
        self.is_done = true;
    }

    /// Removes what was made, and returns the error of the create: a failed create has left nothing when it is told.
    pub async fn undone(mut self, error: Error) -> Error {
        let id = self.facts.id.clone();
        match bring::remove(&self.host.client, &id).await.and_then(|()| self.host.guests.forget(&id)) {
            Ok(()) => {
                self.is_done = true;
                error
            }
            Err(left) => {
                let message = format!("create sandbox: it failed, and `{id}` could not be removed: {left}");
                Error::new(ErrorKind::Unavailable, message)
                    .with_hint("Daytona's list shows it")
                    .with_source(error)
            }
        }
    }
}

impl Drop for UnfinishedDaytonaSandbox {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (host, id) = (Arc::clone(&self.host), self.facts.id.clone());
        runtime.spawn(async move {
            if let Err(error) = bring::remove(&host.client, &id).await.and_then(|()| host.guests.forget(&id)) {
                tracing::warn!(%error, id, "a sandbox of Daytona's that was not finished could not be removed");
            }
        });
    }
}

/// Makes a sandbox, with its guest. `create` is the text of this create alone in the labels.
pub(super) async fn make(
    host: Arc<DaytonaHost>,
    new: NewDaytonaSandbox,
    create: String,
    note: SandboxNote,
    names: Reservation,
) -> Result<(UnfinishedDaytonaSandbox, GuestConnection)> {
    let name = note.name.to_string();
    let facts = asked_for(&host.client, &new, &create).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => in_use(&name).with_source(error),
        _ => error.context("create sandbox"),
    })?;
    let unfinished = UnfinishedDaytonaSandbox { host, facts, is_done: false, _names: names };
    let made = async {
        let facts =
            bring(&unfinished.host.client, (&unfinished.facts.id, &name), WantedPhase::Started).await?;
        connected(&unfinished.host, FoundDaytonaSandbox { note, facts, is_adopted: false }).await
    };
    match made.await {
        Ok(connection) => Ok((unfinished, connection)),
        Err(error) => Err(unfinished.undone(error.context("create sandbox")).await),
    }
}

/// Asks for a sandbox once. If the answer is lost, it is looked for.
async fn asked_for(client: &DaytonaClient, new: &NewDaytonaSandbox, create: &str) -> Result<DaytonaFacts> {
    let lost = match client.create(new).await {
        Err(error) if error.kind() != ErrorKind::Permission && !error.had_no_effect() => error,
        asked => return asked,
    };
    // A refusal may come after the sandbox was made, such as one that did not start in time.
    let is_refused = lost.kind() != ErrorKind::Unavailable;
    let mut wait = FIRST_WAIT;
    for _ in 0..LOOKS {
        match made_by(client, &new.name, create).await {
            Ok(Some(facts)) => return Ok(facts),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "look for what a create without an answer has made"),
        }
        if is_refused {
            return Err(lost);
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    Err(Error::new(ErrorKind::Unavailable, lost.to_string())
        .with_hint("Daytona may still make the sandbox; `eyot --provider daytona ls` shows it then")
        .with_source(lost))
}

/// Finds what a create has made, and nothing else.
async fn made_by(client: &DaytonaClient, name: &str, create: &str) -> Result<Option<DaytonaFacts>> {
    let named = client.named(name).await?.filter(|facts| is_of_create(facts, create));
    if named.is_some() {
        return Ok(named);
    }
    let listed = client.list(&create_query(create)).await?;
    Ok(listed.into_iter().find(|facts| is_of_create(facts, create)))
}
