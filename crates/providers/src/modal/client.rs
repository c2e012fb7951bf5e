//! Modal's control plane: the token, retries within the vendor's limits, and the calls about sandboxes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use eyot::{Error, ErrorKind, Result};
use http::{HeaderName, HeaderValue};
use prost::Message;
use tokio_rustls::rustls::ClientConfig;
use uuid::Uuid;

use super::connection::{Connections, ServerAddress, tls_config};
use super::grpc::{GrpcStream, Metadata, PATIENCE};
use super::id_cache::IdCache;
use super::options::ModalOptions;
use super::retry::Retry;
use super::status::{GrpcCode, GrpcFailure};
use super::wire::{
    AppGetOrCreateRequest, AppGetOrCreateResponse, AuthTokenGetResponse, CLIENT, CREATE_IF_MISSING,
    CommandRouterAccess, Empty, GenericResult, OfSandbox, SandboxCreateV2Request, SandboxCreateV2Response,
    SandboxGetTaskIdResponse, SandboxInfoMessage, SandboxListRequest, SandboxListResponse, SandboxTag,
    SandboxTagsGetResponse, SandboxWaitRequest, SandboxWaitResponse,
};
use crate::e2b::Secret;

/// The version of the vendor's client whose calls these are.
const CLIENT_VERSION: &str = "1.6.4";
/// `CLIENT_TYPE_CLIENT`.
const CLIENT_TYPE: &str = "1";
/// The time for which the control plane's own token is used where it does not say how long it lasts.
const TOKEN_FOR: Duration = Duration::from_secs(5 * 60);
/// The shortest and the longest time for which a token is used, whatever it says of itself.
const LEAST_TOKEN_FOR: Duration = Duration::from_secs(10);
const MOST_TOKEN_FOR: Duration = Duration::from_secs(60 * 60);
/// The wait for a sandbox's place, and the time between two looks.
const PLACE_PATIENCE: Duration = Duration::from_secs(10 * 60);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The most pages of a list that are read.
const MAX_PAGES: usize = 1000;
/// The wait for the end of a sandbox that was told to end, in seconds.
const END_PATIENCE_S: f32 = 10.0;

/// A client of the control plane.
pub(super) struct ModalClient {
    pub options: ModalOptions,
    pub tls: Arc<ClientConfig>,
    connections: Connections,
    auth: Mutex<Option<AuthToken>>,
    /// The id of the app, by its name.
    apps: IdCache,
    /// The ids of images that are built, by their names.
    pub images: IdCache,
}

impl fmt::Debug for ModalClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModalClient").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The short-lived token that calls on sandboxes want beside the caller's own.
#[derive(Clone)]
struct AuthToken {
    value: HeaderValue,
    /// By the clock of this process, which no clock of Modal's moves.
    until: Instant,
}

/// A new sandbox, and its task; empty: it has no place yet.
pub(super) struct CreatedSandbox {
    pub id: String,
    pub task_id: String,
}

impl ModalClient {
    pub fn new(options: ModalOptions) -> Result<Arc<Self>> {
        let tls = tls_config()?;
        let address = ServerAddress::parse(&options.server_url)?;
        if address.scheme != "https" && !address.is_local() {
            let reason = "must be `https://…`: the token would go to another machine for all to read";
            return Err(Error::invalid("server_url", reason));
        }
        let connections = Connections::new(address, Arc::clone(&tls));
        let (auth, apps, images) = (Mutex::default(), IdCache::default(), IdCache::default());
        Ok(Arc::new(Self { options, tls, connections, auth, apps, images }))
    }

    /// Tells whether the control plane is on this machine, as in tests.
    pub fn is_local(&self) -> bool {
        self.connections.address.is_local()
    }

    fn metadata(&self) -> Result<Metadata> {
        let no_token = || {
            Error::new(ErrorKind::Permission, "Modal needs a token")
                .with_hint("set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET in the environment")
                .with_no_effect()
        };
        let (id, secret) = self.options.token.as_ref().ok_or_else(no_token)?;
        let header = |name, secret: &Secret| {
            secret.header().ok_or_else(|| Error::invalid(name, "has what no header can carry"))
        };
        Ok(vec![
            (HeaderName::from_static("x-modal-client-version"), HeaderValue::from_static(CLIENT_VERSION)),
            (HeaderName::from_static("x-modal-client-type"), HeaderValue::from_static(CLIENT_TYPE)),
            (HeaderName::from_static("x-modal-token-id"), header("MODAL_TOKEN_ID", id)?),
            (HeaderName::from_static("x-modal-token-secret"), header("MODAL_TOKEN_SECRET", secret)?),
        ])
    }

    /// Returns the token for calls on sandboxes.
    async fn auth(&self) -> Result<HeaderValue> {
        let kept = self.auth.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept.filter(|kept| Instant::now() < kept.until) {
            return Ok(kept.value);
        }
        let answer: AuthTokenGetResponse =
            self.send("AuthTokenGet", self.metadata()?, &Empty {}, &mut false).await?;
        let wrong = || Error::new(ErrorKind::Unavailable, "Modal's answer can't be read");
        let value = Secret::new(answer.token.as_str()).header().ok_or_else(wrong)?;
        let until = Instant::now()
            + half_life(&answer.token).unwrap_or(TOKEN_FOR).clamp(LEAST_TOKEN_FOR, MOST_TOKEN_FOR);
        let token = AuthToken { value: value.clone(), until };
        *self.auth.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(value)
    }

    fn forget_auth(&self) {
        self.auth.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Makes a call about sandboxes. One whose short-lived token was refused is made once more with a new one.
    pub async fn call<T: Message + Default>(&self, method: &str, message: &impl Message) -> Result<T> {
        self.call_noting(method, message, &mut false).await
    }

    /// Makes such a call, and sets `is_open` if a try may have had an effect that no answer tells of.
    pub async fn call_noting<T: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
        is_open: &mut bool,
    ) -> Result<T> {
        let mut renewed = false;
        loop {
            let mut metadata = self.metadata()?;
            metadata.push((HeaderName::from_static("x-modal-auth-token"), self.auth().await?));
            let sent = self.send(method, metadata, message, is_open).await;
            match sent {
                Err(error) if error.kind() == ErrorKind::Permission && !renewed => {
                    self.forget_auth();
                    renewed = true;
                }
                sent => return sent,
            }
        }
    }

    /// Sends a call that may be sent again: each one here has a key of its own, by which Modal does it once.
    async fn send<T: Message + Default>(
        &self,
        method: &str,
        mut metadata: Metadata,
        message: &impl Message,
        is_open: &mut bool,
    ) -> Result<T> {
        let (path, mut retry) = (format!("{CLIENT}{method}"), Retry::default());
        let key = Uuid::new_v4().to_string();
        let wrong = |error| Error::new(ErrorKind::Internal, "make a key").with_source(error);
        let key = HeaderValue::from_str(&key).map_err(wrong)?;
        metadata.push((HeaderName::from_static("x-idempotency-key"), key));
        loop {
            let failure: GrpcFailure = match self.connections.unary(&path, &metadata, message, PATIENCE).await
            {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            *is_open |= failure.may_have_had_effect();
            if !retry.waits(&failure).await {
                return Err(failure.into_error().with_unknown_effect_if(*is_open));
            }
        }
    }

    /// Opens a stream of answers about images.
    pub async fn stream(&self, method: &str, message: &impl Message) -> Result<GrpcStream, GrpcFailure> {
        let path = format!("{CLIENT}{method}");
        let metadata = self.metadata().map_err(|error| GrpcFailure::Unsent(error.to_string()))?;
        self.connections.open(&path, &metadata, message).await
    }

    /// Returns the id of the app that sandboxes are made in, and makes it if it is missing.
    pub async fn app(&self) -> Result<String> {
        let name = &self.options.app;
        if let Some(known) = self.apps.get(name) {
            return Ok(known);
        }
        let request = AppGetOrCreateRequest {
            app_name: name.clone(),
            environment_name: self.options.environment.clone(),
            object_creation_type: CREATE_IF_MISSING,
        };
        let answer: AppGetOrCreateResponse = self.call("AppGetOrCreate", &request).await?;
        self.apps.note(name, &answer.app_id);
        Ok(answer.app_id)
    }

    /// Forgets the ids of the app and of images: Modal may have removed them.
    pub fn forget_ids(&self) {
        self.apps.forget();
        self.images.forget();
    }

    /// Makes a sandbox. One whose answer does not come is looked for by its tag.
    pub async fn create(&self, request: &SandboxCreateV2Request, tag: &SandboxTag) -> Result<CreatedSandbox> {
        let mut is_open = false;
        let made: Result<SandboxCreateV2Response> =
            self.call_noting("SandboxCreateV2", request, &mut is_open).await;
        let error = match made {
            Ok(made) => return Ok(CreatedSandbox { id: made.sandbox_id, task_id: made.task_id }),
            Err(error) if !is_open => return Err(error),
            Err(error) => error,
        };
        match self.list_of_create(request, tag).await {
            // It has no other tag: what an earlier try has made is this create's own.
            Ok(left) => {
                if let Some(left) = left.into_iter().next() {
                    return Ok(CreatedSandbox { id: left.id, task_id: String::new() });
                }
            }
            Err(unknown) => {
                tracing::warn!(error = %unknown, "look for what a create without an answer has made");
            }
        }
        // Whatever the last try was told: an earlier one may still make it.
        Err(Error::new(ErrorKind::Unavailable, error.to_string())
            .with_hint("Modal may have made the sandbox; its list shows it")
            .with_source(error))
    }

    /// Lists what a create has made. An app that is gone has nothing.
    async fn list_of_create(
        &self,
        request: &SandboxCreateV2Request,
        tag: &SandboxTag,
    ) -> Result<Vec<SandboxInfoMessage>> {
        match self.list(&request.app_id, std::slice::from_ref(tag)).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Lists the sandboxes of our app that run with these tags, with the app's id.
    pub async fn list_own(&self, tags: &[SandboxTag]) -> Result<(String, Vec<SandboxInfoMessage>)> {
        let app = self.app().await?;
        match self.list(&app, tags).await {
            // An app that was removed has no sandboxes, and the next one of this name has another id.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.forget_ids();
                let now = self.app().await?;
                let all = if now == app { Vec::new() } else { self.list(&now, tags).await? };
                Ok((now, all))
            }
            all => Ok((app, all?)),
        }
    }

    /// Lists the sandboxes that run with these tags, page by page; an empty app: of all apps.
    pub async fn list(&self, app_id: &str, tags: &[SandboxTag]) -> Result<Vec<SandboxInfoMessage>> {
        let (mut all, mut before) = (Vec::<SandboxInfoMessage>::new(), 0.0);
        for _ in 0..MAX_PAGES {
            let request = SandboxListRequest {
                app_id: app_id.to_owned(),
                before_timestamp: before,
                environment_name: self.options.environment.clone(),
                include_finished: false,
                tags: tags.to_vec(),
            };
            let page: SandboxListResponse = self.call("SandboxListV2", &request).await?;
            let Some(last) = page.sandboxes.last() else { return Ok(all) };
            let next = last.created_at;
            if before != 0.0 && next >= before {
                return Err(unreadable().with_source("a page of the list leads to itself"));
            }
            before = next;
            // Two that were made at one moment may be on two pages.
            let new = page
                .sandboxes
                .into_iter()
                .filter(|one| !ended(one) && !all.iter().any(|old| old.id == one.id));
            let new: Vec<_> = new.collect();
            all.extend(new);
        }
        Err(unreadable().with_source(format!("the list has more than {MAX_PAGES} pages")))
    }

    /// Returns how a sandbox has ended; `None`: it has not. One that Modal does not have is `not_found`.
    pub async fn result(&self, id: &str) -> Result<Option<GenericResult>> {
        self.wait(id, 0.0).await
    }

    async fn wait(&self, id: &str, timeout: f32) -> Result<Option<GenericResult>> {
        let request = SandboxWaitRequest { sandbox_id: id.to_owned(), timeout };
        let answer: SandboxWaitResponse = self.call(of_version("SandboxWait", id).as_str(), &request).await?;
        Ok(answer.result.filter(|result| result.status != 0))
    }

    pub async fn tags(&self, id: &str) -> Result<Vec<SandboxTag>> {
        let request = OfSandbox { sandbox_id: id.to_owned() };
        let answer: SandboxTagsGetResponse = self.call(&of_version("SandboxTagsGet", id), &request).await?;
        Ok(answer.tags)
    }

    /// Returns the task of a sandbox, once it has a place.
    pub async fn task_id(&self, id: &str) -> Result<String> {
        let request = OfSandbox { sandbox_id: id.to_owned() };
        let found = async {
            loop {
                let answer: SandboxGetTaskIdResponse =
                    self.call(&of_version("SandboxGetTaskId", id), &request).await?;
                match answer {
                    SandboxGetTaskIdResponse { task_id: Some(task_id), .. } if !task_id.is_empty() => {
                        return Ok(task_id);
                    }
                    SandboxGetTaskIdResponse { task_result: Some(result), .. } if result.status != 0 => {
                        return Err(Error::new(ErrorKind::NotFound, "the sandbox has ended"));
                    }
                    _ => tokio::time::sleep(LOOK_AGAIN).await,
                }
            }
        };
        let late = |_| Error::new(ErrorKind::Unavailable, "Modal finds no place for the sandbox");
        tokio::time::timeout(PLACE_PATIENCE, found).await.map_err(late)?
    }

    /// Returns the way to a sandbox's worker.
    pub async fn access(&self, id: &str, task_id: &str) -> Result<CommandRouterAccess> {
        if is_v1(id) {
            let request = OfSandbox { sandbox_id: task_id.to_owned() };
            return self.call("TaskGetCommandRouterAccess", &request).await;
        }
        let request = OfSandbox { sandbox_id: id.to_owned() };
        self.call("SandboxGetCommandRouterAccess", &request).await
    }

    /// Ends a sandbox, and waits a while for its end. One that is gone is fine.
    pub async fn terminate(&self, id: &str) -> Result<()> {
        let request = OfSandbox { sandbox_id: id.to_owned() };
        let told = self.call::<Empty>(&of_version("SandboxTerminate", id), &request).await;
        match told {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        match self.wait(id, END_PATIENCE_S).await {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::debug!(%error, "the end of a sandbox could not be awaited");
            }
            _ => {}
        }
        Ok(())
    }
}

fn ended(listed: &SandboxInfoMessage) -> bool {
    let result = listed.task_info.as_ref().and_then(|info| info.result.as_ref());
    result.is_some_and(|result| result.status != 0)
}

fn unreadable() -> Error {
    Error::new(ErrorKind::Unavailable, "Modal's answer can't be read")
}

/// Tells whether a sandbox belongs to the older of Modal's two backends, which those with a GPU do.
fn is_v1(id: &str) -> bool {
    id.strip_prefix("sb-")
        .is_some_and(|rest| rest.len() == 22 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Returns the name of a call for the backend of a sandbox.
fn of_version(method: &str, id: &str) -> String {
    if is_v1(id) { method.to_owned() } else { format!("{method}V2") }
}

/// Returns half the time for which a token is good, by the clock that made it.
fn half_life(token: &str) -> Option<Duration> {
    #[derive(serde::Deserialize)]
    struct Times {
        iat: f64,
        exp: f64,
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let Times { iat, exp } = serde_json::from_slice(&payload).ok()?;
    Duration::try_from_secs_f64((exp - iat) / 2.0).ok()
}

/// Tells whether a call was refused because of the token of a worker.
pub(super) fn is_unauthenticated(failure: &GrpcFailure) -> bool {
    failure.is(GrpcCode::UNAUTHENTICATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_sandbox_is_in_its_id() {
        assert!(is_v1("sb-0123456789ABCDEFabcdef"));
        assert_eq!(of_version("SandboxWait", "sb-0123456789ABCDEFabcdef"), "SandboxWait");
        for newer in ["sb-0123456789ABCDEFabcde", "sb-01234567-9ABCDEFabcdef", "x-0123456789ABCDEFabcdef"] {
            assert_eq!(of_version("SandboxWait", newer), "SandboxWaitV2");
        }
    }

    #[test]
    fn half_the_life_of_a_token_is_told_by_the_clock_that_made_it() {
        let token = |payload: &str| format!("x.{}.y", URL_SAFE_NO_PAD.encode(payload));
        assert_eq!(half_life(&token(r#"{"iat":10,"exp":30}"#)), Some(Duration::from_secs(10)));
        assert_eq!(half_life(&token(r#"{"iat":30,"exp":10}"#)), None);
        assert_eq!(half_life(&token(r#"{"exp":10}"#)), None);
        assert_eq!(half_life("no token"), None);
    }
}
