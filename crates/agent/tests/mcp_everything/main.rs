//! Calls of all tools of `everything`, the MCP project's own server from npm, over both transports. Without npm or the
//! network, the tests show as ignored, with the reason. Any other failure to install the server fails the tests.

#[path = "../npm/mod.rs"]
mod npm;

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyot_agent::{McpConnection, McpServerOptions, McpTransport, connect_mcp_server};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_providers::memory::MemoryProvider;
use eyot_tools::{ToolContext, ToolOutput, Toolset, handle_tool_call};
use libtest_mimic::{Arguments, Failed, Trial};
use npm::{Missing, NpmPackages};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The time after which a wait counts as hanging.
const HANG: Duration = Duration::from_secs(60);

/// The transports: the server's name for it, ours, and the path.
const TRANSPORTS: [(&str, McpTransport, &str); 2] =
    [("streamableHttp", McpTransport::StreamableHttp, "/mcp"), ("sse", McpTransport::Sse, "/sse")];

/// A call: the server's own name of the tool, the arguments, and the texts that the answer must contain.
type Row = (&'static str, Value, &'static [&'static str]);

/// A call of every tool. A tool without a row fails the test.
fn rows() -> Vec<Row> {
    vec![
        ("echo", json!({"message": "hello"}), &["Echo: hello"]),
        (
            "get-annotated-message",
            json!({"messageType": "success", "includeImage": true}),
            &["Operation completed successfully\n\n[Image: image/png, ", " base64 chars]"],
        ),
        ("get-env", json!({}), &["seen by get-env"]),
        (
            "get-resource-links",
            json!({"count": 2}),
            &[
                "Here are 2 resource links",
                "[Resource link: Blob Resource 1 (demo://resource/dynamic/blob/1) - Resource 1: ",
            ],
        ),
        (
            "get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 1}),
            &["[Resource: demo://resource/dynamic/text/1]\n"],
        ),
        (
            "get-resource-reference",
            json!({"resourceType": "Blob", "resourceId": 2}),
            &["[Resource: demo://resource/dynamic/blob/2, ", " base64 chars]"],
        ),
        (
            "get-structured-content",
            json!({"location": "Chicago"}),
            &["Structured content:\n{\n  \"", "\"humidity\": 82", "}\n\n{\"temperature\":36"],
        ),
        ("get-sum", json!({"a": 2, "b": 40}), &["42"]),
        ("get-tiny-image", json!({}), &["[Image: image/png, "]),
        (
            "gzip-file-as-resource",
            json!({"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
            &["[Resource: demo://resource/session/a.gz, ", " base64 chars]"],
        ),
        (
            "gzip-file-as-resource",
            json!({"name": "b.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}),
            &["[Resource link: b.gz (demo://resource/session/b.gz)"],
        ),
        ("toggle-simulated-logging", json!({}), &["Started simulated"]),
        ("toggle-simulated-logging", json!({}), &["Stopped simulated"]),
        ("toggle-subscriber-updates", json!({}), &["Started simulated"]),
        ("toggle-subscriber-updates", json!({}), &["Stopped simulated"]),
        (
            "trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 2}),
            &["completed. Duration: 0.2 seconds"],
        ),
        (TASK_ONLY, json!({"topic": "tides"}), &["requires task augmentation"]),
    ]
}

/// The tool that is offered to every client but refuses plain calls, because it runs only in the background.
const TASK_ONLY: &str = "simulate-research-query";

/// The tools that the server offers only to clients with sampling, elicitation or roots. Our client has none of these.
const FOR_OTHER_CLIENTS: [&str; 6] = [
    "get-roots-list",
    "trigger-elicitation-request",
    "trigger-elicitation-request-async",
    "trigger-sampling-request",
    "trigger-sampling-request-async",
    "trigger-url-elicitation",
];

fn main() {
    let arguments = Arguments::from_args();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers");
    let program = NpmPackages::install(&arguments, "mcp-servers", sources, &[]);
    libtest_mimic::run(&arguments, trials(&program)).exit();
}

fn trials(program: &Result<NpmPackages, Missing>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for spoken in TRANSPORTS {
        let name = |case: &str| format!("{}_{case}", spoken.0.to_lowercase());
        trials.push(trial(&name("every_tool_is_called"), program, spoken, every_tool_is_called));
        trials.push(trial(&name("a_long_call_is_cancelled"), program, spoken, a_long_call_is_cancelled));
        trials.push(trial(&name("a_restart_is_survived"), program, spoken, a_restart_is_survived));
        trials.push(trial(
            &name("the_other_transport_is_named"),
            program,
            spoken,
            the_other_transport_is_named,
        ));
    }
    trials
}

fn trial<F>(
    name: &str,
    program: &Result<NpmPackages, Missing>,
    spoken: (&'static str, McpTransport, &'static str),
    case: fn(Server) -> F,
) -> Trial
where
    F: Future<Output = Result<(), Failed>> + 'static,
{
    npm::trial(name, program, move |program| {
        let program = program.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move { case(Server::start(program, spoken, free_port()?).await?).await })
    })
}

/// A running server.
struct Server {
    child: Child,
    program: NpmPackages,
    spoken: (&'static str, McpTransport, &'static str),
    port: u16,
}

impl Server {
    async fn start(
        program: NpmPackages,
        spoken: (&'static str, McpTransport, &'static str),
        port: u16,
    ) -> Result<Self, Failed> {
        let mut command =
            program.command("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        command.arg(spoken.0).env("PORT", port.to_string()).env("EYOT_MARK", "seen by get-env");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let server = Self { child, program, spoken, port };
        let began = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            ensure(began.elapsed() < HANG, "the server does not listen")?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(server)
    }

    fn options(&self) -> McpServerOptions {
        let url = format!("http://127.0.0.1:{}{}", self.port, self.spoken.2);
        McpServerOptions { transport: self.spoken.1, ..McpServerOptions::new(url) }
    }

    async fn connect(&self) -> Result<McpConnection, Failed> {
        Ok(connect_mcp_server("everything", self.options()).await?)
    }

    /// Connects until the server offers every tool that has a row.
    async fn connect_until_all_are_there(&self) -> Result<McpConnection, Failed> {
        let began = Instant::now();
        loop {
            let connection = self.connect().await?;
            let offers = |name: &str| connection.tools().iter().any(|tool| tool.name() == offered_name(name));
            let missing = rows().into_iter().find(|(name, ..)| !offers(name)).map(|(name, ..)| name);
            let Some(missing) = missing else { return Ok(connection) };
            ensure(began.elapsed() < HANG, format!("`{missing}` is not offered"))?;
            connection.close().await;
        }
    }

    async fn restart(mut self) -> Result<Self, Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Self::start(self.program.clone(), self.spoken, self.port).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn every_tool_is_called(server: Server) -> Result<(), Failed> {
    let connection = server.connect().await?;
    // The server adds some tools shortly after the handshake, so a later list may be longer.
    let later = server.connect_until_all_are_there().await?;
    for connection in [&connection, &later] {
        for tool in connection.tools() {
            let has_row = rows().iter().any(|(name, ..)| offered_name(name) == tool.name());
            ensure(has_row, format!("no row calls the tool `{}`", tool.name()))?;
        }
        for name in FOR_OTHER_CLIENTS {
            let is_offered = connection.tools().iter().any(|tool| tool.name() == offered_name(name));
            ensure(!is_offered, format!("`{name}` is offered"))?;
        }
    }
    for (name, arguments, expected) in rows() {
        let output = call(&connection, name, arguments).await?;
        let text = output.as_text();
        ensure(output.is_error == (name == TASK_ONLY), format!("{name}: {text}"))?;
        for expected in expected {
            ensure(text.contains(expected), format!("{name}: `{expected}` is not in {text}"))?;
        }
    }
    later.close().await;
    connection.close().await;
    Ok(())
}

async fn a_long_call_is_cancelled(server: Server) -> Result<(), Failed> {
    let connection = server.connect().await?;
    let goes_on = Arc::new(Notify::new());
    let heard = Arc::clone(&goes_on);
    let context = context()?.with_progress(move |_| heard.notify_one());
    let began = Instant::now();
    let arguments = json!({"duration": 50, "steps": 500});
    let calling = call_in(&context, &connection, "trigger-long-running-operation", arguments);
    let cancelling = async {
        goes_on.notified().await;
        context.cancel.cancel();
    };
    let (output, ()) = tokio::join!(calling, cancelling);
    let output = output?;
    ensure(output.is_error && output.as_text().contains("was cancelled"), output.as_text())?;
    ensure(began.elapsed() < HANG, "it took too long")?;
    let output = call(&connection, "echo", json!({"message": "on"})).await?;
    ensure(output.as_text() == "Echo: on", output.as_text())
}

async fn a_restart_is_survived(server: Server) -> Result<(), Failed> {
    let connection = server.connect().await?;
    let _server = server.restart().await?;
    let output = call(&connection, "echo", json!({"message": "again"})).await?;
    ensure(output.as_text() == "Echo: again", output.as_text())
}

async fn the_other_transport_is_named(server: Server) -> Result<(), Failed> {
    let (other, named) = match server.spoken.1 {
        McpTransport::StreamableHttp => (McpTransport::Sse, "transport: http"),
        McpTransport::Sse => (McpTransport::StreamableHttp, "transport: sse"),
    };
    let options = McpServerOptions { transport: other, ..server.options() };
    let error = match connect_mcp_server("everything", options).await {
        Ok(_) => return Err("it connects".into()),
        Err(error) => error,
    };
    ensure(error.hint().is_some_and(|hint| hint.contains(named)), format!("{error}: {:?}", error.hint()))
}

fn offered_name(name: &str) -> String {
    format!("mcp__everything__{name}")
}

fn context() -> Result<ToolContext, Failed> {
    let provider = Arc::new(MemoryProvider::default());
    Ok(ToolContext::new(SandboxPool::open(provider, PoolOptions::default())?))
}

async fn call(connection: &McpConnection, name: &str, input: Value) -> Result<ToolOutput, Failed> {
    call_in(&context()?, connection, name, input).await
}

async fn call_in(
    context: &ToolContext,
    connection: &McpConnection,
    name: &str,
    input: Value,
) -> Result<ToolOutput, Failed> {
    let tools = Toolset::new("mcp", connection.tools().to_vec())?;
    Ok(handle_tool_call(context, &tools, &offered_name(name), input).await)
}

/// Returns a free port. The server can't take over a listener, so another program could take the port before it.
fn free_port() -> Result<u16, Failed> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns an error with the message unless the condition holds.
fn ensure(condition: bool, message: impl Into<String>) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into().into()) }
}
