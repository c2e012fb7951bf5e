//! Making a sandbox: its name is reserved, then its Pod is made, then its guest gets its
//! configuration. What was made is removed when a step fails, and when the caller gives up.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use eyot::internal::now_ms;
use eyot::{
    EgressRules, Error, ErrorKind, IdleAction, NetworkMode, Result, SandboxId, SandboxOperationUnsupported,
    SandboxSpec, ValidSpec,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::Made;
use super::connect::{Keyed, RunningPod};
use super::destroy::undo;
use super::pod_body::{self, PodFacts};
use super::pod_state::PodState;
use super::reach::PodPlace;
use super::record::PodRecord;
use super::sandbox_pod::ReadyPod;
use super::{NAME, lease, reserve, wait};

/// The fields of a spec that are honoured. A limit that the cluster does not hold is reported as not
/// enforced, and refused where it is required.
const HONOURED: [&str; 8] = [
    "container.runtime",
    "hostname",
    "image",
    "lifecycle",
    "limits",
    "network",
    "require",
    "security.drop_capabilities",
];
/// The longest wait for a Pod to run: its image may have to be fetched.
const PATIENCE: Duration = Duration::from_secs(180);
/// The longest wait for a node with room.
const ROOM_PATIENCE: Duration = Duration::from_secs(20);

/// Makes a sandbox. The files of its manifest are still missing.
pub(super) async fn create(keyed: &Arc<Keyed>, spec: &ValidSpec) -> Result<ReadyPod> {
    refuse_what_a_pod_cannot(spec)?;
    let record = Arc::new(PodRecord::new(spec, now_ms()));
    // The server makes the objects even if no caller waits for the answer any more: so a task of its own
    // waits for it, and what nobody takes is removed.
    let making = tokio::spawn(UnfinishedPod::make(Arc::clone(keyed), Arc::clone(&record)));
    let unfinished = making.await.map_err(|error| {
        Error::new(ErrorKind::Internal, "create sandbox: a task ended early").with_source(error)
    })??;
    match begin(keyed, &record).await {
        Ok(ready) => {
            unfinished.finish();
            Ok(ready)
        }
        Err(error) => {
            unfinished.undo().await;
            Err(error.context("create sandbox"))
        }
    }
}

/// Waits until the Pod runs, and returns when its guest is ready.
async fn begin(keyed: &Arc<Keyed>, record: &Arc<PodRecord>) -> Result<ReadyPod> {
    let (pod, address) = running(keyed, record).await?;
    let place = PodPlace { pod_name: pod.name_any(), pod_uid: pod.uid().unwrap_or_default(), address };
    let running = RunningPod { record: Arc::clone(record), place };
    let connection = running.make(keyed).await?;
    ReadyPod::new(keyed, running, &pod, connection)
}

async fn running(keyed: &Keyed, record: &PodRecord) -> Result<(Pod, String)> {
    let begun = tokio::time::Instant::now();
    let pod_name = record.pod_name();
    let (reasons, mut last) = tokio::sync::watch::channel(None::<String>);
    let starting = wait::until(&keyed.cluster, &pod_name, move |pod| {
        let Some(pod) = pod else { return ControlFlow::Break(Err(Error::destroyed(&record.name))) };
        match PodState::of(pod) {
            PodState::Running(address) => ControlFlow::Break(Ok((pod.clone(), address))),
            PodState::Pending(reason) => {
                reasons.send_replace(reason);
                ControlFlow::Continue(())
            }
            PodState::Stuck(reason) => {
                ControlFlow::Break(Err(Error::new(ErrorKind::Setup, format!("its Pod can't run: {reason}"))))
            }
            ended => ControlFlow::Break(Err(Error::new(ErrorKind::Setup, "its Pod ended at once")
                .with_source(ended.refusal(record.name.as_str())))),
        }
    });
    let mut starting = std::pin::pin!(starting);
    loop {
        tokio::select! {
            started = &mut starting => return started?,
            () = tokio::time::sleep_until(begun + ROOM_PATIENCE), if last.borrow().is_some() => {
                let reason = last.borrow().clone().unwrap_or_default();
                return Err(Error::new(ErrorKind::Quota, format!("no node has room for its Pod: {reason}")));
            }
            () = tokio::time::sleep_until(begun + PATIENCE) => {
                let message = format!("its Pod did not run within {} s", PATIENCE.as_secs());
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            Ok(()) = last.changed() => {}
        }
    }
}

/// A create that failed.
enum Unmade {
    /// Nothing was made.
    NameTaken(Error),
    /// There may be objects.
    Halfway(Error),
}

/// The objects of a create that is not done. Dropping them, because the caller gave up, removes them.
struct UnfinishedPod {
    keyed: Arc<Keyed>,
    record: Arc<PodRecord>,
    making: String,
    armed: bool,
}

impl UnfinishedPod {
    async fn make(keyed: Arc<Keyed>, record: Arc<PodRecord>) -> Result<Self> {
        let making = SandboxId::generate().to_string();
        // Before the reservation: an answer may be lost whose Lease was made.
        let unfinished = Self { keyed, record, making, armed: true };
        match unfinished.make_objects().await {
            Ok(()) => Ok(unfinished),
            Err(Unmade::NameTaken(error)) => {
                unfinished.finish();
                Err(error)
            }
            Err(Unmade::Halfway(error)) => {
                unfinished.undo().await;
                Err(error)
            }
        }
    }

    async fn make_objects(&self) -> std::result::Result<(), Unmade> {
        let Self { keyed, record, making, .. } = self;
        let reserved = reserve::reserve(&keyed.cluster, &keyed.owner, record, making).await;
        reserved.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Unmade::NameTaken(error),
            _ => Unmade::Halfway(error),
        })?;
        self.make_pod_under_name().await.map_err(Unmade::Halfway)
    }

    async fn make_pod_under_name(&self) -> Result<()> {
        let Self { keyed, record, making, .. } = self;
        self.make_pod().await?;
        // A Pod that took minutes to be made may have lost its name to another, whose clock says so.
        if lease::is_of(&keyed.cluster, &keyed.owner, &record.name, making).await? {
            Ok(())
        } else {
            Err(reserve::in_use(&record.name))
        }
    }

    async fn make_pod(&self) -> Result<()> {
        let cluster = &self.keyed.cluster;
        let facts = PodFacts {
            owner: &self.keyed.owner,
            making: &self.making,
            public_key: &self.keyed.key.public(),
            namespace: cluster.namespace().await?,
        };
        let pod = pod_body::body(&self.record, cluster.options(), &facts)?;
        match cluster.create("create sandbox", &pod).await? {
            Made::New(_) => Ok(()),
            Made::Taken => {
                let message = format!("create sandbox: the id `{}` is in use", self.record.id);
                Err(Error::new(ErrorKind::AlreadyExists, message))
            }
        }
    }

    fn finish(mut self) {
        self.armed = false;
    }

    async fn undo(mut self) {
        remove(&self.keyed, &self.record, &self.making).await;
        // Not before: a caller that gives up meanwhile leaves the removal to the drop.
        self.armed = false;
    }
}

impl Drop for UnfinishedPod {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (keyed, record, making) =
            (Arc::clone(&self.keyed), Arc::clone(&self.record), std::mem::take(&mut self.making));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { remove(&keyed, &record, &making).await })),
            Err(_) => tracing::warn!(sandbox = %record.id, "a sandbox was abandoned while it was being made"),
        }
    }
}

async fn remove(keyed: &Keyed, record: &PodRecord, making: &str) {
    if let Err(error) = undo(keyed, record, making).await {
        tracing::warn!(sandbox = %record.id, %error, "a sandbox whose create failed could not be removed");
    }
}

/// Refuses a spec that asks for something that a Pod can't do. Nothing is made before.
fn refuse_what_a_pod_cannot(spec: &ValidSpec) -> Result<()> {
    spec.refuse_all_but(NAME, &HONOURED)?;
    let SandboxSpec { network, egress, lifecycle, .. } = spec.spec();
    let refuse = |option: &str| Err(SandboxOperationUnsupported::new("create", NAME, &[option]).into());
    match network {
        NetworkMode::Host | NetworkMode::Egress => return refuse("network"),
        NetworkMode::None | NetworkMode::Bridge => {}
    }
    if *egress != EgressRules::default() {
        return refuse("egress");
    }
    if lifecycle.on_idle == IdleAction::Sleep {
        return refuse("lifecycle.on_idle");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_cannot_do_is_refused_before_anything_is_made() {
        for (json, named) in [
            (r#"{"network":"host"}"#, "network"),
            (r#"{"user":"root"}"#, "user"),
            (r#"{"workspace":{"mode":"persistent","id":"w"}}"#, "workspace"),
            (r#"{"security":{"readonly_rootfs":true}}"#, "security.readonly_rootfs"),
            (r#"{"lifecycle":{"idle_timeout_ms":5000,"on_idle":"sleep"}}"#, "lifecycle.on_idle"),
        ] {
            let spec: SandboxSpec = serde_json::from_str(json).unwrap();
            let error = refuse_what_a_pod_cannot(&spec.validate().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{json}");
            assert!(error.to_string().contains(named), "{error}");
        }
        refuse_what_a_pod_cannot(&SandboxSpec::default().validate().unwrap()).unwrap();
    }
}
