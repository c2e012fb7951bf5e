//! The provider: sandboxes are found by their metadata, and adopted ones by their notes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use eyot::internal::now_ms;
use eyot::{
    Capabilities, Capability, Created, EgressRules, Error, ErrorKind, Isolation, NetworkMode, Result,
    SandboxId, SandboxInfo, SandboxName, SandboxOperationUnsupported, SandboxProvider, SandboxSpec,
    ValidSpec,
};
use uuid::Uuid;

use super::NAME;
use super::adopt::AdoptionNotes;
use super::api::{EnvdAccess, Listed, State};
use super::client::{CreateCall, E2bClient};
use super::driver::E2bDriver;
use super::envd::SystemUser;
use super::link::Link;
use super::options::E2bOptions;
use super::record::{OWNER, SandboxNote, isolation};
use super::script::life_after;

/// The fields of a spec that are honoured. Limits are the template's: they are reported as not enforced, and refused
/// where they are required.
const HONOURED: [&str; 5] = ["image", "limits", "network", "require", "security.drop_capabilities"];
/// Makes a directory for the sandbox's user.
const MAKE_WORKDIR: &str = "mkdir -p -- \"$1\" && chown user: -- \"$1\" || exit\n";

/// Returns what every sandbox can do.
pub fn capabilities() -> Capabilities {
    use Capability::{Append, Argv, AtomicWrite, Pty, RangedRead, Reopen, Shell, Sleep, Symlinks, Tar};
    Capabilities::new([Append, Argv, AtomicWrite, Pty, RangedRead, Reopen, Shell, Sleep, Symlinks, Tar])
}

/// The provider.
#[derive(Debug)]
pub struct E2bProvider {
    client: E2bClient,
    notes: AdoptionNotes,
    capabilities: Capabilities,
    /// The names and ids that creates of this process are about to take.
    reserved: Arc<Mutex<BTreeSet<String>>>,
}

/// A sandbox that was found.
struct FoundSandbox {
    record: SandboxNote,
    e2b_id: String,
    state: State,
    is_adopted: bool,
}

impl E2bProvider {
    /// Makes the provider. Nothing is asked yet.
    ///
    /// # Errors
    /// `internal` if this machine can make no requests.
    pub fn new(options: E2bOptions) -> Result<Arc<Self>> {
        let notes = AdoptionNotes { folder: options.notes.clone() };
        let (capabilities, reserved) = (capabilities(), Arc::default());
        Ok(Arc::new(Self { client: E2bClient::new(options)?, notes, capabilities, reserved }))
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
            if self.found(&listed)?.is_none() {
                foreign.push(listed.id);
            }
        }
        foreign.sort();
        Ok(foreign)
    }

    /// Adopts a sandbox by E2B's id. Returns its name and its id here.
    pub(super) async fn adopt(&self, e2b_id: &str) -> Result<(SandboxName, SandboxId)> {
        let missing = || Error::new(ErrorKind::NotFound, "E2B does not have it");
        let (listed, _) = self.client.get(e2b_id).await?.ok_or_else(missing)?;
        if self.found(&listed)?.is_some() {
            return Err(Error::new(ErrorKind::Conflict, "it is known here already"));
        }
        let record = self.notes.note(e2b_id)?;
        Ok((record.name, record.id))
    }

    fn found(&self, listed: &Listed) -> Result<Option<FoundSandbox>> {
        let metadata = listed.metadata.clone().unwrap_or_default();
        let own = SandboxNote::read(self.owner(), &metadata);
        let (record, is_adopted) = match own {
            Some(record) => (Some(record), false),
            None => (self.notes.read(&listed.id)?, true),
        };
        let of = |record| FoundSandbox { record, e2b_id: listed.id.clone(), state: listed.state, is_adopted };
        Ok(record.map(of))
    }

    /// Finds a sandbox by its id or name.
    async fn find(&self, key: &str) -> Result<FoundSandbox> {
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no sandbox `{key}`"));
        if SandboxId::parse(key).is_err() && SandboxName::parse(key).is_err() {
            return Err(missing());
        }
        let listed = self.client.list(&SandboxNote::query(self.owner(), key)).await?;
        let mut found = Vec::new();
        for listed in &listed {
            found.extend(self.found(listed)?.filter(|found| found.is(key)));
        }
        found.sort_by_key(FoundSandbox::age);
        if let Some(found) = found.into_iter().next() {
            return Ok(found);
        }
        self.find_adopted(key).await?.ok_or_else(missing)
    }

    async fn find_adopted(&self, key: &str) -> Result<Option<FoundSandbox>> {
        for id in self.notes.all()? {
            let is_it = self.notes.read(&id)?.is_some_and(|record| record.is(key));
            if is_it && let Some((listed, _)) = self.client.get(&id).await? {
                return self.found(&listed);
            }
        }
        Ok(None)
    }

    fn reserve(&self, spec: &ValidSpec) -> Result<Reservation> {
        let keys = [spec.id().to_string(), spec.name().to_string()];
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = keys.iter().find(|key| reserved.contains(*key)) {
            return Err(in_use(taken));
        }
        reserved.extend(keys.clone());
        drop(reserved);
        Ok(Reservation { reserved: Arc::clone(&self.reserved), keys })
    }

    async fn refuse_taken(&self, spec: &ValidSpec) -> Result<()> {
        for key in [spec.id().as_str(), spec.name().as_str()] {
            match self.find(key).await {
                Ok(_) => return Err(in_use(key)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn created(&self, found: FoundSandbox, link: Arc<Link>) -> Created {
        let mut info = found.record.info(found.state);
        info.life = link.life.clone();
        let driver = E2bDriver {
            link,
            capabilities: self.capabilities.clone(),
            isolation: info.isolation.clone(),
            workdir: info.workdir.clone(),
            adopted: found.is_adopted.then(|| self.notes.clone()),
        };
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

impl SandboxNote {
    fn is(&self, key: &str) -> bool {
        self.id.as_str() == key || self.name.as_str() == key
    }
}

impl FoundSandbox {
    fn is(&self, key: &str) -> bool {
        self.record.is(key)
    }

    /// Returns what puts sandboxes in the order of their creates. Two creates of one name agree about it: the clock is the
    /// creator's, and equal times are told apart by the id.
    fn age(&self) -> (i64, SandboxId) {
        (self.record.created_ms, self.record.id.clone())
    }
}

/// Refuses to change the life of a sandbox that was handed in.
fn refuse_adopted(operation: &str, found: &FoundSandbox) -> Result<()> {
    if !found.is_adopted {
        return Ok(());
    }
    let error = Error::from(SandboxOperationUnsupported::new(operation, NAME, &["adopted"]));
    Err(error.with_hint("who has made the sandbox at E2B pauses and resumes it"))
}

fn in_use(key: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("create sandbox: `{key}` is in use"))
}

/// Names that a create is about to take.
struct Reservation {
    reserved: Arc<Mutex<BTreeSet<String>>>,
    keys: [String; 2],
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        self.keys.iter().for_each(|key| {
            reserved.remove(key);
        });
    }
}

/// Refuses a spec that asks for more than E2B has.
fn check(spec: &ValidSpec) -> Result<()> {
    spec.refuse_all_but(NAME, &HONOURED)?;
    let spec = spec.spec();
    let refused = |options: &[&str]| Err(SandboxOperationUnsupported::new("create", NAME, options).into());
    if matches!(spec.network, NetworkMode::Host | NetworkMode::Bridge) {
        return refused(&["network"]);
    }
    if spec.egress != EgressRules::default() {
        return refused(&["egress"]);
    }
    if spec.security.drop_capabilities != SandboxSpec::default().security.drop_capabilities {
        return refused(&["security.drop_capabilities"]);
    }
    let isolation = isolation(spec);
    match spec.require.iter().find(|requirement| !isolation.holds(**requirement)) {
        Some(_) => refused(&["require"]),
        None => Ok(()),
    }
}

/// A sandbox that is being made. It is killed when it is dropped before it is done.
struct UnfinishedCreate {
    client: E2bClient,
    e2b_id: String,
    is_done: bool,
    _names: Reservation,
}

impl Drop for UnfinishedCreate {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (client, e2b_id) = (self.client.clone(), self.e2b_id.clone());
        runtime.spawn(async move {
            if let Err(error) = client.kill(&e2b_id).await {
                tracing::warn!(%error, e2b_id, "a sandbox of E2B's that was not finished could not be killed");
            }
        });
    }
}

/// Makes a sandbox, with its working directory.
async fn make(
    client: E2bClient,
    new: CreateCall,
    spec: ValidSpec,
    names: Reservation,
) -> Result<(UnfinishedCreate, Arc<Link>)> {
    let session = client.create(&new).await?;
    let mut unfinished = UnfinishedCreate {
        client: client.clone(),
        e2b_id: session.id.clone(),
        is_done: false,
        _names: names,
    };
    let made = async {
        let mut link = Link::new(client, spec.name().to_string(), &session)?;
        let workdir = [spec.workdir().as_str()];
        let life = life_after(&link, MAKE_WORKDIR, &workdir, SystemUser::Root).await;
        link.life = life.map_err(|error| {
            Error::new(ErrorKind::Setup, "create sandbox: make its working directory").with_source(error)
        })?;
        Ok(Arc::new(link))
    };
    match made.await {
        Ok(link) => Ok((unfinished, link)),
        Err(error) => {
            // A failed create has left nothing when it is told.
            unfinished.client.kill(&unfinished.e2b_id).await?;
            unfinished.is_done = true;
            Err(error)
        }
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
        let names = self.reserve(spec)?;
        self.refuse_taken(spec).await?;
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
        let found = FoundSandbox { record, e2b_id, state: State::Running, is_adopted: false };
        self.refuse_younger(spec, &found).await?;
        made.is_done = true;
        Ok(self.created(found, link))
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let mut found = self.find(id_or_name).await?;
        let gone = || Error::destroyed(&found.record.name);
        let (listed, session): (Listed, EnvdAccess) =
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
        refuse_adopted("sleep", &found)?;
        match found.state {
            State::Paused => Ok(()),
            _ => self.client.pause(&found.e2b_id).await,
        }
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let found = self.find(id_or_name).await?;
        if found.state == State::Paused {
            refuse_adopted("wake", &found)?;
            self.client.connect(&found.e2b_id, self.client.options.timeout_s).await?;
        }
        self.open(id_or_name).await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let mut all = Vec::new();
        for listed in self.client.list(&[(OWNER, self.owner())]).await? {
            all.extend(self.found(&listed)?);
        }
        for id in self.notes.all()? {
            if let Some((listed, _)) = self.client.get(&id).await? {
                all.extend(self.found(&listed)?);
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
    /// unique, so of two creates at least one sees the other, and both agree which is the elder.
    async fn refuse_younger(&self, spec: &ValidSpec, own: &FoundSandbox) -> Result<()> {
        for key in [spec.id().as_str(), spec.name().as_str()] {
            for listed in self.client.list(&SandboxNote::query(self.owner(), key)).await? {
                let other = self.found(&listed)?.filter(|other| other.e2b_id != own.e2b_id);
                if other.is_some_and(|other| (other.age(), &other.e2b_id) < (own.age(), &own.e2b_id)) {
                    return Err(in_use(key));
                }
            }
        }
        Ok(())
    }
}
