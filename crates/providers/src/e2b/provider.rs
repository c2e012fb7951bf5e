//! The provider: sandboxes are found by their metadata, and adopted ones by their notes.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::{KeyedTurns, now_ms};
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, NetworkMode, Result, SandboxId,
    SandboxInfo, SandboxName, SandboxProvider, SandboxSpec, ValidSpec,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::NAME;
use super::adopt::{AdoptionNotes, refuse_adopted};
use super::api::{EnvdAccess, ListedSandbox, State};
use super::client::{CreateCall, E2bClient};
use super::create::{ReservedNames, check, in_use, make, refuse_taken};
use super::driver::ScriptedDriver;
use super::envd::SystemUser;
use super::link::Link;
use super::options::E2bOptions;
use super::record::{OWNER, SandboxNote, isolation};
use super::script::life_after;

/// The directory in which the commands of an adopted sandbox start: where E2B's own do by default.
const WORKDIR: &str = "/home/user";

/// Returns what every sandbox can do.
pub fn capabilities() -> Capabilities {
    use Capability::{Append, Argv, AtomicWrite, Pty, RangedRead, Reopen, Shell, Sleep, Symlinks, Tar};
    Capabilities::new([Append, Argv, AtomicWrite, Pty, RangedRead, Reopen, Shell, Sleep, Symlinks, Tar])
}

/// The hint where a sandbox that was handed in would be put to sleep or woken.
const WHO_CHANGES: &str = "who has made the sandbox at E2B pauses and resumes it";

/// The provider.
#[derive(Debug)]
pub struct E2bProvider {
    client: E2bClient,
    notes: AdoptionNotes,
    capabilities: Capabilities,
    turns: KeyedTurns,
    names: ReservedNames,
}

/// A sandbox that was found.
struct FoundSandbox {
    record: SandboxNote,
    e2b_id: String,
    state: State,
    started: Option<Timestamp>,
    is_adopted: bool,
}

impl E2bProvider {
    /// Makes the provider. Nothing is asked yet.
    ///
    /// # Errors
    /// `internal` if this machine can make no requests.
    pub fn new(options: E2bOptions) -> Result<Arc<Self>> {
        let notes = AdoptionNotes { folder: options.notes.clone(), workdir: WORKDIR };
        let (turns, names) = (KeyedTurns::default(), ReservedNames::default());
        Ok(Arc::new(Self {
            client: E2bClient::new(options)?,
            notes,
            capabilities: capabilities(),
            turns,
            names,
        }))
    }

    fn owner(&self) -> &str {
        &self.client.options.owner
    }

    /// Counts the sandboxes that E2B has of this owner.
    pub(super) async fn count(&self) -> Result<usize> {
        Ok(self.client.list(&[(OWNER, self.owner())]).await?.len())
    }

    /// Lists E2B's ids of sandboxes that are not ours.
    pub(super) async fn foreign(&self) -> Result<Vec<String>> {
        let mut foreign = Vec::new();
        for listed in self.client.list(&[]).await? {
            if self.recognise(&listed)?.is_none() {
                foreign.push(listed.id);
            }
        }
        foreign.sort();
        Ok(foreign)
    }

    /// Adopts a sandbox by E2B's id. Returns its name and its id here.
    pub(super) async fn adopt(&self, e2b_id: &str) -> Result<(SandboxName, SandboxId)> {
        let missing = || Error::new(ErrorKind::NotFound, "E2B does not have it");
        // An id that no note can have is not asked for.
        self.notes.read(e2b_id)?;
        let (listed, _) = self.client.get(e2b_id).await?.ok_or_else(missing)?;
        if self.recognise(&listed)?.is_some() {
            return Err(Error::new(ErrorKind::Conflict, "it is known here already"));
        }
        let record = self.notes.note(&listed.id)?;
        Ok((record.name, record.id))
    }

    /// Returns what there is here about a sandbox of E2B; `None`: it is not ours.
    fn recognise(&self, listed: &ListedSandbox) -> Result<Option<FoundSandbox>> {
        let metadata = listed.metadata.clone().unwrap_or_default();
        let own = SandboxNote::read(self.owner(), &metadata);
        let (record, is_adopted) = match own {
            Some(record) => (Some(record), false),
            None => (self.notes.read(&listed.id)?, true),
        };
        let (e2b_id, state, started) = (listed.id.clone(), listed.state, listed.started());
        Ok(record.map(|record| FoundSandbox { record, e2b_id, state, started, is_adopted }))
    }

    /// Finds a sandbox by its id or name.
    async fn find(&self, key: &str) -> Result<FoundSandbox> {
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no sandbox `{key}`"));
        if SandboxId::parse(key).is_err() && SandboxName::parse(key).is_err() {
            return Err(missing());
        }
        match self.find_first(key).await? {
            Some(found) => Ok(found),
            None => self.find_adopted(key).await?.ok_or_else(missing),
        }
    }

    /// Finds the first of the sandboxes with an id or a name that were made here: while creates of one name race, there may
    /// be more than one.
    async fn find_first(&self, key: &str) -> Result<Option<FoundSandbox>> {
        let mut all = Vec::new();
        for listed in self.client.list(&SandboxNote::query(self.owner(), key)).await? {
            all.extend(self.recognise(&listed)?.filter(|found| found.record.is(key)));
        }
        Ok(all.into_iter().min_by(|one, other| one.place().cmp(&other.place())))
    }

    async fn find_adopted(&self, key: &str) -> Result<Option<FoundSandbox>> {
        for id in self.notes.all()? {
            let is_it = self.notes.read(&id)?.is_some_and(|record| record.is(key));
            if is_it && let Some((listed, _)) = self.client.get(&id).await? {
                return self.recognise(&listed);
            }
        }
        Ok(None)
    }

    fn created(&self, found: FoundSandbox, link: Arc<Link>) -> Created {
        let mut info = found.record.info(found.state);
        info.life = link.life.clone();
        let driver = ScriptedDriver {
            sandbox: link,
            capabilities: self.capabilities.clone(),
            isolation: info.isolation.clone(),
            workdir: info.workdir.clone(),
            adopted: found.is_adopted.then(|| self.notes.clone()),
        };
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

impl FoundSandbox {
    /// Returns the place among sandboxes of one name. E2B notes a start when it begins to list the sandbox, so a create that
    /// does not see another one yet is before it, whenever either began.
    fn place(&self) -> (Option<Timestamp>, &str) {
        (self.started, &self.e2b_id)
    }

    /// Returns what puts sandboxes in the order of their creates.
    fn age(&self) -> (i64, SandboxId) {
        (self.record.created_ms, self.record.id.clone())
    }
}

#[async_trait]
impl SandboxProvider for E2bProvider {
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
        let record = SandboxNote::new(spec, now_ms());
        let options = &self.client.options;
        let mut variables = spec.spec().env.clone();
        variables.extend(spec.spec().manifest.env.clone());
        let new = CreateCall {
            template: spec.spec().image.clone().unwrap_or_else(|| options.template.clone()),
            timeout_s: options.timeout_s,
            metadata: record.metadata(self.owner())?,
            variables,
            internet: spec.spec().network == NetworkMode::Egress,
            idempotency_key: Uuid::new_v4().to_string(),
        };
        // A create whose caller leaves goes on until it is known what there is to kill.
        let made = tokio::spawn(make(self.client.clone(), new, spec.clone(), names)).await;
        let (mut made, link) = made.map_err(|error| {
            Error::new(ErrorKind::Internal, "create sandbox: a task ended early").with_source(error)
        })??;
        let e2b_id = made.e2b_id.clone();
        let mut record = record;
        record.spec = spec.spec().clone();
        let found = FoundSandbox { record, e2b_id, state: State::Running, started: None, is_adopted: false };
        if let Err(refused) = self.refuse_later(spec, &found.e2b_id).await {
            // A failed create has left nothing when it is told.
            self.client.kill(&made.e2b_id).await?;
            made.is_done = true;
            return Err(refused);
        }
        made.is_done = true;
        Ok(self.created(found, link))
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let mut found = self.find(id_or_name).await?;
        let gone = || Error::destroyed(&found.record.name);
        let (listed, session): (ListedSandbox, EnvdAccess) =
            self.client.get(&found.e2b_id).await?.ok_or_else(gone)?;
        if listed.state == State::Paused {
            return Err(Error::sleeping(&found.record.name));
        }
        let mut link = Link::new(self.client.clone(), found.record.name.to_string(), &session)?;
        let values: BTreeMap<String, String> = link.variables().await?;
        found.record = found.record.with_variables(&values);
        link.life = life_after(&link, "", &[], SystemUser::Own).await?;
        Ok(self.created(found, Arc::new(link)))
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        let found = self.find(id_or_name).await?;
        refuse_adopted(found.is_adopted, "sleep", NAME, WHO_CHANGES)?;
        let _turn = self.turns.take(&found.e2b_id).await;
        self.client.pause(&found.e2b_id).await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let found = self.find(id_or_name).await?;
        let _turn = self.turns.take(&found.e2b_id).await;
        // It may have been put to sleep while the turn was awaited.
        let now = self.find(id_or_name).await?;
        if now.state == State::Paused {
            refuse_adopted(now.is_adopted, "wake", NAME, WHO_CHANGES)?;
            self.client.connect(&now.e2b_id, self.client.options.timeout_s).await?;
        }
        self.open(id_or_name).await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let mut all = Vec::new();
        for listed in self.client.list(&[(OWNER, self.owner())]).await? {
            all.extend(self.recognise(&listed)?);
        }
        for id in self.notes.all()? {
            if let Some((listed, _)) = self.client.get(&id).await? {
                all.extend(self.recognise(&listed)?);
            }
        }
        all.sort_by_key(FoundSandbox::age);
        Ok(all.into_iter().map(|found| found.record.info(found.state)).collect())
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let found = self.find(id_or_name).await?;
        Ok(found.record.info(found.state))
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let found = self.find(id_or_name).await?;
        if found.is_adopted {
            self.notes.forget(&found.e2b_id)
        } else {
            self.client.kill(&found.e2b_id).await
        }
    }
}

impl E2bProvider {
    /// Refuses a create when another process has made a sandbox of the same name or id just before. E2B keeps neither
    /// unique, so of two creates at least one sees the other, and both agree which is the first.
    async fn refuse_later(&self, spec: &ValidSpec, e2b_id: &str) -> Result<()> {
        for key in [spec.id().as_str(), spec.name().as_str()] {
            if self.find_first(key).await?.is_some_and(|first| first.e2b_id != e2b_id) {
                return Err(in_use(key));
            }
        }
        Ok(())
    }
}
