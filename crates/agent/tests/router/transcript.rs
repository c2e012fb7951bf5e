//! All requests and their answers, as a golden file with ids and times masked. `EYOT_REWRITE_GOLDEN=1` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write;

use reqwest::Method;
use serde_json::json;

use crate::ground::Ground;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/router/transcript.txt");
/// The headers of an answer that are part of the contract.
const HEADERS: [&str; 4] = ["allow", "cache-control", "content-type", "x-flue-run-id"];

/// A transcript that is written request by request.
struct Transcript<'a> {
    ground: &'a Ground,
    text: String,
    /// The numbers of the ids that were seen.
    ids: BTreeMap<String, usize>,
}

impl Transcript<'_> {
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> String {
        let mut request = self.ground.request(method.clone(), path);
        writeln!(self.text, "> {method} {path}").unwrap();
        for (name, value) in headers {
            request = request.header(*name, *value);
            writeln!(self.text, "> {name}: {value}").unwrap();
        }
        if let Some(body) = body {
            request = request.body(body.to_owned());
            writeln!(self.text, "> {body}").unwrap();
        }
        let answer = request.send().await.unwrap();
        writeln!(self.text, "< {}", answer.status().as_u16()).unwrap();
        for name in HEADERS {
            if let Some(value) = answer.headers().get(name) {
                writeln!(self.text, "< {name}: {}", value.to_str().unwrap()).unwrap();
            }
        }
        let text = answer.text().await.unwrap();
        for line in text.trim_end().lines() {
            writeln!(self.text, "< {line}").unwrap();
        }
        self.text.push('\n');
        text
    }

    async fn get(&mut self, path: &str) -> String {
        self.send(Method::GET, path, &[], None).await
    }

    /// The transcript with numbers in place of ids, and without times.
    fn masked(mut self) -> String {
        let mut masked = String::new();
        let mut rest = self.text.as_str();
        while let Some(start) = rest.find("run_0") {
            let end =
                start + rest[start + 4..].find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap() + 4;
            let next = self.ids.len() + 1;
            let number = *self.ids.entry(rest[start..end].to_owned()).or_insert(next);
            write!(masked, "{}run_{number}", &rest[..start]).unwrap();
            rest = &rest[end..];
        }
        masked.push_str(rest);
        let masked =
            masked.lines().map(|line| mask_times(&mask(line, "\"operationId\":\"", |letter| letter == '"')));
        masked.collect::<Vec<_>>().join("\n") + "\n"
    }
}

fn mask_times(line: &str) -> String {
    let texts = ["\"startedAt\":\"", "\"endedAt\":\"", "\"timestamp\":\"", "\"nextCursor\":\""];
    let line = texts.iter().fold(line.to_owned(), |line, name| mask(&line, name, |letter| letter == '"'));
    mask(&line, "\"durationMs\":", |letter| !letter.is_ascii_digit())
}

/// Replaces what stands between a name and the next end by `…`.
fn mask(line: &str, name: &str, is_end: impl Fn(char) -> bool) -> String {
    let mut parts = line.split(name);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find(&is_end).map_or("", |at| &part[at..]);
        masked.push_str(name);
        masked.push('…');
        masked.push_str(rest);
    }
    masked
}

fn run_id(answer: &str, pointer: &str) -> String {
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    answer.pointer(pointer).and_then(serde_json::Value::as_str).unwrap().to_owned()
}

#[tokio::test]
async fn every_route_answers_as_in_the_transcript() {
    let ground = Ground::new().await;
    let mut transcript = Transcript { ground: &ground, text: String::new(), ids: BTreeMap::new() };
    let json_type = ("content-type", "application/json");
    let payload = json!({"n": 1}).to_string();
    let post = "/agents/echo/i";
    let answer = transcript.send(Method::POST, post, &[json_type], Some(&payload)).await;
    let id = run_id(&answer, "/_meta/runId");
    transcript.send(Method::POST, post, &[], None).await;
    transcript.send(Method::POST, "/agents/nothing/i", &[json_type], Some("")).await;
    let answer =
        transcript.send(Method::POST, post, &[json_type, ("x-webhook", "true")], Some(&payload)).await;
    // The lists below show it ended.
    ground.stream(&run_id(&answer, "/runId"), None).await;
    transcript
        .send(Method::POST, "/agents/talks/i", &[json_type, ("accept", "text/event-stream")], Some("{}"))
        .await;
    transcript.send(Method::POST, "/agents/fails/i", &[("accept", "text/event-stream")], None).await;
    transcript.send(Method::POST, "/agents/fails/i", &[], None).await;
    transcript.send(Method::GET, post, &[], None).await;
    transcript.send(Method::POST, "/agents/nobody/i", &[], None).await;
    transcript.send(Method::POST, "/agents/hidden/i", &[], None).await;
    transcript.send(Method::POST, "/agents/%20/i", &[], None).await;
    transcript.send(Method::POST, post, &[("content-type", "text/plain")], Some("hi")).await;
    transcript.send(Method::POST, post, &[json_type], Some("{bad")).await;
    let run = format!("/runs/{id}");
    transcript.get(&run).await;
    transcript.get(&format!("{run}/events")).await;
    transcript.get(&format!("{run}/events?after=0&types=run_end&limit=1")).await;
    transcript.get(&format!("{run}/events?after=x&types=nonsense&limit=1001")).await;
    transcript.get(&format!("{run}/stream")).await;
    transcript.send(Method::GET, &format!("{run}/stream"), &[("last-event-id", "0")], None).await;
    transcript.send(Method::POST, &run, &[], None).await;
    for path in ["/runs/run_none", "/runs/run_none/events", "/runs/run_none/stream"] {
        transcript.get(path).await;
    }
    for path in [
        "/admin/agents",
        "/admin/agents/echo/instances",
        "/admin/agents/echo/instances/i/runs?limit=1",
        "/admin/agents/nobody/instances",
        "/admin/runs?agentName=echo&status=completed",
        "/admin/runs?limit=0",
        "/admin/nothing",
    ] {
        transcript.get(path).await;
    }
    transcript.get(&format!("/admin{run}")).await;
    let told = transcript.masked();
    if std::env::var_os("EYOT_REWRITE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &told).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    for (number, (ours, kept)) in told.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, kept, "line {}", number + 1);
    }
    assert_eq!(told.lines().count(), golden.lines().count());
}
