//! The sandboxes of the stand-in, and its tokens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyot::{NetworkMode, Sandbox, SandboxSpec};
use eyot_native::NativeProvider;
use eyot_providers::modal::wire::{
    GenericResult, NETWORK_BLOCKED, SUCCESS, SandboxCreateV2Request, SandboxTag, SecretSource,
    SecretSourceKind, TERMINATED, TIMEOUT,
};
use tokio::sync::watch;

use super::clock::{now_s, token};
use super::command::{Command, NewCommand};
use super::serve::Refusal;

/// The sandboxes.
pub struct Records {
    pub native: Arc<NativeProvider>,
    pub url: String,
    pub skew_s: i64,
    sandboxes: Mutex<Vec<Arc<Record>>>,
    apps: Mutex<BTreeMap<String, String>>,
    /// The images that were built, by their definitions.
    images: Mutex<BTreeMap<String, String>>,
    numbers: AtomicU64,
    /// The series of the tokens that are taken.
    series: AtomicU64,
    given: Mutex<BTreeMap<String, u64>>,
    /// The sandboxes that creates with these keys have made.
    keys: Mutex<BTreeMap<String, String>>,
    /// Held while a sandbox is made.
    pub making: tokio::sync::Mutex<()>,
}

/// A sandbox.
pub struct Record {
    pub id: String,
    pub task_id: String,
    pub app_id: String,
    pub name: String,
    pub tags: Mutex<Vec<SandboxTag>>,
    pub created_at: f64,
    pub sandbox: Sandbox,
    pub result: watch::Sender<Option<GenericResult>>,
    pub commands: Mutex<BTreeMap<String, Arc<Command>>>,
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    pub fn runs(&self) -> bool {
        self.result.borrow().is_none()
    }

    pub fn command(&self, exec_id: &str) -> Option<Arc<Command>> {
        locked(&self.commands).get(exec_id).cloned()
    }

    /// Ends it, unless it has ended.
    pub async fn finish(&self, status: i32, exitcode: i32) {
        let result = GenericResult { status, exception: String::new(), exitcode };
        let is_first = self.result.send_if_modified(|kept| {
            let is_first = kept.is_none();
            kept.get_or_insert(result);
            is_first
        });
        if is_first {
            self.sandbox.destroy().await.expect("a sandbox that can be destroyed");
        }
    }
}

/// Returns the variables of a request.
pub fn variables(sources: Vec<SecretSource>) -> BTreeMap<String, String> {
    let of = |source: SecretSource| match source.source {
        Some(SecretSourceKind::Env(map)) => map.contents,
        _ => BTreeMap::new(),
    };
    sources.into_iter().flat_map(of).collect()
}

impl Records {
    pub fn new(native: Arc<NativeProvider>, url: String, skew_s: i64) -> Self {
        Self {
            native,
            url,
            skew_s,
            sandboxes: Mutex::default(),
            apps: Mutex::default(),
            images: Mutex::default(),
            numbers: AtomicU64::new(1),
            series: AtomicU64::new(0),
            given: Mutex::default(),
            keys: Mutex::default(),
            making: tokio::sync::Mutex::default(),
        }
    }

    /// Makes a token.
    pub fn token(&self) -> String {
        let series = self.series.load(Ordering::Relaxed);
        let token = token(self.skew_s, series);
        locked(&self.given).insert(token.clone(), series);
        token
    }

    pub fn is_valid(&self, token: &str) -> bool {
        locked(&self.given).get(token) == Some(&self.series.load(Ordering::Relaxed))
    }

    pub fn expire_tokens(&self) {
        self.series.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the id of an app, by its name.
    pub fn app(&self, name: &str) -> String {
        let made = || format!("ap-{:022}", self.numbers.fetch_add(1, Ordering::Relaxed));
        locked(&self.apps).entry(name.to_owned()).or_insert_with(made).clone()
    }

    /// Returns the id of an image, by its definition.
    pub fn image(&self, definition: &str) -> String {
        let made = || format!("im-{:022}", self.numbers.fetch_add(1, Ordering::Relaxed));
        locked(&self.images).entry(definition.to_owned()).or_insert_with(made).clone()
    }

    /// Removes all apps and images.
    pub fn remove_apps_and_images(&self) {
        locked(&self.apps).clear();
        locked(&self.images).clear();
    }

    fn has(&self, app_id: &str, image_id: &str) -> bool {
        locked(&self.apps).values().any(|id| id == app_id)
            && locked(&self.images).values().any(|id| id == image_id)
    }

    pub fn running(&self) -> Vec<String> {
        self.all().iter().filter(|record| record.runs()).map(|record| record.id.clone()).collect()
    }

    /// Returns all sandboxes, oldest first.
    pub fn all(&self) -> Vec<Arc<Record>> {
        locked(&self.sandboxes).clone()
    }

    pub fn find(&self, id: &str) -> Option<Arc<Record>> {
        self.all().into_iter().find(|record| record.id == id)
    }

    pub fn of_task(&self, task_id: &str) -> Option<Arc<Record>> {
        self.all().into_iter().find(|record| record.task_id == task_id)
    }

    pub async fn lose(&self, id: &str) {
        if let Some(record) = self.find(id) {
            record.finish(TERMINATED, 137).await;
        }
    }

    /// Makes a sandbox; one for all requests with one key.
    pub async fn create(
        &self,
        request: SandboxCreateV2Request,
        key: Option<String>,
    ) -> Result<Arc<Record>, Refusal> {
        let _turn = self.making.lock().await;
        if let Some(made) = key.as_ref().and_then(|key| self.find(locked(&self.keys).get(key)?)) {
            return Ok(made);
        }
        let definition = request.definition.unwrap_or_default();
        if !self.has(&request.app_id, &definition.image_id) {
            return Err(Refusal { code: 5, message: "there is no such app, or no such image" });
        }
        let name = definition.name.clone().unwrap_or_default();
        let has_name =
            |record: &Arc<Record>| record.runs() && record.app_id == request.app_id && record.name == name;
        if !name.is_empty() && self.all().iter().any(has_name) {
            return Err(Refusal { code: 6, message: "a sandbox of this name runs in the app" });
        }
        let blocked = definition.network_access.is_some_and(|a| a.network_access_type == NETWORK_BLOCKED);
        let spec = SandboxSpec {
            network: if blocked { NetworkMode::None } else { NetworkMode::Egress },
            env: variables(request.secret_sources),
            user: Some("root".to_owned()),
            ..SandboxSpec::default()
        };
        let sandbox = Sandbox::create(&*self.native, spec).await.map_err(|error| {
            eprintln!("the stand-in can't make a sandbox: {error:?}");
            Refusal { code: 13, message: "the sandbox can't be made" }
        })?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let record = Arc::new(Record {
            id: format!("sb-{number:08}V2"),
            task_id: format!("ta-{number:08}V"),
            app_id: request.app_id,
            name,
            tags: Mutex::new(request.tags),
            // No two have one time.
            created_at: now_s(self.skew_s) + number as f64 / 1e6,
            sandbox,
            result: watch::Sender::new(None),
            commands: Mutex::default(),
        });
        locked(&self.sandboxes).push(Arc::clone(&record));
        if let Some(key) = key {
            locked(&self.keys).insert(key, record.id.clone());
        }
        tokio::spawn(end_in_time(Arc::clone(&record), definition.timeout_secs));
        if !definition.entrypoint_args.is_empty() {
            let new = NewCommand { argv: definition.entrypoint_args, ..NewCommand::default() };
            tokio::spawn(end_with_first_process(Arc::clone(&record), new));
        }
        Ok(record)
    }
}

async fn end_in_time(record: Arc<Record>, timeout_s: u32) {
    let mut result = record.result.subscribe();
    let ended = result.wait_for(Option::is_some);
    if tokio::time::timeout(Duration::from_secs(timeout_s.into()), ended).await.is_err() {
        record.finish(TIMEOUT, 124).await;
    }
}

/// Runs the first process of a sandbox, which ends with it.
async fn end_with_first_process(record: Arc<Record>, new: NewCommand) {
    let Ok(command) = Command::start(&record, new).await else { return };
    if let Some(eyot_providers::modal::wire::ExecEnd::Code(code)) = command.end().await {
        record.finish(if code == 0 { SUCCESS } else { 2 }, code).await;
    }
}
