//! Progress of a call for a client that asked for it: how long it has run and what it said last, at most four times a
//! second, and every five seconds even if it says nothing, so that the client knows that it is alive.

use std::time::Duration;

use eyot::tools::ToolProgress;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The shortest time between two notifications, and before the first one.
const GAP: Duration = Duration::from_millis(250);
/// The longest time without one.
const SILENCE: Duration = Duration::from_secs(5);

/// Hears what a call has done and tells its client.
pub(super) struct Watcher {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    began: Instant,
    heard: watch::Sender<Option<ToolProgress>>,
}

impl Watcher {
    /// A watcher for the client that gave this token.
    pub(super) fn new(token: ProgressToken, context: &RequestContext<RoleServer>) -> Self {
        let heard = watch::Sender::new(None);
        Self { token, peer: context.peer.clone(), began: Instant::now(), heard }
    }

    /// What the tool tells its progress to.
    pub(super) fn ear(&self) -> impl Fn(ToolProgress) + Send + Sync + 'static {
        let heard = self.heard.clone();
        move |progress| {
            heard.send_replace(Some(progress));
        }
    }

    /// Tells the client until the call is over or cancelled. A notification that was begun is sent, so none follows the
    /// answer.
    pub(super) async fn tell(&self, over: &CancellationToken, cancel: &CancellationToken) {
        let mut heard = self.heard.subscribe();
        let mut last = self.began;
        loop {
            let due = async {
                sleep_until(last + GAP).await;
                tokio::select! {
                    _ = heard.changed() => {}
                    () = sleep_until(last + SILENCE) => {}
                }
            };
            tokio::select! {
                biased;
                () = over.cancelled() => return,
                () = cancel.cancelled() => return,
                () = due => {}
            }
            let message = heard.borrow_and_update().as_ref().map(|progress| progress.message.clone());
            last = Instant::now();
            if self.peer.notify_progress(self.notification(message)).await.is_err() {
                // The client is gone, and its session with it.
                return;
            }
        }
    }

    /// The progress is the seconds that went by: it grows, whatever the tool counts.
    fn notification(&self, message: Option<String>) -> ProgressNotificationParam {
        let seconds = self.began.elapsed().as_secs_f64();
        let rounded = (seconds * 1000.0).round() / 1000.0;
        let said = message.filter(|message| !message.is_empty());
        let text = match said {
            Some(said) => format!("{seconds:.1} s: {said}"),
            None => format!("{seconds:.1} s"),
        };
        ProgressNotificationParam::new(self.token.clone(), rounded).with_message(text)
    }
}
