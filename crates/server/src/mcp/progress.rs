//! Progress of a call, for a client that asked for it: how long the call has run, and its latest
//! output. It is sent at most four times a second, and every five seconds even without output, so
//! that the client knows that the call is alive.

use std::time::Duration;

use eyot_tools::ToolProgress;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The shortest time before the first notification and between two.
const GAP: Duration = Duration::from_millis(250);
/// The longest time without a notification.
const SILENCE: Duration = Duration::from_secs(5);

/// Collects a call's progress and sends it to the client.
pub(super) struct Watcher {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    began: Instant,
    heard: watch::Sender<Option<ToolProgress>>,
}

impl Watcher {
    /// Makes a watcher for the client that gave this token.
    pub(super) fn new(token: ProgressToken, context: &RequestContext<RoleServer>) -> Self {
        let heard = watch::Sender::new(None);
        Self { token, peer: context.peer.clone(), began: Instant::now(), heard }
    }

    /// Returns the function to which the tool reports its progress.
    pub(super) fn ear(&self) -> impl Fn(ToolProgress) + Send + Sync + 'static {
        let heard = self.heard.clone();
        move |progress| {
            heard.send_replace(Some(progress));
        }
    }

    /// Notifies the client until the call is over or cancelled. A notification that was begun is
    /// sent to its end, so none follows the answer.
    pub(super) async fn notify_until(&self, over: &CancellationToken, cancel: &CancellationToken) {
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

    /// Makes a notification. Its progress is the seconds since the call began, which grow whatever
    /// the tool counts.
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
