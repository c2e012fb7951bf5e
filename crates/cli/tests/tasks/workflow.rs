//! Seed 002's workflow: a front end is built in a sandbox of `node:22` and served by one of
//! `python:3.12`, on native, on Docker, and with one sandbox on each. Without a registry, the build
//! tool and the web framework come from the images: `npm run build` runs Node, and Python's
//! standard library serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use eyot::{SandboxProvider, SandboxSpec};
use eyot_engine::{PoolOptions, SandboxPool, Transfer, transfer};
use eyot_tools::{ToolContext, Toolset, handle_tool_call, toolset};
use libtest_mimic::{Completion, Trial};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{Ground, NODE, PYTHON, block_on};
use crate::table::ignored;
use crate::transcript::Check;

/// Makes a test for each placement of the two sandboxes.
pub fn trials(ground: &Ground) -> Vec<Trial> {
    let on_native = "workflow::eight_calls_on_native";
    let on_docker = "workflow::eight_calls_on_docker";
    let across = "workflow::eight_calls_from_a_sandbox_on_native_to_one_on_docker";
    let back = "workflow::eight_calls_from_a_sandbox_on_docker_to_one_on_native";
    let native = match ground.native_is_missing() {
        Some(reason) => ignored(on_native.to_owned(), reason),
        None => {
            let ground = ground.clone();
            Trial::ignorable_test(on_native, move || run(&ground.native()?, None))
        }
    };
    let docker = match &ground.docker {
        Err(reason) => [on_docker, across, back].map(|name| ignored(name.to_owned(), reason.clone())).into(),
        Ok(docker) => with_docker([on_docker, across, back], ground, docker.clone()),
    };
    std::iter::once(native).chain(docker).collect()
}

fn with_docker(
    [on_docker, across, back]: [&'static str; 3],
    ground: &Ground,
    docker: Arc<dyn SandboxProvider>,
) -> Vec<Trial> {
    let (one, two) = (ground.clone(), ground.clone());
    let (alone, target, source) = (Arc::clone(&docker), Arc::clone(&docker), docker);
    vec![
        Trial::ignorable_test(on_docker, move || run(&alone, None)),
        Trial::ignorable_test(across, move || run(&one.native()?, Some(&target))),
        Trial::ignorable_test(back, move || run(&source, Some(&two.native()?))),
    ]
}

fn run(
    frontend: &Arc<dyn SandboxProvider>,
    backend: Option<&Arc<dyn SandboxProvider>>,
) -> Result<Completion, libtest_mimic::Failed> {
    block_on(async {
        let frontend = Session::open(frontend)?;
        let backend = backend.map(Session::open).transpose()?;
        let done = eight_calls(&frontend, backend.as_ref()).await;
        frontend.context.pool.close().await?;
        if let Some(backend) = backend {
            backend.context.pool.close().await?;
        }
        done
    })?;
    Ok(Completion::Completed)
}

/// A model's session on one provider, with the image names that models know.
struct Session {
    context: ToolContext,
    tools: Toolset,
}

impl Session {
    fn open(provider: &Arc<dyn SandboxProvider>) -> Check<Self> {
        let mut template = SandboxSpec::default();
        if provider.name() == "docker" {
            template.container.pull = eyot::PullPolicy::Never;
        }
        let images: BTreeMap<_, _> = [("node:22", NODE), ("python:3.12", PYTHON)]
            .map(|(name, image)| (name.into(), image.into()))
            .into();
        let options = PoolOptions { images, template, ..PoolOptions::default() };
        let pool = SandboxPool::open(Arc::clone(provider), options)?;
        Ok(Self { context: ToolContext::new(pool), tools: toolset("pool")? })
    }

    /// Returns the answer of a call that must succeed.
    async fn call(&self, tool: &str, input: Value) -> Check<Value> {
        let output = handle_tool_call(&self.context, &self.tools, tool, input).await;
        match (output.is_error, output.structured.clone()) {
            (false, Some(answer)) => Ok(answer),
            _ => Err(format!("{tool}: {}", output.as_text()).into()),
        }
    }

    /// Returns the output of a command that must exit with 0.
    async fn shell(&self, sandbox: &str, command: &str) -> Check<String> {
        let input = json!({ "sandbox": sandbox, "command": command, "timeout_ms": 120_000 });
        let answer = self.call("shell", input).await?;
        equal(&answer["exit_code"], &json!(0)).map_err(|_| format!("{command}: {answer}"))?;
        Ok(answer["stdout"].as_str().unwrap_or_default().to_owned())
    }
}

fn equal(found: &Value, expected: &Value) -> Check {
    if found == expected { Ok(()) } else { Err(format!("{found} in place of {expected}").into()) }
}

const BUILD: &str = r#"mkdir -p app/src && cd app && node --version | grep -q '^v22' &&
echo '{"name":"app","private":true,"scripts":{"build":"node build.mjs"}}' > package.json &&
echo "export const title = 'Grüße';" > src/title.mjs &&
cat > build.mjs <<'END'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { title } from './src/title.mjs';
mkdirSync('dist/assets', { recursive: true });
writeFileSync('dist/index.html', `<h1>${title}</h1>\n`);
writeFileSync('dist/assets/large.bin', Buffer.alloc(3_000_000, 'eyot'));
symlinkSync('index.html', 'dist/latest.html');
END
npm run build --silent && ls dist"#;

const MAIN: &str = "\
import http.server, json, os

class Site(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path != '/api':
            return super().do_GET()
        answer = json.dumps({'files': sorted(os.listdir('.'))}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

os.chdir('/home/user/app/static')
http.server.ThreadingHTTPServer(('0.0.0.0', 8000), Site).serve_forever()
";

const DIST: &str = "/home/user/app/dist";
const STATIC: &str = "/home/user/app/static";

/// Does the workflow's eight steps. Without a second session, the first one has both sandboxes.
async fn eight_calls(frontend: &Session, other: Option<&Session>) -> Check {
    let backend = other.unwrap_or(frontend);
    for (session, name, image) in [(frontend, "frontend", "node:22"), (backend, "backend", "python:3.12")] {
        let made = session.call("sandbox_create", json!({ "sandbox": name, "image": image })).await?;
        equal(&made, &json!({ "sandbox": name, "created": true, "image": image }))?;
    }
    equal(&json!(frontend.shell("frontend", BUILD).await?), &json!("assets\nindex.html\nlatest.html\n"))?;
    backend.shell("backend", "mkdir app && python3 --version && ! command -v node").await?;
    let write = json!({ "sandbox": "backend", "path": "/home/user/app/main.py", "content": MAIN });
    equal(&backend.call("write_file", write).await?, &json!({ "ok": true, "size": MAIN.len() }))?;
    match other {
        None => move_by_tool(frontend).await?,
        Some(backend) => move_by_handles(frontend, backend).await?,
    }
    backend.shell("backend", "cd /home/user/app && python3 main.py > log 2>&1 &").await?;
    backend.context.sandbox(Some("backend")).await?.wait_for_port(8000, 120_000).await?;
    let url = backend.call("browse", json!({ "sandbox": "backend", "port": 8000 })).await?["url"].clone();
    check_site(url.as_str().ok_or("no URL")?).await?;
    let sum = |folder: &str| format!("sha256sum < {folder}/assets/large.bin");
    let sums = (frontend.shell("frontend", &sum(DIST)).await?, backend.shell("backend", &sum(STATIC)).await?);
    equal(&json!(sums.0), &json!(sums.1))
}

/// Copies within a pool, as a model does it.
async fn move_by_tool(session: &Session) -> Check {
    let input = json!({
        "from_sandbox": "frontend", "from_path": DIST,
        "to_sandbox": "backend", "to_path": STATIC, "recursive": true,
    });
    let copied = session.call("transfer", input).await?;
    equal(&copied["files"], &json!(2))
}

/// Copies from one pool to another, on different providers.
async fn move_by_handles(frontend: &Session, backend: &Session) -> Check {
    let from = frontend.context.sandbox(Some("frontend")).await?;
    let to = backend.context.sandbox(Some("backend")).await?;
    let what = Transfer { from_path: DIST.to_owned(), to_path: STATIC.to_owned(), recursive: true };
    let copied = transfer(&from, &to, &what).await?;
    equal(&json!(copied.files), &json!(2))?;
    let refused = transfer(&from, &to, &Transfer { recursive: false, ..what }).await;
    equal(&json!(refused.is_err()), &json!(true))
}

/// Checks the page, by its name and by the link to it, and the answer of Python's server.
async fn check_site(url: &str) -> Check {
    for path in ["/", "/latest.html"] {
        equal(&json!(get(url, path).await?), &json!("<h1>Grüße</h1>\n"))?;
    }
    let files = json!({ "files": ["assets", "index.html", "latest.html"] });
    equal(&serde_json::from_str(&get(url, "/api").await?)?, &files)
}

/// Returns the body of an answer, whose status must be 200.
async fn get(url: &str, path: &str) -> Check<String> {
    let address = url.strip_prefix("http://").ok_or("no URL")?.trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a body")?;
    if head.lines().next().is_some_and(|line| line.contains(" 200 ")) {
        Ok(body.to_owned())
    } else {
        Err(format!("{path}: {head}").into())
    }
}
