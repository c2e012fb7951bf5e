//! Eight calls in a row, as an agent makes them: two sandboxes, a build in one, the result served by the other.

use libtest_mimic::{Failed, Trial};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::session::{Session, text};
use crate::{ensure, ensure_eq, trial};

pub fn trials() -> Vec<Trial> {
    let missing = ["cc", "python3"].into_iter().find(|program| !is_installed(program));
    let eight = trial("what_one_sandbox_builds_is_served_by_another_in_eight_calls", eight_calls);
    match missing {
        None => vec![eight],
        Some(program) => {
            let name = format!("what_one_sandbox_builds_is_served_by_another (there is no {program} here)");
            vec![Trial::test(name, || Ok(())).with_ignored_flag(true)]
        }
    }
}

fn is_installed(program: &str) -> bool {
    ["/usr/bin", "/usr/local/bin"].iter().any(|folder| std::path::Path::new(folder).join(program).exists())
}

const BUILD: &str = "mkdir -p app/src app/dist && cd app && \
    printf '%s\\n' '#include <stdio.h>' 'int main(void) { puts(\"<h1>built</h1>\"); return 0; }' > src/page.c && \
    cc -static -o dist/page src/page.c && ./dist/page > dist/index.html && ln -s index.html dist/latest.html";

async fn eight_calls() -> Result<(), Failed> {
    let session = Session::new()?;
    for name in ["frontend", "backend"] {
        let made = session.ok("sandbox_create", json!({ "sandbox": name })).await?;
        ensure_eq(made, json!({ "sandbox": name, "created": true, "image": "host" }))?;
    }
    session.ok("shell", json!({ "sandbox": "frontend", "command": BUILD, "timeout_ms": 120_000 })).await?;
    session.ok("shell", json!({ "sandbox": "backend", "command": "mkdir app" })).await?;
    let main = "echo started; cd static && exec python3 -m http.server 8000 --bind 127.0.0.1";
    let write = json!({ "sandbox": "backend", "path": "/home/user/app/main.sh", "content": main });
    ensure_eq(session.ok("write_file", write).await?, json!({ "ok": true, "size": main.len() }))?;
    let copied = session
        .ok(
            "transfer",
            json!({
                "from_sandbox": "frontend", "from_path": "/home/user/app/dist",
                "to_sandbox": "backend", "to_path": "/home/user/app/static", "recursive": true,
            }),
        )
        .await?;
    ensure(copied["ok"] == true && copied["files"] == 2, &copied)?;
    let serve = "cd /home/user/app && sh main.sh > log 2>&1 & \
        until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    session.ok("shell", json!({ "sandbox": "backend", "command": serve })).await?;
    let url = text(&session.ok("browse", json!({ "sandbox": "backend", "port": 8000 })).await?["url"]);
    ensure(get(&url, "/").await?.ends_with("<h1>built</h1>\n"), "the page is another")?;
    ensure(get(&url, "/latest.html").await?.ends_with("<h1>built</h1>\n"), "the link is gone")?;
    let run = json!({ "sandbox": "backend", "command": "./app/static/page", "timeout_ms": 10_000 });
    let ran = session.ok("shell", run).await?;
    ensure_eq(ran, json!({ "stdout": "<h1>built</h1>\n", "stderr": "", "exit_code": 0 }))?;
    session.close().await
}

async fn get(url: &str, path: &str) -> Result<String, Failed> {
    let address = url.strip_prefix("http://").ok_or("no URL")?;
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure(answer.contains(" 200 OK"), &answer)?;
    Ok(answer)
}
