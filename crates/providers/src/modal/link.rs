//! The way to one sandbox: its worker, which runs commands, and why a call on it failed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use http::{HeaderName, HeaderValue};
use prost::Message;
use tokio_util::sync::CancellationToken;

use super::client::{ModalClient, is_unauthenticated};
use super::connection::{Connections, ServerAddress};
use super::grpc::{GrpcStream, Metadata};
use super::retry::Retry;
use super::status::{GrpcCode, GrpcFailure};
use super::wire::ROUTER;
use crate::e2b::Secret;

/// The way to one sandbox.
pub(super) struct ModalLink {
    pub client: Arc<ModalClient>,
    /// Modal's id.
    pub id: String,
    /// The name, for errors.
    pub name: String,
    /// The task in which it runs. Commands are called by it, so none goes to another one.
    pub task_id: String,
    worker: Mutex<Option<SandboxWorker>>,
    /// Held while the way to the worker is asked for.
    asking: tokio::sync::Mutex<()>,
    /// It was destroyed by a handle of this process.
    pub destroyed: CancellationToken,
}

/// The worker of a sandbox, and the token for it.
#[derive(Clone)]
pub(super) struct SandboxWorker {
    connections: Arc<Connections>,
    url: String,
    token: HeaderValue,
}

impl fmt::Debug for ModalLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModalLink").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ModalLink {
    pub fn new(client: Arc<ModalClient>, id: String, name: String, task_id: String) -> Self {
        let (worker, asking, destroyed) =
            (Mutex::default(), tokio::sync::Mutex::default(), CancellationToken::new());
        Self { client, id, name, task_id, worker, asking, destroyed }
    }

    /// Refuses once the sandbox was destroyed here.
    pub fn check(&self) -> Result<()> {
        if self.destroyed.is_cancelled() { Err(Error::destroyed(&self.name)) } else { Ok(()) }
    }

    fn kept(&self) -> Option<SandboxWorker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the worker, and asks for the way to it if it is not known.
    pub async fn worker(&self) -> Result<SandboxWorker> {
        self.check()?;
        if let Some(worker) = self.kept() {
            return Ok(worker);
        }
        let _turn = self.asking.lock().await;
        if let Some(worker) = self.kept() {
            return Ok(worker);
        }
        let access = match self.client.access(&self.id, &self.task_id).await {
            Ok(access) => access,
            Err(error) if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::Conflict => {
                return Err(self.why(error).await);
            }
            Err(error) => return Err(error),
        };
        let wrong = || Error::new(ErrorKind::Unavailable, "Modal's answer can't be read");
        let address = ServerAddress::parse(&access.url).map_err(|_| wrong())?;
        if address.scheme != "https" && !self.client.is_local() {
            return Err(wrong().with_source("the worker's address is without TLS"));
        }
        let bearer = Secret::new(format!("Bearer {}", access.jwt));
        let connections = Arc::new(Connections::new(address, Arc::clone(&self.client.tls)));
        let worker =
            SandboxWorker { connections, url: access.url, token: bearer.header().ok_or_else(wrong)? };
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker.clone());
        Ok(worker)
    }

    /// Forgets the way to the worker if it is still this one: its token was refused, or nobody answers there.
    pub fn forget(&self, worker: &SandboxWorker) {
        let mut kept = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|kept| kept.token == worker.token && kept.url == worker.url) {
            kept.take();
        }
    }

    /// Makes a call to the worker that may be made again: each has a key or a place of its own. One whose token was refused is
    /// made once more with a new one.
    pub async fn routed<T: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
        patience: Duration,
    ) -> Result<T> {
        self.routed_noting(method, message, patience, &mut false).await
    }

    /// Makes such a call, and sets `is_open` if a try may have had an effect that no answer tells of.
    pub async fn routed_noting<T: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
        patience: Duration,
        is_open: &mut bool,
    ) -> Result<T> {
        let (path, mut retry, mut renewed) = (format!("{ROUTER}{method}"), Retry::default(), false);
        loop {
            let worker = self.worker().await.map_err(|error| error.with_unknown_effect_if(*is_open))?;
            let metadata = worker.metadata();
            let answered = worker.connections.unary(&path, &metadata, message, patience);
            let answered = tokio::select! {
                answered = answered => answered,
                () = self.destroyed.cancelled() => return Err(Error::destroyed(&self.name)),
            };
            let failure = match answered {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            *is_open |= failure.may_have_had_effect();
            if is_unauthenticated(&failure) && !renewed {
                self.forget(&worker);
                renewed = true;
            } else if !self.waits(&mut retry, &failure).await? {
                return Err(self.failed(failure).await.with_unknown_effect_if(*is_open));
            } else if matches!(failure, GrpcFailure::Unsent(_)) {
                // The worker may have another address by now.
                self.forget(&worker);
            }
        }
    }

    /// Waits until a call that has failed may be made again, unless the sandbox is gone. Returns whether it may.
    pub async fn waits(&self, retry: &mut Retry, failure: &GrpcFailure) -> Result<bool> {
        if failure.may_retry() && self.is_gone().await {
            return Err(Error::destroyed(&self.name));
        }
        Ok(retry.waits(failure).await)
    }

    async fn is_gone(&self) -> bool {
        if self.destroyed.is_cancelled() {
            return true;
        }
        match self.client.result(&self.id).await {
            Ok(result) => result.is_some(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Finds the reason of a failed call: the sandbox may have ended under it. A question that is not answered says nothing,
    /// and the sandbox counts as alive.
    pub async fn why(&self, failed: Error) -> Error {
        if self.is_gone().await { Error::destroyed(&self.name) } else { failed }
    }

    /// Makes the error of a call to the worker. Its own words may have the command in them, and are left out.
    pub async fn failed(&self, failure: GrpcFailure) -> Error {
        let code = match &failure {
            GrpcFailure::Unsent(_) | GrpcFailure::Lost(_) => return self.why(failure.into_error()).await,
            GrpcFailure::Refused { code, .. } => *code,
        };
        let told = |kind, words: &str| {
            Error::new(kind, words).with_source(format!("the worker said gRPC status {}", code.0))
        };
        match code {
            // Of another kind than what a script says of a file, which could be taken for that.
            GrpcCode::NOT_FOUND => {
                self.why(told(ErrorKind::Unavailable, "the sandbox has no such process")).await
            }
            GrpcCode::INVALID_ARGUMENT => told(ErrorKind::Setup, "the sandbox refused the command"),
            GrpcCode::FAILED_PRECONDITION => {
                self.why(told(ErrorKind::Conflict, "the sandbox refused it as it is now")).await
            }
            GrpcCode::PERMISSION_DENIED | GrpcCode::UNAUTHENTICATED => {
                self.why(told(ErrorKind::Permission, "the sandbox refused the token")).await
            }
            GrpcCode::RESOURCE_EXHAUSTED | GrpcCode::UNIMPLEMENTED => failure.without_words().into_error(),
            _ => {
                tracing::debug!(code = code.0, "a sandbox of Modal's failed at a call");
                self.why(told(ErrorKind::Unavailable, "the sandbox failed at it")).await
            }
        }
    }
}

impl SandboxWorker {
    fn metadata(&self) -> Metadata {
        vec![(HeaderName::from_static("authorization"), self.token.clone())]
    }

    /// Opens a stream of answers.
    pub async fn open(&self, method: &str, message: &impl Message) -> Result<GrpcStream, GrpcFailure> {
        self.connections.open(&format!("{ROUTER}{method}"), &self.metadata(), message).await
    }
}
