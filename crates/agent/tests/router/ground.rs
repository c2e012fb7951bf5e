//! A server with some agents, and its client.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use eyot_agent::{
    AgentContext, AgentError, AgentResult, AgentSandbox, Agents, HarnessOptions, LogLevel, MemoryStore,
    PromptOptions, RouterOptions, RunAccess, ScriptedModel, ScriptedTurn, admin_router, router,
};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The header by which a test says which pools its caller has.
const POOLS: &str = "x-test-pools";

pub(crate) struct Ground {
    pub(crate) agents: Agents,
    pub(crate) address: SocketAddr,
    /// Each permit lets the agent `steps` write one line.
    pub(crate) steps: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
    client: reqwest::Client,
}

impl Ground {
    pub(crate) async fn new() -> Self {
        Self::with(RouterOptions::default()).await
    }

    pub(crate) async fn with(options: RouterOptions) -> Self {
        let (agents, steps) = agents();
        let stop = options.stop.clone();
        let app = router(agents.clone(), options.clone())
            .nest("/admin", admin_router(agents.clone(), options))
            .layer(from_fn(tell_access));
        let address = serve(app).await;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { agents, address, steps, stop, client }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    /// Gets JSON as a caller of this pool.
    pub(crate) async fn get_as(&self, pools: &str, path: &str) -> (u16, Value) {
        let answer = self.request(Method::GET, path).header(POOLS, pools).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        self.get(path).await.json().await.unwrap()
    }

    /// Starts an agent and waits for it, or as `with` says.
    pub(crate) async fn invoke(
        &self,
        path: &str,
        payload: Value,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Response {
        with(self.request(Method::POST, path)).json(&payload).send().await.unwrap()
    }

    /// Starts an agent without waiting, and returns the id of the run.
    pub(crate) async fn leave(&self, path: &str, payload: Value) -> String {
        let answer = self.invoke(path, payload, |request| request.header("x-webhook", "true")).await;
        assert_eq!(answer.status(), 202);
        answer.json::<Value>().await.unwrap()["runId"].as_str().unwrap().to_owned()
    }

    /// Starts an agent as a caller of this pool, waits for it, and returns the id of the run.
    pub(crate) async fn run_as(&self, pool: &str, path: &str) -> String {
        let answer = self.invoke(path, json!({}), |request| request.header(POOLS, pool)).await;
        answer.json::<Value>().await.unwrap()["_meta"]["runId"].as_str().unwrap().to_owned()
    }

    /// Reads a stream of a run to its end.
    pub(crate) async fn stream(&self, run: &str, last_event_id: Option<&str>) -> String {
        let request = self.request(Method::GET, &format!("/runs/{run}/stream"));
        let request = match last_event_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        request.send().await.unwrap().text().await.unwrap()
    }
}

/// The agents, and the permits of `steps`.
pub(crate) fn agents() -> (Agents, Arc<Semaphore>) {
    let (agents, steps) = (Agents::new(Arc::new(MemoryStore::default())), Arc::new(Semaphore::new(0)));
    register(&agents, &steps);
    (agents, steps)
}

/// The events of a stream: type, id and data.
pub(crate) fn frames(stream: &str) -> Vec<(String, u64, Value)> {
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty() && !frame.starts_with(':'));
    let field = |frame: &str, name: &str| {
        let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    };
    frames
        .map(|frame| {
            let data = serde_json::from_str(&field(frame, "data")).unwrap();
            (field(frame, "event"), field(frame, "id").parse().unwrap(), data)
        })
        .collect()
}

async fn serve(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Tells the routes which pools the caller has, as a program with tenants does.
async fn tell_access(mut request: Request, next: Next) -> axum::response::Response {
    let pools = request.headers().get(POOLS).and_then(|pools| pools.to_str().ok());
    if let Some(pools) = pools {
        let pools: Vec<String> = pools.split(',').map(str::to_owned).collect();
        let access = RunAccess { pool: pools.first().cloned(), pools: Some(pools) };
        request.extensions_mut().insert(access);
    }
    next.run(request).await
}

fn register(agents: &Agents, steps: &Arc<Semaphore>) {
    agents.register_webhook("echo", async |context: AgentContext| Ok(context.payload().clone())).unwrap();
    agents.register_webhook("nothing", async |_| Ok(Value::Null)).unwrap();
    agents
        .register_webhook("fails", async |_| {
            Err(AgentError::Other(eyot::Error::new(eyot::ErrorKind::Internal, "a secret of the inside")))
        })
        .unwrap();
    agents.register("hidden", async |_| Ok(json!("hidden"))).unwrap();
    agents.register_webhook("talks", talk).unwrap();
    let steps = Arc::clone(steps);
    agents
        .register_webhook("steps", move |context: AgentContext| {
            let steps = Arc::clone(&steps);
            async move {
                let lines = context.payload()["lines"].as_u64().unwrap_or_default();
                for line in 0..lines {
                    steps.acquire().await.unwrap().forget();
                    context.log(LogLevel::Info, &format!("line {line}"), Map::new());
                }
                Ok(json!(lines))
            }
        })
        .unwrap();
}

/// Calls the tool that the payload names, if it names one, and says hello.
async fn talk(context: AgentContext) -> AgentResult<Value> {
    let mut turns = vec![ScriptedTurn::text("hello")];
    if let Some(tool) = context.payload()["call"].as_str() {
        turns.insert(0, ScriptedTurn::call("call-1", tool, json!({"city": "Rome"})));
    }
    let options = HarnessOptions {
        model: Some(Arc::new(ScriptedModel::new(turns))),
        sandbox: AgentSandbox::None,
        ..HarnessOptions::default()
    };
    let session = context.init(options).await?.session().await?;
    let answer = session.prompt("go", PromptOptions::default()).await?;
    Ok(json!({"text": answer.text}))
}
