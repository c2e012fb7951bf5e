//! Removing sandboxes: the Pod, then the reservation of the name. Every delete names the object as
//! it was read, by uid and version, so that two removers harm nothing that came after.
//!
//! A kubelet takes seconds to end a Pod and say so. So the guest is asked first: it ends everything within
//! milliseconds, and then the cluster has nothing left to wait for.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::{Cluster, Deleted};
use super::connect::{Keyed, RunningPod};
use super::pod_state::PodState;
use super::reach::PodPlace;
use super::record::{MAKING, PodRecord};
use super::{lease, wait};

const WHAT: &str = "remove the sandbox's Pod";
/// The longest wait for a guest to end everything.
const GUEST_PATIENCE: Duration = Duration::from_secs(2);
/// The longest wait for a Pod that is being deleted.
const PATIENCE: Duration = Duration::from_secs(40);
/// The number of tries while the Pod's status changes.
const ATTEMPTS: usize = 16;

/// Removes a sandbox. Returns `false` if it was removed before. A task of its own does it, to its end
/// also when the caller gives up: a Pod that is gone would leave its name reserved.
pub(super) async fn destroy(keyed: &Arc<Keyed>, record: &PodRecord, pod_uid: &str) -> Result<bool> {
    let (keyed, record, pod_uid) = (Arc::clone(keyed), record.clone(), pod_uid.to_owned());
    let removing = tokio::spawn(async move { destroy_whole(&keyed, &record, &pod_uid).await });
    removing
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))?
}

async fn destroy_whole(keyed: &Arc<Keyed>, record: &PodRecord, pod_uid: &str) -> Result<bool> {
    let was_there = match keyed.cluster.get::<Pod>(&record.pod_name()).await? {
        Some(pod) if pod.uid().as_deref() == Some(pod_uid) => {
            let has_ended = end_guest(keyed, record, &pod).await;
            let is_over = PodState::of(&pod) == PodState::Over;
            let grace_s = (has_ended || is_over).then_some(0);
            // A list that meets a Pod whose guest has ended deletes it, too.
            remove_pod(&keyed.cluster, &pod, grace_s).await? || has_ended
        }
        _ => false,
    };
    lease::release_of(&keyed.cluster, &keyed.owner, record).await?;
    Ok(was_there)
}

/// Has the guest end everything in its Pod. Returns whether the guest has said that it did. Then nothing runs there any more,
/// and the cluster has nothing to wait for.
async fn end_guest(keyed: &Arc<Keyed>, record: &PodRecord, pod: &Pod) -> bool {
    let PodState::Running(address) = PodState::of(pod) else { return false };
    let place = PodPlace { pod_name: pod.name_any(), pod_uid: pod.uid().unwrap_or_default(), address };
    let running = RunningPod { record: Arc::new(record.clone()), place };
    let end = async {
        let connection = running.connect(keyed).await?;
        // The end of its stream is what was asked for: nobody has to ask the cluster for the reason.
        let reason = Error::destroyed(&record.name).to_string();
        connection.set_closed_error(ErrorKind::Destroyed, reason);
        connection.end_everything().await
    };
    let ended = tokio::time::timeout(GUEST_PATIENCE, end).await;
    let why = match ended {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it did not answer in time".to_owned(),
    };
    tracing::debug!(why, sandbox = %record.id, "a guest has not said that it ended; its Pod's grace is waited for");
    false
}

/// Begins to remove a sandbox that is over, and frees its name, to the end also when the caller gives up.
/// Does not wait until the Pod is gone: its node may be lost.
pub(super) async fn begin(keyed: &Arc<Keyed>, record: &PodRecord, pod: &Pod) -> Result<()> {
    let (keyed, record, pod) = (Arc::clone(keyed), record.clone(), pod.clone());
    let beginning = tokio::spawn(async move {
        // One that is being deleted already may have left its name behind.
        let is_going = pod.metadata.deletion_timestamp.is_some();
        if !is_going && keyed.cluster.delete(WHAT, &pod, None).await? == Deleted::Changed {
            // The next look reads it as it is by then.
            return Ok(());
        }
        lease::release_of(&keyed.cluster, &keyed.owner, &record).await
    });
    beginning
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))?
}

/// Undoes a create: removes the Pod and the reservation with its mark, whether or not they were made.
pub(super) async fn undo(keyed: &Keyed, record: &PodRecord, making: &str) -> Result<()> {
    let is_ours = |pod: &Pod| pod.annotations().get(MAKING).is_some_and(|mark| mark == making);
    if let Some(pod) = keyed.cluster.get::<Pod>(&record.pod_name()).await?.filter(is_ours) {
        remove_pod(&keyed.cluster, &pod, None).await?;
    }
    match lease::read(&keyed.cluster, &keyed.owner, &record.name).await? {
        Some(found) if found.annotations().get(MAKING).is_some_and(|mark| mark == making) => {
            lease::release(&keyed.cluster, &found).await
        }
        _ => Ok(()),
    }
}

/// Removes this Pod, whatever its status has become since it was read, and returns when it is gone.
/// Returns `false` if others had removed it.
pub(super) async fn remove_pod(cluster: &Cluster, pod: &Pod, grace_s: Option<u32>) -> Result<bool> {
    let (name, uid) = (pod.name_any(), pod.uid());
    let mut now = pod.clone();
    for _ in 0..ATTEMPTS {
        let is_first = now.metadata.deletion_timestamp.is_none();
        match cluster.delete(WHAT, &now, grace_s).await? {
            Deleted::Begun => return gone(cluster, &name, uid.as_deref()).await.map(|()| is_first),
            Deleted::Absent => return Ok(false),
            Deleted::Changed => match cluster.get::<Pod>(&name).await? {
                Some(pod) if pod.uid() == uid => now = pod,
                _ => return Ok(false),
            },
        }
    }
    Err(Error::new(ErrorKind::Conflict, format!("{WHAT}: others change it all the time")))
}

async fn gone(cluster: &Cluster, name: &str, uid: Option<&str>) -> Result<()> {
    let going = wait::until(cluster, name, move |pod| match pod {
        Some(pod) if pod.uid().as_deref() == uid => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    tokio::time::timeout(PATIENCE, going).await.unwrap_or_else(|_| {
        let message = format!("{WHAT}: it is still there after {} s", PATIENCE.as_secs());
        let hint = "its node may be lost: the cluster forgets the Pod with the node";
        Err(Error::new(ErrorKind::Unavailable, message).with_hint(hint))
    })
}
