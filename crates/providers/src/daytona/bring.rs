//! Bringing a sandbox into a state: the change is asked for until the API says that it is there. Somebody else may change it
//! at the same time.

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use tokio::time::Instant;

use super::client::DaytonaClient;
use super::facts::{DaytonaFacts, DaytonaPhase};

/// The longest wait for a state: an archived sandbox is fetched first.
const PATIENCE: Duration = Duration::from_secs(300);
/// The longest time for which a refusal of a start or stop is taken for one of a change that is under way.
const CHANGE_PATIENCE: Duration = Duration::from_secs(60);
/// The pause before the second look; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A state that a sandbox is brought into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedPhase {
    Started,
    Stopped,
}

/// Brings a sandbox into a state, and returns the facts about it then. `name` is for errors.
pub(super) async fn bring(
    client: &DaytonaClient,
    (id, name): (&str, &str),
    wanted: WantedPhase,
) -> Result<DaytonaFacts> {
    let (mut pause, began, mut refused) = (FIRST_PAUSE, Instant::now(), None);
    loop {
        let facts = client.get(id).await?.ok_or_else(|| Error::destroyed(name))?;
        let asked = match (facts.phase(), wanted) {
            (DaytonaPhase::Started, WantedPhase::Started) | (DaytonaPhase::Stopped, WantedPhase::Stopped) => {
                return Ok(facts);
            }
            (DaytonaPhase::Failed, _) => return Err(failed(&facts)),
            (DaytonaPhase::Stopped, WantedPhase::Started) => client.ask(id, "start").await,
            (DaytonaPhase::Started, WantedPhase::Stopped) => client.ask(id, "stop").await,
            _ => Ok(()),
        };
        match asked {
            Ok(()) => {}
            Err(error) if is_of_another_change(&error) => {
                if error.kind() == ErrorKind::Invalid && began.elapsed() >= CHANGE_PATIENCE {
                    return Err(error);
                }
                refused = Some(error);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::destroyed(name)),
            Err(error) => return Err(error),
        }
        if began.elapsed() >= PATIENCE {
            let change = if wanted == WantedPhase::Started { "start" } else { "stop" };
            return Err(late(change, refused));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Removes a sandbox, and returns when it is gone. One that was gone before is fine.
pub(super) async fn remove(client: &DaytonaClient, id: &str) -> Result<()> {
    let (mut pause, began, mut is_asked, mut refused) = (FIRST_PAUSE, Instant::now(), false, None);
    // Once it is gone, its id may be another sandbox' name.
    while !client.is_removed(id).await? {
        if !is_asked {
            match client.delete(id).await {
                Ok(()) => is_asked = true,
                Err(error) if is_of_another_change(&error) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        if began.elapsed() >= PATIENCE {
            return Err(late("remove", refused));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
    Ok(())
}

/// Tells whether a refusal may mean that another change is under way: the vendor has sent 409 and 400 for that.
fn is_of_another_change(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid)
}

/// Makes the error about a sandbox that can't be used.
pub(super) fn failed(facts: &DaytonaFacts) -> Error {
    let reason =
        crate::e2b::vendor::clean_text(facts.error_reason.as_deref().unwrap_or("it does not say why"));
    Error::new(ErrorKind::Setup, format!("Daytona could not run the sandbox: {reason}"))
}

fn late(change: &str, refused: Option<Error>) -> Error {
    let message = format!("Daytona did not {change} it within {} s", PATIENCE.as_secs());
    let error = Error::new(ErrorKind::Unavailable, message);
    match refused {
        Some(refused) => error.with_source(refused),
        None => error,
    }
}
