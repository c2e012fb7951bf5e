//! The provider: sandboxes are found by their names and labels, and adopted ones by their notes.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::{KeyedTurns, now_ms, run_detached};
use eyot::{
    Capabilities, Created, Error, ErrorKind, Isolation, NetworkMode, Result, SandboxId, SandboxInfo,
    SandboxName, SandboxProvider, SandboxSpec, ValidSpec,
};
use uuid::Uuid;

use super::NAME;
use super::bring::{WantedPhase, bring, failed};
use super::client::{DaytonaClient, NewDaytonaSandbox};
use super::create::{check, make};
use super::facts::{DaytonaFacts, DaytonaPhase};
use super::guest_notes::GuestNotes;
use super::host::DaytonaHost;
use super::link::connected;
use super::options::DaytonaOptions;
use super::record::{FoundDaytonaSandbox, capabilities, isolation, labels};
use super::removal::remove;
use crate::e2b::adopt::{AdoptionNotes, refuse_adopted};
use crate::e2b::create::{ReservedNames, in_use, refuse_taken};
use crate::e2b::record::SandboxNote;

/// The directory in which the commands of an adopted sandbox start: the home of the user of the vendor's own snapshots is not
/// in every one, and this is.
const WORKDIR: &str = "/tmp";
/// The folder for the notes of guests, in that of the provider.
const GUESTS: &str = "guests";

/// The hint where a sandbox that was handed in would be put to sleep or woken.
const WHO_CHANGES: &str = "who has made the sandbox at Daytona stops and starts it";

/// The provider.
#[derive(Debug)]
pub struct DaytonaProvider {
    host: Arc<DaytonaHost>,
    capabilities: Capabilities,
    turns: KeyedTurns,
    names: ReservedNames,
}

impl DaytonaProvider {
    /// Makes the provider. Nothing is asked yet.
    ///
    /// # Errors
    /// `invalid` for an address that is none, `internal` if this machine can make no requests.
    pub fn new(options: DaytonaOptions) -> Result<Arc<Self>> {
        let adoptions = AdoptionNotes { folder: options.notes.clone(), workdir: WORKDIR };
        let guests = GuestNotes(options.notes.join(GUESTS));
        let host = Arc::new(DaytonaHost { client: DaytonaClient::new(options)?, adoptions, guests });
        let (turns, names) = (KeyedTurns::default(), ReservedNames::default());
        Ok(Arc::new(Self { host, capabilities: capabilities(), turns, names }))
    }

    fn client(&self) -> &DaytonaClient {
        &self.host.client
    }

    fn owner(&self) -> &str {
        &self.client().options.owner
    }

    async fn own(&self) -> Result<Vec<FoundDaytonaSandbox>> {
        let query = SandboxNote::query(self.owner(), "");
        let mut own = Vec::new();
        for facts in self.client().list(&query[..1]).await? {
            own.extend(self.recognise(facts)?.filter(|found| !found.is_adopted));
        }
        Ok(own)
    }

    /// Counts the sandboxes that Daytona has of this owner.
    pub(super) async fn count(&self) -> Result<usize> {
        Ok(self.own().await?.len())
    }

    /// Lists Daytona's ids of sandboxes that are not ours.
    pub(super) async fn foreign(&self) -> Result<Vec<String>> {
        let mut foreign = Vec::new();
        for facts in self.client().list(&[]).await? {
            let id = facts.id.clone();
            if self.recognise(facts)?.is_none() {
                foreign.push(id);
            }
        }
        foreign.sort();
        Ok(foreign)
    }

    /// Adopts a sandbox by Daytona's id. Returns its name and its id here.
    ///
    /// # Errors
    /// `invalid` for what no id is, `not_found`, `conflict` for a sandbox that is known here.
    pub async fn adopt(&self, daytona_id: &str) -> Result<(SandboxName, SandboxId)> {
        let missing = || Error::new(ErrorKind::NotFound, "Daytona does not have it");
        // An id that no note can have is not asked for.
        self.host.adoptions.read(daytona_id)?;
        let facts = self.client().named(daytona_id).await?.ok_or_else(missing)?;
        if facts.id != daytona_id {
            // The vendor takes a name, too, which another sandbox can have later.
            return Err(missing().with_hint("it must be the sandbox' id, not its name"));
        }
        if self.recognise(facts)?.is_some() {
            return Err(Error::new(ErrorKind::Conflict, "it is known here already"));
        }
        let note = self.host.adoptions.note(daytona_id)?;
        Ok((note.name, note.id))
    }

    /// Returns what there is here about a sandbox of Daytona; `None`: it is not ours.
    fn recognise(&self, facts: DaytonaFacts) -> Result<Option<FoundDaytonaSandbox>> {
        // One that was adopted stays so, whatever its labels say since.
        let (note, is_adopted) = match self.host.adoptions.read(&facts.id)? {
            Some(note) => (Some(note), true),
            None => (SandboxNote::read(self.owner(), &facts.labels), false),
        };
        let with_variables = |note: SandboxNote| note.with_variables(facts.variables());
        Ok(note.map(with_variables).map(|note| FoundDaytonaSandbox { note, facts, is_adopted }))
    }

    /// Finds a sandbox by its id or name.
    async fn find(&self, key: &str) -> Result<FoundDaytonaSandbox> {
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no sandbox `{key}`"));
        if SandboxId::parse(key).is_err() && SandboxName::parse(key).is_err() {
            return Err(missing());
        }
        if let Some(found) = self.find_own(key).await? {
            return Ok(found);
        }
        for id in self.host.adoptions.all()? {
            let is_it = self.host.adoptions.read(&id)?.is_some_and(|note| note.is(key));
            if is_it && let Some(facts) = self.client().get(&id).await? {
                return self.recognise(facts)?.ok_or_else(missing);
            }
        }
        Err(missing())
    }

    /// Finds the first of the sandboxes with an id or a name that were made here: of creates of one id, which the vendor does
    /// not know, there may be more than one for a moment.
    async fn find_own(&self, key: &str) -> Result<Option<FoundDaytonaSandbox>> {
        let is_it = |found: &FoundDaytonaSandbox| !found.is_adopted && found.note.is(key);
        // The vendor knows sandboxes by their names at once; a list may be late.
        if let Some(facts) = self.client().named(key).await?
            && let Some(found) = self.recognise(facts)?.filter(is_it)
        {
            return Ok(Some(found));
        }
        let mut listed = Vec::new();
        for facts in self.client().list(&SandboxNote::query(self.owner(), key)).await? {
            listed.extend(self.recognise(facts)?.filter(is_it));
        }
        listed.sort_by(|one, other| one.place().cmp(&other.place()));
        for found in listed {
            // A list leaves the variables out, and may tell what was.
            if let Some(facts) = self.client().get(&found.facts.id).await?
                && let Some(found) = self.recognise(facts)?.filter(is_it)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Refuses a create when another process has made a sandbox of the same id just before. Daytona keeps names unique, and
    /// knows nothing of ids.
    async fn refuse_later(&self, spec: &ValidSpec, daytona_id: &str) -> Result<()> {
        match self.find_own(spec.id().as_str()).await? {
            Some(first) if first.facts.id != daytona_id => Err(in_use(spec.id().as_str())),
            _ => Ok(()),
        }
    }

    fn request(&self, spec: &ValidSpec, note: &SandboxNote, create: &str) -> Result<NewDaytonaSandbox> {
        let mut variables = spec.spec().env.clone();
        variables.extend(spec.spec().manifest.env.clone());
        Ok(NewDaytonaSandbox {
            name: spec.name().to_string(),
            snapshot: spec.spec().image.clone().or_else(|| self.client().options.snapshot.clone()),
            labels: labels(note, self.owner(), create)?,
            variables,
            blocks_network: spec.spec().network == NetworkMode::None,
        })
    }
}

#[async_trait]
impl SandboxProvider for DaytonaProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(isolation(&SandboxSpec::default()))
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        check(spec)?;
        let names = self.names.reserve(spec)?;
        for key in [spec.id().as_str(), spec.name().as_str()] {
            refuse_taken(key, self.find(key).await)?;
        }
        let (note, create) = (SandboxNote::new(spec, now_ms()), Uuid::new_v4().to_string());
        let new = self.request(spec, &note, &create)?;
        // A create whose caller leaves goes on until it is known what there is to remove.
        let made = tokio::spawn(make(Arc::clone(&self.host), new, create, note, names)).await;
        let (unfinished, connection) = made.map_err(|error| {
            Error::new(ErrorKind::Internal, "create sandbox: a task ended early").with_source(error)
        })??;
        if let Err(refused) = self.refuse_later(spec, &unfinished.facts.id).await {
            return Err(unfinished.undone(refused).await);
        }
        unfinished.finish();
        let mut created = connection.created();
        // What is recorded lacks what the caller still has.
        created.info.spec = spec.spec().clone();
        Ok(created)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let found = self.find(id_or_name).await?;
        match found.facts.phase() {
            DaytonaPhase::Started => Ok(connected(&self.host, found).await?.created()),
            DaytonaPhase::Gone => Err(Error::destroyed(&found.note.name)),
            DaytonaPhase::Failed => Err(failed(&found.facts)),
            DaytonaPhase::Stopped | DaytonaPhase::Stopping | DaytonaPhase::Changing => {
                Err(Error::sleeping(&found.note.name))
            }
        }
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        let found = self.find(id_or_name).await?;
        refuse_adopted(found.is_adopted, "sleep", NAME, WHO_CHANGES)?;
        // Who leaves while the turn is awaited has begun nothing; what has begun goes on to its end.
        let (host, turn) = (Arc::clone(&self.host), self.turns.take(&found.facts.id).await);
        run_detached(async move {
            let _turn = turn;
            let (id, name) = (found.facts.id.as_str(), found.note.name.as_str());
            bring(&host.client, (id, name), WantedPhase::Stopped).await.map(drop)
        })
        .await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let found = self.find(id_or_name).await?;
        if found.is_stopped() {
            refuse_adopted(found.is_adopted, "wake", NAME, WHO_CHANGES)?;
        }
        let (host, turn) = (Arc::clone(&self.host), self.turns.take(&found.facts.id).await);
        let connection = run_detached(async move {
            let _turn = turn;
            let (id, name) = (found.facts.id.clone(), found.note.name.to_string());
            let facts = if found.is_adopted {
                let facts = host.client.get(&id).await?.ok_or_else(|| Error::destroyed(&name))?;
                if facts.phase() != DaytonaPhase::Started {
                    refuse_adopted(found.is_adopted, "wake", NAME, WHO_CHANGES)?;
                }
                facts
            } else {
                bring(&host.client, (&id, &name), WantedPhase::Started).await?
            };
            connected(&host, FoundDaytonaSandbox { facts, ..found }).await
        });
        Ok(connection.await?.created())
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let mut all = self.own().await?;
        for id in self.host.adoptions.all()? {
            if let Some(facts) = self.client().get(&id).await? {
                all.extend(self.recognise(facts)?);
            }
        }
        all.sort_by_key(FoundDaytonaSandbox::age);
        Ok(all.iter().map(FoundDaytonaSandbox::info).collect())
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        Ok(self.find(id_or_name).await?.info())
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let found = self.find(id_or_name).await?;
        remove(&self.host, &found.facts, found.is_adopted).await
    }
}
