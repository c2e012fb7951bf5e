//! Programs that agents leave running: servers that they talk to, and workers that they watch and
//! stop.

use eyot::{ErrorKind, LogQuery, LogStream, ProcessId, Signal, StartOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::transcript::{Agent, Check, text_of};

const PATIENCE_MS: u64 = 120_000;

const SERVER: &str = "\
import { createServer } from 'node:http';
let served = 0;
const server = createServer(async (request, response) => {
  let length = 0;
  for await (const piece of request) length += piece.length;
  console.log(request.method, request.url);
  response.setHeader('connection', 'close');
  response.end(JSON.stringify({ number: ++served, url: request.url, length }));
});
server.listen(3000, '127.0.0.1', () => console.log('listening'));
";
const FILES: &str = "cd site && exec python3 -m http.server 8000 --bind 127.0.0.1";
const STATUS: &str = "curl --silent --output /dev/null --write-out '%{http_code}\\n'";

/// Two servers, reached through the handle, as previews are, and by programs beside them.
pub async fn serve_the_web_and_be_reached(agent: &mut Agent<'_>) -> Check {
    agent.write("site/index.html", "<h1>Grüße</h1>\n").await?;
    agent.write("server.mjs", SERVER).await?;
    let files = agent.sandbox.start(FILES, StartOptions::default()).await?.id;
    let node = agent.sandbox.start("exec node server.mjs", StartOptions::default()).await?.id;
    agent.sandbox.wait_for_port(8000, PATIENCE_MS).await?;
    agent.note(agent.sandbox.wait_for_line(node, "listening", PATIENCE_MS).await?);
    ask(agent, 8000, "GET /index.html HTTP/1.0\r\n\r\n").await?;
    let head = "POST /a?b=%C3%BC HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    ask(agent, 3000, &(head.to_owned() + &"x".repeat(1_000_000))).await?;
    agent.run("curl --silent --show-error http://127.0.0.1:3000/c && echo").await?;
    agent.run(&format!("{STATUS} http://localhost:8000/; {STATUS} http://127.0.0.1:8000/missing")).await?;
    agent.run("curl --silent --max-time 5 http://127.0.0.1:4000/").await?;
    dial(agent, 4000).await;
    for process in [files, node] {
        let ended = agent.sandbox.stop(process, 30_000).await?;
        agent.note(format_args!("{:?}", ended.status));
    }
    dial(agent, 8000).await;
    Ok(())
}

/// Returns the first line and the body of an answer.
async fn ask(agent: &mut Agent<'_>, port: u16, request: &str) -> Check {
    let mut connection = agent.sandbox.dial(port).await?;
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a body")?;
    agent.note(format_args!("{} | {}", head.lines().next().unwrap_or_default(), body.trim_end()));
    Ok(())
}

/// Notes the result of a connection to a port.
async fn dial(agent: &mut Agent<'_>, port: u16) {
    let refused = agent.sandbox.dial(port).await.err().map(|error| error.kind());
    agent.note(format_args!("{port} is unavailable: {}", refused == Some(ErrorKind::Unavailable)));
}

const WORKER: &str = "\
trap 'echo told to end; exit 7' TERM
exec 3<> orders
echo started as $NAME >&2
for n in $(seq 1 1000); do echo line $n; done
echo ready
while read -r line <&3; do echo \"did $line\"; done
";

/// A worker that takes orders by a pipe, is watched and told to end; and one that outlives its
/// shell.
pub async fn run_in_the_background_with_logs(agent: &mut Agent<'_>) -> Check {
    let sandbox = agent.sandbox;
    agent.write("worker.sh", WORKER).await?;
    agent.run("mkfifo orders").await?;
    let env = [("NAME".to_owned(), "worker".to_owned())].into();
    let worker =
        sandbox.start("exec bash worker.sh", StartOptions { env, ..StartOptions::default() }).await?;
    agent.note(format_args!("{} {} {:?}", worker.id, worker.command, worker.status));
    sandbox.wait_for_line(worker.id, "ready", PATIENCE_MS).await?;
    agent.run("echo a walk > orders").await?;
    agent.note(sandbox.wait_for_line(worker.id, "did", PATIENCE_MS).await?);
    show_log(agent, worker.id, LogQuery { stream: Some(LogStream::Stderr), ..LogQuery::default() }).await?;
    show_log(agent, worker.id, LogQuery { tail_lines: Some(3), ..LogQuery::default() }).await?;
    sandbox.kill(worker.id, Some(Signal::TERM)).await?;
    agent.note(format_args!("{:?}", sandbox.wait(worker.id).await?.status));
    show_log(agent, worker.id, LogQuery { tail_lines: Some(1), ..LogQuery::default() }).await?;
    agent.run("(exec -a idler sleep 1000) > /dev/null 2>&1 & echo in the background").await?;
    agent.run("until pkill --full '^idler'; do sleep 0.05; done; echo ended it; jobs").await?;
    let all = sandbox.processes().await?;
    agent.note(format_args!("{:?}", all.iter().map(|process| process.id.to_string()).collect::<Vec<_>>()));
    Ok(())
}

async fn show_log(agent: &mut Agent<'_>, process: ProcessId, query: LogQuery) -> Check {
    let log = agent.sandbox.logs(process, query).await?;
    let (total, dropped) = (log.range.total_bytes, log.range.dropped_bytes);
    agent.note(format_args!("of {total} bytes, without {dropped}: {:?}", text_of(log).await?));
    Ok(())
}
