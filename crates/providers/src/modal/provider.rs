//! The provider: sandboxes are found by their tags in an app, and adopted ones by their notes.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::now_ms;
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, NetworkMode, Result, SandboxId,
    SandboxInfo, SandboxName, SandboxProvider, SandboxSpec, ValidSpec,
};
use uuid::Uuid;

use super::NAME;
use super::client::ModalClient;
use super::create::{check, make};
use super::link::ModalLink;
use super::options::ModalOptions;
use super::record::{create_tag, info, isolation, key_tag, read, tags};
use super::script::{LinkScripts, NewScript, answer};
use super::wire::{
    NETWORK_BLOCKED, NETWORK_OPEN, NetworkAccess, SandboxCreateV2Request, SandboxDefinition,
    SandboxInfoMessage, SecretSource, SecretSourceKind, StringMap,
};
use crate::e2b::adopt::AdoptionNotes;
use crate::e2b::create::{ReservedNames, refuse_taken};
use crate::e2b::driver::ScriptedDriver;
use crate::e2b::record::SandboxNote;

/// The directory in which the commands of an adopted sandbox start: root's home, where the vendor's own images begin.
const WORKDIR: &str = "/root";
/// The first process of a sandbox. It does nothing: a sandbox ends with it.
const FIRST_PROCESS: [&str; 2] = ["sleep", "infinity"];
/// Prints the variables of every command.
const VARIABLES: &str = "printf 'ok\\n'\nexec /usr/bin/env -0\n";

/// Returns what every sandbox can do.
pub fn capabilities() -> Capabilities {
    use Capability::{Append, Argv, AtomicWrite, Pty, RangedRead, Reopen, Shell, Symlinks, Tar};
    Capabilities::new([Append, Argv, AtomicWrite, Pty, RangedRead, Reopen, Shell, Symlinks, Tar])
}

/// The provider.
#[derive(Debug)]
pub struct ModalProvider {
    client: Arc<ModalClient>,
    notes: AdoptionNotes,
    capabilities: Capabilities,
    names: ReservedNames,
}

/// A sandbox that was found.
struct FoundInApp {
    record: SandboxNote,
    modal_id: String,
    is_adopted: bool,
}

impl ModalProvider {
    /// Makes the provider. Nothing is asked yet.
    ///
    /// # Errors
    /// `invalid` for an address that is none, `internal` if this machine can make no TLS connections.
    pub fn new(options: ModalOptions) -> Result<Arc<Self>> {
        let notes = AdoptionNotes { folder: options.notes.clone(), workdir: WORKDIR };
        let client = ModalClient::new(options)?;
        Ok(Arc::new(Self { client, notes, capabilities: capabilities(), names: ReservedNames::default() }))
    }

    /// Counts the sandboxes that run in the app.
    pub(super) async fn count(&self) -> Result<usize> {
        Ok(self.client.list_own(&[]).await?.1.len())
    }

    /// Lists Modal's ids of sandboxes that are not ours.
    pub(super) async fn foreign(&self) -> Result<Vec<String>> {
        let app = self.client.app().await?;
        let mut foreign = Vec::new();
        for listed in self.client.list("", &[]).await? {
            if self.recognise(&app, &listed)?.is_none() {
                foreign.push(listed.id);
            }
        }
        foreign.sort();
        Ok(foreign)
    }

    /// Adopts a sandbox by Modal's id. Returns its name and its id here.
    pub(super) async fn adopt(&self, modal_id: &str) -> Result<(SandboxName, SandboxId)> {
        let known = || Error::new(ErrorKind::Conflict, "it is known here already");
        // An id that no note can have is not asked for.
        if self.notes.read(modal_id)?.is_some() {
            return Err(known());
        }
        if self.client.result(modal_id).await?.is_some() {
            return Err(Error::new(ErrorKind::NotFound, "it has ended"));
        }
        if read(&self.client.tags(modal_id).await?).is_some()
            && self
                .client
                .list(&self.client.app().await?, &[])
                .await?
                .iter()
                .any(|listed| listed.id == modal_id)
        {
            return Err(known());
        }
        let record = self.notes.note(modal_id)?;
        Ok((record.name, record.id))
    }

    /// Returns what there is here about a sandbox of Modal; `None`: it is not ours.
    fn recognise(&self, app: &str, listed: &SandboxInfoMessage) -> Result<Option<FoundInApp>> {
        // One that was adopted stays so, whatever app is configured since.
        let (record, is_adopted) = match self.notes.read(&listed.id)? {
            Some(record) => (Some(record), true),
            None => (read(&listed.tags).filter(|_| listed.app_id == app), false),
        };
        let modal_id = listed.id.clone();
        Ok(record.map(|record| FoundInApp { record, modal_id, is_adopted }))
    }

    /// Finds a sandbox by its id or name.
    async fn find(&self, key: &str) -> Result<FoundInApp> {
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no sandbox `{key}`"));
        if SandboxId::parse(key).is_err() && SandboxName::parse(key).is_err() {
            return Err(missing());
        }
        let (app, listed) = self.client.list_own(&[key_tag(key)]).await?;
        for listed in listed {
            if let Some(found) = self.recognise(&app, &listed)?.filter(|found| found.record.is(key)) {
                return Ok(found);
            }
        }
        self.find_adopted(key).await?.ok_or_else(missing)
    }

    async fn find_adopted(&self, key: &str) -> Result<Option<FoundInApp>> {
        for modal_id in self.notes.all()? {
            if let Some(record) = self.notes.read(&modal_id)?.filter(|record| record.is(key))
                && self.runs(&modal_id).await?
            {
                return Ok(Some(FoundInApp { record, modal_id, is_adopted: true }));
            }
        }
        Ok(None)
    }

    async fn runs(&self, modal_id: &str) -> Result<bool> {
        match self.client.result(modal_id).await {
            Ok(result) => Ok(result.is_none()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn request(&self, spec: &ValidSpec, record: &SandboxNote) -> Result<SandboxCreateV2Request> {
        let (whole, options) = (spec.spec(), &self.client.options);
        let mut contents = whole.env.clone();
        contents.extend(whole.manifest.env.clone());
        let env =
            SecretSource { source: Some(SecretSourceKind::Env(StringMap { contents: contents.clone() })) };
        let open = whole.network == NetworkMode::Egress;
        let network_access_type = if open { NETWORK_OPEN } else { NETWORK_BLOCKED };
        Ok(SandboxCreateV2Request {
            tags: tags(record)?,
            definition: Some(SandboxDefinition {
                entrypoint_args: FIRST_PROCESS.map(str::to_owned).to_vec(),
                image_id: self.client.image_of(spec).await?,
                timeout_secs: u32::try_from(options.timeout_s).unwrap_or(u32::MAX),
                workdir: None,
                network_access: Some(NetworkAccess { network_access_type }),
                // Of two creates of one name at once, Modal refuses one.
                name: Some(spec.name().to_string()),
            }),
            secret_sources: if contents.is_empty() { Vec::new() } else { vec![env] },
            app_id: self.client.app().await?,
        })
    }

    fn created(&self, found: FoundInApp, link: Arc<ModalLink>) -> Created {
        let mut info = info(&found.record);
        info.life.clone_from(&link.task_id);
        let driver = ScriptedDriver {
            sandbox: Arc::new(LinkScripts(link)),
            capabilities: self.capabilities.clone(),
            isolation: info.isolation.clone(),
            workdir: info.workdir.clone(),
            adopted: found.is_adopted.then(|| self.notes.clone()),
        };
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

impl FoundInApp {
    /// Returns what puts sandboxes in the order of their creates.
    fn age(&self) -> (i64, SandboxId) {
        (self.record.created_ms, self.record.id.clone())
    }
}

/// Reads variables as `env -0` prints them.
fn variables(told: &[u8]) -> BTreeMap<String, String> {
    let pair = |line: &[u8]| {
        let (name, value) = str::from_utf8(line).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    told.split(|byte| *byte == 0).filter_map(pair).collect()
}

#[async_trait]
impl SandboxProvider for ModalProvider {
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
        let mut record = SandboxNote::new(spec, now_ms());
        let mut request = self.request(spec, &record).await?;
        let tag = create_tag(&Uuid::new_v4().to_string());
        request.tags.push(tag.clone());
        // A create whose caller leaves goes on until it is known what there is to end.
        let made = tokio::spawn(make(Arc::clone(&self.client), request, tag, spec.clone(), names)).await;
        let (mut made, link) = made.map_err(|error| {
            Error::new(ErrorKind::Internal, "create sandbox: a task ended early").with_source(error)
        })??;
        record.spec = spec.spec().clone();
        record.spec.workdir = Some(spec.workdir().clone());
        made.is_done = true;
        Ok(self.created(FoundInApp { record, modal_id: link.id.clone(), is_adopted: false }, link))
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let mut found = self.find(id_or_name).await?;
        let task_id = match self.client.task_id(&found.modal_id).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::destroyed(&found.record.name));
            }
            task_id => task_id?,
        };
        let (id, name) = (found.modal_id.clone(), found.record.name.to_string());
        let link = Arc::new(ModalLink::new(Arc::clone(&self.client), id, name, task_id));
        let script = NewScript { script: VARIABLES.to_owned(), ..NewScript::default() };
        let told = answer(&link, script).await?;
        found.record = found.record.with_variables(&variables(&told));
        Ok(self.created(found, link))
    }

    /// Opens a sandbox: none sleeps.
    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        self.open(id_or_name).await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let (app, listed) = self.client.list_own(&[]).await?;
        let mut all = Vec::new();
        for listed in listed {
            all.extend(self.recognise(&app, &listed)?.filter(|found| !found.is_adopted));
        }
        for modal_id in self.notes.all()? {
            if let Some(record) = self.notes.read(&modal_id)?
                && self.runs(&modal_id).await?
            {
                all.push(FoundInApp { record, modal_id, is_adopted: true });
            }
        }
        all.sort_by_key(FoundInApp::age);
        Ok(all.iter().map(|found| info(&found.record)).collect())
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        Ok(info(&self.find(id_or_name).await?.record))
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let found = self.find(id_or_name).await?;
        if found.is_adopted {
            self.notes.forget(&found.modal_id)
        } else {
            self.client.terminate(&found.modal_id).await
        }
    }
}
