//! The provider: sandboxes are found by their records.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, Error, ErrorKind, Isolation, Result, SandboxId, SandboxInfo, SandboxName,
    SandboxProvider, ValidSpec,
};

use super::bridge::BridgeClient;
use super::capabilities::capabilities;
use super::host::BridgeHost;
use super::link::{BridgedSandbox, ConnectedSandbox, SandboxEnd, replaced};
use super::options::{CloudflareOptions, checked, folder};
use super::record::{BridgeRecord, BridgeState};
use super::records::BridgeRecords;
use super::{NAME, create, isolation, removal};

/// The provider.
#[derive(Debug)]
pub struct CloudflareProvider {
    host: Arc<BridgeHost>,
    capabilities: Capabilities,
}

impl CloudflareProvider {
    /// Makes the provider. Nothing is asked yet.
    ///
    /// # Errors
    /// `internal` if this machine can make no requests.
    pub fn new(options: CloudflareOptions) -> Result<Arc<Self>> {
        let client = BridgeClient::new(&options)?;
        let bridge = options.url.as_deref().map(checked).transpose()?;
        let records =
            BridgeRecords::new(options.records.join(bridge.map_or_else(String::new, |url| folder(&url))));
        Ok(Arc::new(Self { host: Arc::new(BridgeHost { client, records }), capabilities: capabilities() }))
    }

    /// Asks the bridge, with the key, for the number of its containers.
    pub(super) async fn count(&self) -> Result<u64> {
        self.host.client.check().await
    }

    /// Adopts a sandbox by the bridge's id. Returns its name and its id here. The bridge has a sandbox for every id: one that
    /// nobody has used is new.
    ///
    /// # Errors
    /// `invalid` for what no id is, `conflict` for a sandbox that is known here.
    pub async fn adopt(&self, bridge_id: &str) -> Result<(SandboxName, SandboxId)> {
        let record = create::adopt(&self.host, bridge_id).await?;
        Ok((record.name, record.id))
    }

    async fn open_now(&self, id_or_name: &str) -> Result<Created> {
        let record = self.host.records.find(id_or_name)?;
        match record.state {
            BridgeState::Made => Ok(self.connect(record).await?.created()),
            BridgeState::Making => Err(Error::new(
                ErrorKind::Unavailable,
                format!("sandbox `{}` is still being made", record.name),
            )),
            BridgeState::Ending => Err(Error::destroyed(&record.name)),
        }
    }

    async fn connect(&self, record: BridgeRecord) -> Result<ConnectedSandbox> {
        let sandbox = BridgedSandbox { host: Arc::clone(&self.host), record: Arc::new(record) };
        let lost = match sandbox.connect().await {
            Ok(connection) => return ConnectedSandbox::new(sandbox, connection),
            Err(error) if error.kind() == ErrorKind::Unavailable && !error.had_no_effect() => error,
            Err(error) => return Err(error),
        };
        match sandbox.end().await? {
            SandboxEnd::None => Err(lost),
            SandboxEnd::Guest => create::begin_again(&self.host, &sandbox.record).await,
            SandboxEnd::Replaced => Err(replaced(sandbox.record.name.as_str())),
            SandboxEnd::Destroyed => Err(Error::destroyed(&sandbox.record.name)),
        }
    }
}

#[async_trait]
impl SandboxProvider for CloudflareProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(isolation::promised())
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        removal::sweep(&self.host, removal::CREATE_PATIENCE).await;
        let mut created = create::create(&self.host, spec).await?.created();
        // What is recorded lacks what the caller still has.
        created.info.spec = spec.spec().clone();
        Ok(created)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        match self.open_now(id_or_name).await {
            // Another process has just started its guest anew.
            Err(error) if error.kind() == ErrorKind::Conflict => self.open_now(id_or_name).await,
            opened => opened,
        }
    }

    /// Opens it: none of these sandboxes sleeps.
    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        self.open(id_or_name).await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        removal::sweep(&self.host, removal::LIST_PATIENCE).await;
        let all = self.host.records.all()?;
        Ok(all
            .iter()
            .filter(|record| record.state == BridgeState::Made)
            .map(BridgeRecord::promised_info)
            .collect())
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let record = self.host.records.find(id_or_name)?;
        match record.state {
            BridgeState::Ending => Err(Error::destroyed(&record.name)),
            _ => Ok(record.promised_info()),
        }
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let record = self.host.records.find(id_or_name)?;
        let removed = removal::remove(&self.host, &record).await;
        if removed.map_err(|error| error.context(format!("destroy sandbox `{id_or_name}`")))? {
            Ok(())
        } else {
            Err(Error::destroyed(id_or_name))
        }
    }
}
