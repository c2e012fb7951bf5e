//! Making a sandbox: what is refused before, and what is undone if it can't be finished.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use eyot::{
    EgressRules, Error, ErrorKind, Isolation, NetworkMode, Result, SandboxOperationUnsupported, SandboxSpec,
    ValidSpec,
};

use super::NAME;
use super::client::{CreateCall, E2bClient};
use super::envd::SystemUser;
use super::link::Link;
use super::record::isolation;
use super::script::life_after;

/// The fields of a spec that are honoured. Limits are the template's: they are reported as not enforced, and refused
/// where they are required.
const HONOURED: [&str; 5] = ["image", "limits", "network", "require", "security.drop_capabilities"];
/// Makes a directory for the sandbox's user.
const MAKE_WORKDIR: &str =
    "PATH=/usr/local/bin:/usr/bin:/bin\nmkdir -p -- \"$1\" && chown user: -- \"$1\" || exit\n";

pub(crate) fn in_use(key: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("create sandbox: `{key}` is in use"))
}

/// The names and ids that creates of this process are about to take.
#[derive(Debug, Default)]
pub(crate) struct ReservedNames(Arc<Mutex<BTreeSet<String>>>);

impl ReservedNames {
    /// Reserves the name and the id of a spec, unless a create is about to take one of them.
    pub fn reserve(&self, spec: &ValidSpec) -> Result<Reservation> {
        let keys = [spec.id().to_string(), spec.name().to_string()];
        let mut reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = keys.iter().find(|key| reserved.contains(*key)) {
            return Err(in_use(taken));
        }
        reserved.extend(keys.clone());
        drop(reserved);
        Ok(Reservation { reserved: Arc::clone(&self.0), keys })
    }
}

/// A name and an id that a create is about to take.
pub(crate) struct Reservation {
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
pub(super) fn check(spec: &ValidSpec) -> Result<()> {
    refuse_more(spec, NAME, &HONOURED, &isolation(spec.spec()))
}

/// Refuses the name or id of a new sandbox if a look for it has found another.
pub(crate) fn refuse_taken<T>(key: &str, found: Result<T>) -> Result<()> {
    match found {
        Ok(_) => Err(in_use(key)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a spec that asks for more than a vendor has whose network and capabilities are its own. `isolation` is the one that
/// the sandbox would have.
pub(crate) fn refuse_more(
    spec: &ValidSpec,
    provider: &str,
    honoured: &[&str],
    isolation: &Isolation,
) -> Result<()> {
    spec.refuse_all_but(provider, honoured)?;
    let spec = spec.spec();
    let refused =
        |options: &[&str]| Err(SandboxOperationUnsupported::new("create", provider, options).into());
    if matches!(spec.network, NetworkMode::Host | NetworkMode::Bridge) {
        return refused(&["network"]);
    }
    if spec.egress != EgressRules::default() {
        return refused(&["egress"]);
    }
    if spec.security.drop_capabilities != SandboxSpec::default().security.drop_capabilities {
        return refused(&["security.drop_capabilities"]);
    }
    match spec.require.iter().find(|requirement| !isolation.holds(**requirement)) {
        Some(_) => refused(&["require"]),
        None => Ok(()),
    }
}

/// A sandbox that is being made. It is killed when it is dropped before it is done.
pub(super) struct UnfinishedCreate {
    client: E2bClient,
    pub e2b_id: String,
    pub is_done: bool,
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
pub(super) async fn make(
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
