//! Tools that a provider brings.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, ErrorKind, Isolation, ProviderTool, ProviderToolAnswer, ProviderTools, Result,
    Sandbox, SandboxInfo, SandboxProvider, ValidSpec,
};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_tools::{
    PROVIDER_TOOLSET, ToolContext, ToolDef, ToolFormat, ToolOutput, default_tools, handle_tool_call,
    toolset_over,
};
use serde_json::{Value, json};

use crate::scripted::{Provider, Scripted};

/// A provider whose sandboxes have a notebook.
struct Notebooks {
    inner: Provider,
    declared: Vec<ProviderTool>,
}

struct Cells(Vec<ProviderTool>);

#[async_trait]
impl ProviderTools for Cells {
    fn declare(&self) -> Vec<ProviderTool> {
        self.0.clone()
    }

    async fn call(&self, sandbox: &Sandbox, name: &str, arguments: Value) -> Result<ProviderToolAnswer> {
        if arguments["cell"] == "lost" {
            return Err(
                eyot::Error::new(ErrorKind::NotFound, "there is no such cell").with_hint("run `list`")
            );
        }
        if arguments["cell"] == "long" {
            return Ok(ProviderToolAnswer { text: "x".repeat(1 << 20), ..ProviderToolAnswer::default() });
        }
        let text = format!("{name} {} in {}", arguments["cell"], sandbox.name());
        Ok(ProviderToolAnswer { text, structured: Some(arguments), is_error: false })
    }
}

#[async_trait]
impl SandboxProvider for Notebooks {
    fn name(&self) -> &str {
        "notebooks"
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn isolation(&self) -> Result<Isolation> {
        self.inner.isolation().await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        self.inner.create(spec).await
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        self.inner.open(id_or_name).await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.inner.list().await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.inner.remove(id_or_name).await
    }

    fn tools(&self) -> Option<Arc<dyn ProviderTools>> {
        Some(Arc::new(Cells(self.declared.clone())))
    }
}

fn run_cell() -> ProviderTool {
    ProviderTool {
        name: "run_cell".to_owned(),
        description: "Runs a cell.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": { "cell": { "type": "string" }, "sandbox": { "type": "string" } },
            "required": ["cell"],
            "additionalProperties": false
        }),
        read_only: false,
    }
}

fn notebooks(declared: Vec<ProviderTool>) -> (Arc<Notebooks>, ToolContext) {
    notebooks_of(&Scripted::new(&[]), declared)
}

fn notebooks_of(driver: &Arc<Scripted>, declared: Vec<ProviderTool>) -> (Arc<Notebooks>, ToolContext) {
    let inner = Provider::of(driver);
    let provider = Arc::new(Notebooks { inner, declared });
    let pool = SandboxPool::open(provider.clone(), PoolOptions::default()).unwrap();
    (provider, ToolContext::new(pool))
}

#[tokio::test]
async fn the_tools_of_a_provider_replace_the_default_list_and_no_named_one() {
    let (provider, _) = notebooks(vec![run_cell()]);
    let tools = default_tools(&*provider).unwrap();
    assert_eq!((tools.name(), tools.names()), (PROVIDER_TOOLSET, vec!["run_cell"]));
    assert_eq!(
        tools.schemas(ToolFormat::Anthropic),
        json!([{ "name": "run_cell", "description": "Runs a cell.", "input_schema": run_cell().input_schema }])
    );
    assert_eq!(toolset_over(&*provider, PROVIDER_TOOLSET).unwrap().names(), ["run_cell"]);
    assert!(toolset_over(&*provider, "pool").unwrap().get("shell").is_some());
    // What belongs to the program and to no sandbox is appended.
    let task = ToolDef::new("task", "Does a part.", json!({ "type": "object" }), async |_, _| {
        Ok(ToolOutput::text("done"))
    });
    assert_eq!(tools.with(task.unwrap()).unwrap().names(), ["run_cell", "task"]);
}

#[tokio::test]
async fn without_tools_of_its_own_a_provider_has_the_toolset_pool() {
    let provider = Provider::of(&Scripted::new(&[]));
    assert_eq!(default_tools(&provider).unwrap().name(), "pool");
    let missing = toolset_over(&provider, PROVIDER_TOOLSET).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("scripted brings no tools"), "{missing}");
}

#[tokio::test]
async fn a_call_is_answered_by_the_provider_in_the_sandbox_that_it_names() {
    let (provider, context) = notebooks(vec![run_cell()]);
    let tools = default_tools(&*provider).unwrap();
    let call = async |input: Value| handle_tool_call(&context, &tools, "run_cell", input).await;
    let answered = call(json!({ "cell": "1" })).await;
    assert_eq!(answered.as_text(), "run_cell \"1\" in default");
    assert_eq!((answered.structured, answered.is_error), (Some(json!({ "cell": "1" })), false));
    assert_eq!(call(json!({ "cell": "2", "sandbox": "other" })).await.as_text(), "run_cell \"2\" in other");
    let failed = call(json!({ "cell": "lost" })).await;
    assert_eq!(
        (failed.as_text().as_str(), failed.is_error),
        ("there is no such cell\nhint: run `list`", true)
    );
    let long = call(json!({ "cell": "long" })).await.as_text();
    assert!(long.len() < 100_000 && long.contains("left out"), "{} bytes", long.len());
}

#[tokio::test]
async fn wrong_arguments_reach_no_provider() {
    let driver = Scripted::new(&[]);
    let (provider, context) = notebooks_of(&driver, vec![run_cell()]);
    let tools = default_tools(&*provider).unwrap();
    for wrong in [json!({}), json!({ "cell": 1 }), json!({ "cell": "1", "more": 1 })] {
        let refused = handle_tool_call(&context, &tools, "run_cell", wrong).await;
        assert!(refused.is_error && !refused.as_text().contains(" in default"), "{refused:?}");
    }
    assert_eq!(driver.log.count("create"), 0);
}

#[tokio::test]
async fn a_declaration_that_is_no_tool_is_refused_by_the_providers_name() {
    let twice = vec![run_cell(), run_cell()];
    let nameless = vec![ProviderTool { name: "run cell".to_owned(), ..run_cell() }];
    let shapeless = vec![ProviderTool { input_schema: json!({ "type": "string" }), ..run_cell() }];
    for declared in [twice, nameless, shapeless] {
        let (provider, _) = notebooks(declared);
        let error = default_tools(&*provider).unwrap_err();
        assert!(error.to_string().starts_with("declare the tools of notebooks: "), "{error}");
    }
}
