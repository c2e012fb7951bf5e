//! The handle of a call, to await it, abort it, or listen to its events.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use eyot::{Error, ErrorKind};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::abort::AbortSwitch;
use crate::event::{AgentEvent, EventOrigin};
use crate::failure::AgentResult;
use crate::journal::{EventScope, RunJournal};
use crate::task_session::is_task_of;

/// A call of a session. The call begins when the handle is first polled. Dropping the handle aborts the call: the session
/// still finishes the step under way, so that the conversation can continue.
#[must_use = "a call begins when it is awaited"]
pub struct CallHandle<T> {
    state: CallState<T>,
    abort: AbortSwitch,
    journal: RunJournal,
    origin: EventOrigin,
}

enum CallState<T> {
    Waiting(BoxFuture<'static, AgentResult<T>>),
    Running(JoinHandle<AgentResult<T>>),
    Over,
}

/// The events of a call.
#[derive(Debug)]
pub struct CallEvents {
    events: mpsc::UnboundedReceiver<Arc<AgentEvent>>,
    origin: EventOrigin,
}

impl<T: Send + 'static> CallHandle<T> {
    pub(crate) fn new(
        abort: AbortSwitch,
        scope: &EventScope,
        run: impl Future<Output = AgentResult<T>> + Send + 'static,
    ) -> Self {
        let (journal, origin) = (scope.journal().clone(), scope.origin().clone());
        Self { state: CallState::Waiting(Box::pin(run)), abort, journal, origin }
    }

    /// Aborts the call: it fails with [`AgentError::Aborted`](crate::AgentError::Aborted) and this reason.
    pub fn abort(&self, reason: &str) {
        self.abort.abort(reason);
    }

    /// Returns a function that aborts the call, for another task.
    pub fn aborter(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let abort = self.abort.clone();
        move |reason: &str| abort.abort(reason)
    }

    /// Returns the events of the session and of its tasks from now on. Call this before the first poll to miss none. Events
    /// are kept until they are read.
    pub fn events(&self) -> CallEvents {
        CallEvents { events: self.journal.listen(), origin: self.origin.clone() }
    }
}

impl<T: Send + 'static> Future for CallHandle<T> {
    type Output = AgentResult<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let CallState::Waiting(_) = self.state
            && let CallState::Waiting(run) = std::mem::replace(&mut self.state, CallState::Over)
        {
            self.state = CallState::Running(self.journal.calls().spawn(run));
        }
        let CallState::Running(task) = &mut self.state else {
            let error = Error::new(ErrorKind::Internal, "a call was awaited after its end");
            return Poll::Ready(Err(error.into()));
        };
        let ended = ready!(Pin::new(task).poll(context));
        self.state = CallState::Over;
        Poll::Ready(ended.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Internal, "the task of a call ended early").with_source(error).into())
        }))
    }
}

impl<T> Drop for CallHandle<T> {
    fn drop(&mut self) {
        if let CallState::Running(_) = self.state {
            self.abort.abort("the call was dropped");
        }
    }
}

impl<T> std::fmt::Debug for CallHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallHandle").field("session", &self.origin.session).finish_non_exhaustive()
    }
}

impl CallEvents {
    /// Returns the next event, or `None` when the harness is gone.
    pub async fn next(&mut self) -> Option<Arc<AgentEvent>> {
        loop {
            let event = self.events.recv().await?;
            if self.is_of_the_call(&event) {
                return Some(event);
            }
        }
    }

    /// Returns the next event, if one has already arrived.
    pub fn try_next(&mut self) -> Option<Arc<AgentEvent>> {
        while let Ok(event) = self.events.try_recv() {
            if self.is_of_the_call(&event) {
                return Some(event);
            }
        }
        None
    }

    fn is_of_the_call(&self, event: &AgentEvent) -> bool {
        let session = event.session.as_deref().unwrap_or_default();
        let own = self.origin.session.as_deref().unwrap_or_default();
        event.harness == self.origin.harness && (session == own || is_task_of(session, own))
    }
}
