//! The clients: most run one command after the other, and some create sandboxes, use them and
//! destroy them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Instant;

use crate::server::{Connection, Server};

const TRUE: &str = r#"{"argv":["sh","-c","true"]}"#;

pub struct Clients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Done>>,
}

/// The results of a client.
#[derive(Default)]
pub struct Done {
    /// The duration of each command, in microseconds, from request to answer.
    times: Vec<f64>,
    pub came_and_went: usize,
    pub errors: Vec<String>,
}

impl Clients {
    pub fn start(server: &Server, clients: usize, sandboxes: usize, come_and_go: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ids: Vec<String> = (0..sandboxes).map(|_| server.sandbox()).collect();
        let begin = |client: fn(&mut Connection, &str, &AtomicBool) -> Result<Done, String>, name: String| {
            let (mut connection, stop) = (server.connect(), Arc::clone(&stop));
            spawn(move || client(&mut connection, &name, &stop).unwrap_or_else(Done::error))
        };
        let users = (0..clients).map(|client| begin(run, ids[client % ids.len()].clone()));
        let others = (0..come_and_go).map(|one| begin(come_and_go_by, format!("guest-{one}")));
        let threads = users.chain(others).collect();
        Self { stop, threads }
    }

    pub fn stop(self) -> Done {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).fold(Done::default(), Done::and)
    }
}

/// Runs one command after the other.
fn run(connection: &mut Connection, id: &str, stop: &AtomicBool) -> Result<Done, String> {
    let mut done = Done::default();
    let path = format!("/v1/sandboxes/{id}/exec");
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        asked(connection, "POST", &path, TRUE, 200)?;
        done.times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    Ok(done)
}

/// Creates, uses and destroys one sandbox after the other, by its id or by its name in turn.
fn come_and_go_by(connection: &mut Connection, name: &str, stop: &AtomicBool) -> Result<Done, String> {
    let mut done = Done::default();
    while !stop.load(Ordering::Relaxed) {
        let spec = format!(r#"{{"spec":{{"name":"{name}"}}}}"#);
        let made = asked(connection, "POST", "/v1/sandboxes", &spec, 201)?;
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        let id = made["id"].as_str().unwrap();
        asked(connection, "POST", &format!("/v1/sandboxes/{id}/exec"), TRUE, 200)?;
        let by = if done.came_and_went.is_multiple_of(2) { id } else { name };
        asked(connection, "DELETE", &format!("/v1/sandboxes/{by}"), "", 204)?;
        done.came_and_went += 1;
    }
    Ok(done)
}

fn asked(
    connection: &mut Connection,
    method: &str,
    path: &str,
    body: &str,
    want: u16,
) -> Result<String, String> {
    connection.send(method, path, body);
    let (status, answer) = connection.answer();
    let is_fine = status == want && (body != TRUE || answer.contains(r#""exit_code":0"#));
    if is_fine { Ok(answer) } else { Err(format!("{method} {path}: {status} {answer}")) }
}

impl Done {
    fn error(error: String) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }

    fn and(mut self, other: Self) -> Self {
        self.times.extend(other.times);
        self.errors.extend(other.errors);
        self.came_and_went += other.came_and_went;
        self
    }

    pub fn execs(&self) -> usize {
        self.times.len()
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        let quantile = |share: f64| times.get((times.len() as f64 * share) as usize).unwrap_or(&0.0) / 1000.0;
        let (execs, went, errors) = (self.execs(), self.came_and_went, self.errors.len());
        write!(f, "{execs} commands, p50 {:.1} ms, p99 {:.1} ms; ", quantile(0.5), quantile(0.99))?;
        write!(f, "{went} sandboxes came and went; {errors} errors")
    }
}
