//! Tools that a provider brings, over HTTP and MCP.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, ExecOptions, Isolation, ProviderTool, ProviderToolAnswer, ProviderTools, Result,
    Sandbox, SandboxCowMounts, SandboxImages, SandboxInfo, SandboxNamer, SandboxProvider, SandboxSnapshots,
    Usage, ValidSpec,
};
use eyot_native::NativeProvider;
use serde_json::{Value, json};

use crate::ground::{Ground, kind, value};
use crate::mcp::{answer, say, session};

/// Native sandboxes with a tool of their own.
struct Greeters(Arc<NativeProvider>);

struct Greet;

#[async_trait]
impl ProviderTools for Greet {
    fn declare(&self) -> Vec<ProviderTool> {
        let schema =
            json!({ "type": "object", "properties": { "whom": { "type": "string" } }, "required": ["whom"] });
        vec![ProviderTool {
            name: "greet".to_owned(),
            description: "Greets somebody.".to_owned(),
            input_schema: schema,
            read_only: true,
        }]
    }

    async fn call(&self, sandbox: &Sandbox, _: &str, arguments: Value) -> Result<ProviderToolAnswer> {
        let line = format!("echo hello {} from $(hostname)", arguments["whom"]);
        let said = sandbox.exec(line, ExecOptions::default()).await?;
        Ok(ProviderToolAnswer { text: said.stdout_text(), ..ProviderToolAnswer::default() })
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl SandboxProvider for Greeters {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn lives_with_its_process(&self) -> bool {
        self.0.lives_with_its_process()
    }

    async fn isolation(&self) -> Result<Isolation> {
        self.0.isolation().await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        self.0.create(spec).await
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        self.0.open(id_or_name).await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.0.list().await
    }

    async fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        self.0.list_with_usage().await
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        self.0.info(id_or_name).await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.0.remove(id_or_name).await
    }

    fn images(&self, names: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        self.0.images(names)
    }

    fn cow_mounts(&self) -> Result<Arc<dyn SandboxCowMounts>> {
        self.0.cow_mounts()
    }

    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        self.0.snapshots()
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        self.0.sleep(id_or_name).await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        self.0.wake(id_or_name).await
    }

    async fn has_workspace(&self, id: &str) -> Result<bool> {
        self.0.has_workspace(id).await
    }

    fn tools(&self) -> Option<Arc<dyn ProviderTools>> {
        Some(Arc::new(Greet))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_toolset_provider_is_declared_and_called_and_the_others_stay() {
    let ground = Ground::over(|native| Arc::new(Greeters(native))).await;
    let declared = value(ground.get("/v1/toolsets/provider?format=anthropic").await).await;
    assert_eq!(declared.as_array().unwrap().len(), 1);
    assert_eq!(declared[0]["name"], "greet", "{declared}");
    let called = value(ground.post("/v1/toolsets/provider/greet", json!({ "whom": "world" })).await).await;
    assert_eq!(called["is_error"], false, "{called}");
    assert!(called["content"][0].as_str().unwrap().starts_with("hello world from "), "{called}");
    let wrong = value(ground.post("/v1/toolsets/provider/greet", json!({})).await).await;
    assert_eq!(wrong["is_error"], true, "{wrong}");
    assert_eq!(kind(ground.post("/v1/toolsets/provider/shell", json!({})).await).await, "not_found");
    let pool = value(ground.post("/v1/toolsets/pool/shell", json!({ "command": "echo still" })).await).await;
    assert!(pool["content"][0].as_str().unwrap().contains("still"), "{pool}");
    let events = ground.get("/v1/events").await.text().await.unwrap();
    assert!(events.contains("echo hello"), "what the tool ran is in the events: {events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_shows_what_the_provider_brings_in_place_of_the_default_list() {
    let ground = Ground::over(|native| Arc::new(Greeters(native))).await;
    let id = session(&ground, &ground.ours).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let listed = answer(say(&ground, &ground.ours, Some(&id), list).await).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["greet"]);
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "greet", "arguments": { "whom": "mcp" } } });
    let called = answer(say(&ground, &ground.ours, Some(&id), call).await).await;
    let text = called["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("hello mcp from "), "{called}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_tools_of_its_own_has_no_toolset_provider() {
    let ground = Ground::new().await;
    assert_eq!(kind(ground.get("/v1/toolsets/provider").await).await, "not_found");
}
