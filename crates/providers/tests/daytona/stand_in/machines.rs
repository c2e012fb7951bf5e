//! The sandboxes of the stand-in. As at the vendor's, a change is begun by a call, and done a little later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use eyot::{NetworkMode, Sandbox, SandboxProvider, SandboxSpec};
use eyot_native::NativeProvider;
use serde_json::{Value, json};

use super::clock::stamp;
use super::machine::Machine;

/// The sandboxes of one organization.
pub struct Machines {
    pub native: Arc<NativeProvider>,
    toolbox: String,
    skew_s: i64,
    all: Mutex<Vec<Arc<Machine>>>,
}

/// Makes the body of a refusal as the vendor does.
pub fn refusal(status: StatusCode, message: &str) -> Response {
    let error = status.canonical_reason().unwrap_or_default();
    let body = json!({ "statusCode": status.as_u16(), "message": message, "error": error });
    (status, Json(body)).into_response()
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machines {
    pub fn new(native: Arc<NativeProvider>, toolbox: String, skew_s: i64) -> Self {
        Self { native, toolbox, skew_s, all: Mutex::default() }
    }

    /// Lists the sandboxes that are not gone.
    pub fn all(&self) -> Vec<Arc<Machine>> {
        locked(&self.all).iter().filter(|machine| !machine.is("destroyed")).cloned().collect()
    }

    /// Counts the sandboxes that were made, also those that are gone.
    pub fn count_made(&self) -> usize {
        locked(&self.all).len()
    }

    /// Finds a sandbox by its id or name.
    pub fn find(&self, named: &str) -> Option<Arc<Machine>> {
        let all = self.all();
        let by_id = all.iter().find(|machine| machine.id == named);
        by_id.or_else(|| all.iter().find(|machine| machine.name == named)).cloned()
    }

    pub fn find_or_refuse(&self, named: &str) -> Result<Arc<Machine>, Response> {
        let missing =
            || refusal(StatusCode::NOT_FOUND, &format!("Sandbox with ID or name {named} not found"));
        self.find(named).ok_or_else(missing)
    }

    /// Describes a sandbox. A list leaves the variables out.
    pub fn described(&self, machine: &Machine, is_listed: bool) -> Value {
        let mut body = machine.described();
        body["toolboxProxyUrl"] = json!(self.toolbox);
        if is_listed && let Some(body) = body.as_object_mut() {
            body.remove("env");
        }
        body
    }

    /// Begins to make a sandbox.
    pub fn create(&self, asked: &Value) -> Result<Arc<Machine>, Response> {
        let id = uuid::Uuid::new_v4().to_string();
        let name = asked["name"].as_str().unwrap_or(&id).to_owned();
        let map = |field: &str| -> BTreeMap<String, String> {
            serde_json::from_value(asked[field].clone()).unwrap_or_default()
        };
        let mut all = locked(&self.all);
        if all.iter().any(|machine| machine.name == name && !machine.is("destroyed")) {
            let message = format!("Sandbox with name {name} already exists");
            return Err(refusal(StatusCode::CONFLICT, &message));
        }
        let machine = Arc::new(Machine::new(id, name, map("labels"), asked, stamp(self.skew_s)));
        all.push(Arc::clone(&machine));
        drop(all);
        let spec = SandboxSpec {
            network: if machine.blocks_network { NetworkMode::None } else { NetworkMode::Egress },
            env: map("env"),
            user: Some("root".to_owned()),
            ..SandboxSpec::default()
        };
        let (native, making) = (Arc::clone(&self.native), Arc::clone(&machine));
        tokio::spawn(async move {
            match Sandbox::create(&*native, spec).await {
                Ok(sandbox) => {
                    making.take_over(sandbox.id().clone(), &native).await;
                    making.set("started");
                }
                Err(error) => {
                    eprintln!("the stand-in can't make a sandbox: {error:?}");
                    making.set("error");
                }
            }
        });
        Ok(machine)
    }

    /// Begins to change a sandbox: `stop`, `start` or `delete`.
    pub fn change(&self, machine: &Arc<Machine>, change: &str) -> Result<(), Response> {
        let (from, during, after) = match change {
            "stop" => ("started", "stopping", "stopped"),
            "start" => ("stopped", "starting", "started"),
            _ => ("", "destroying", "destroyed"),
        };
        if machine.is(after) {
            return Ok(());
        }
        if !machine.begin(from, during) {
            return Err(refusal(StatusCode::CONFLICT, "Sandbox state change in progress"));
        }
        let (native, changing) = (Arc::clone(&self.native), Arc::clone(machine));
        tokio::spawn(async move {
            let id = changing.native_id();
            let key = id.as_ref().map_or("", |id| id.as_str());
            let done = match after {
                "stopped" => native.sleep(key).await,
                "started" => native.wake(key).await.map(drop),
                _ => {
                    changing.end_terminals().await;
                    native.remove(key).await
                }
            };
            if let (Ok(()), Some(id)) = (&done, id.filter(|_| after == "started")) {
                changing.take_over(id, &native).await;
            }
            if after != "started" {
                changing.end_terminals().await;
            }
            match done {
                Err(error) if after != "destroyed" => {
                    eprintln!("the stand-in can't {after} a sandbox: {error:?}");
                    changing.set("error");
                }
                _ => changing.set(after),
            }
        });
        Ok(())
    }

    /// Ends a sandbox as the vendor does when its machine dies. Nothing that is connected is told.
    pub async fn lose(&self, named: &str) {
        let machine = self.find(named).expect("a sandbox");
        let id = machine.native_id().expect("a native sandbox");
        self.native.remove(id.as_str()).await.expect("a sandbox that can be removed");
        machine.set("destroyed");
    }
}
