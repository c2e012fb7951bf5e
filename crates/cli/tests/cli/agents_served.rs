//! Agents that `eyot serve` has, with a stand-in for a vendor's HTTP API.

use eyot_agent::standin::StandInTurn;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::agents::Vendor;
use super::machine::Machine;
use super::server::{Connection, Server};

/// An agent that callers may start.
const HELPER: &str = "---\nmodel: openai-completions/m\nwebhook: true\n---\nTalk like a pirate.\n";
const JSON: &str = "Content-Type: application/json\r\n";

impl Server {
    /// Starts an agent, as a webhook, and returns the id of the run.
    fn leave(&self, path: &str, prompt: &str) -> String {
        let mut connection = self.connect();
        let body = json!({"prompt": prompt}).to_string();
        connection.send_with("POST", path, &format!("{JSON}X-Webhook: true\r\n"), &body);
        let (status, body) = connection.answer();
        assert_eq!(status, 202, "{body}");
        parsed(&body)["runId"].as_str().unwrap().to_owned()
    }

    /// Starts an agent and waits for its answer.
    fn prompt(&self, path: &str, prompt: &str) -> (u16, Value) {
        let mut connection = self.connect();
        connection.send_with("POST", path, JSON, &json!({"prompt": prompt}).to_string());
        let (status, body) = connection.answer();
        (status, parsed(&body))
    }
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_default()
}

/// The events of a run's stream, as they come.
struct Events {
    /// `None`: the run has ended, and its stream with it.
    connection: Option<Connection>,
}

impl Events {
    fn behind(server: &Server, run: &str, last: Option<u64>) -> Self {
        let mut connection = server.connect();
        let headers = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        // A stream behind the last event is empty: only its close tells its end.
        let headers = format!("{headers}Connection: close\r\n");
        connection.send_with("GET", &format!("/runs/{run}/stream"), &headers, "");
        Self { connection: Some(connection) }
    }

    /// Returns the next event; `None`: the stream has ended.
    fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.connection.as_mut()?.line()?;
            if let Some(data) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(data).unwrap();
                if event["type"] == "run_end" {
                    self.connection = None;
                }
                return Some(event);
            }
        }
    }
}

fn number(event: &Value) -> u64 {
    event["eventIndex"].as_u64().unwrap()
}

#[test]
fn the_agents_of_a_folder_are_served_and_can_be_changed_at_any_time() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![
        StandInTurn::call("c1", "bash", json!({"command": "echo hi > here; hostname"})),
        StandInTurn::text("ahoy"),
        StandInTurn::text("hello"),
    ]);
    machine.write("state/agents/helper.md", HELPER);
    let server = Server::start(&machine, &[], &[], &vendor.variables());
    let (status, answer) = server.prompt("/agents/helper/i1", "greet");
    assert_eq!((status, &answer["result"]["text"]), (200, &json!("ahoy")), "{answer}");
    assert!(machine.run(&["ls"]).success().contains("ours/helper-i1"));
    assert_eq!(machine.run(&["read", "ours/helper-i1", "here"]).success(), "hi\n");
    let run = parsed(&server.ask("GET", "/v1/runs", "").1)["runs"][0].clone();
    assert_eq!((&run["pool"], &run["sandbox"]), (&json!("ours"), &json!("helper-i1")));

    machine.write("state/agents/helper.md", HELPER.replace("pirate", "robot"));
    assert_eq!(server.prompt("/agents/helper/i1", "greet").0, 200);
    let asked = vendor.stand_in.requests().last().unwrap().body["messages"].clone();
    assert!(asked.to_string().contains("like a robot"), "{asked}");
    assert!(asked.to_string().contains("ahoy"), "the instance goes on with its conversation: {asked}");

    machine.write("state/agents/helper.md", "---\nmodle: m\n---\nx");
    let (status, answer) = server.prompt("/agents/helper/i1", "greet");
    assert_eq!((status, &answer["error"]["type"]), (500, &json!("internal_error")));
    assert!(!answer.to_string().contains("state"), "no path of the host is told: {answer}");
    std::fs::remove_file(machine.path("state/agents/helper.md")).unwrap();
    assert_eq!(server.prompt("/agents/helper/i1", "greet").0, 404);
    machine.write("state/agents/eyot.md", HELPER);
    assert_eq!(server.prompt("/agents/eyot/i1", "greet").0, 404, "runs of the command line have this name");
}

#[test]
fn a_stream_is_taken_up_behind_every_event_although_the_server_was_killed_there() {
    let machine = Machine::new();
    // Each call of the script writes a line of its own: a turn that was cut is asked again, and gets the next one.
    let script = (0..40).flat_map(|number| {
        let work = json!({"command": format!("echo {number} >> /home/user/calls")});
        [StandInTurn::call("c1", "bash", work), StandInTurn::text("It is done.")]
    });
    let vendor = Vendor::playing(script.collect());
    machine.write("state/agents/helper.md", HELPER);
    let mut server = Server::start(&machine, &[], &[], &vendor.variables());
    let undisturbed = {
        let run = server.leave("/agents/helper/whole", "work");
        let mut events = Events::behind(&server, &run, None);
        std::iter::from_fn(|| events.next()).count() as u64
    };
    assert!(undisturbed >= 8, "{undisturbed}");
    for cut in 0..undisturbed {
        let path = format!("/agents/helper/cut{cut}");
        let run = server.leave(&path, "work");
        let mut told: Vec<Value> = Vec::new();
        let mut events = Events::behind(&server, &run, None);
        while told.last().is_none_or(|last| number(last) < cut) {
            told.push(events.next().unwrap());
        }
        server.signal(Signal::KILL);
        server.ended();
        server = server.restart_with(&machine, &vendor.variables());
        let mut events = Events::behind(&server, &run, told.last().map(number));
        told.extend(std::iter::from_fn(|| events.next()));
        let numbers: Vec<u64> = told.iter().map(number).collect();
        assert_eq!(numbers, (0..told.len() as u64).collect::<Vec<_>>(), "cut behind {cut}");
        let end = told.last().unwrap();
        assert_eq!(
            (&end["type"], &end["isError"]),
            (&json!("run_end"), &json!(false)),
            "cut behind {cut}: {end}"
        );
        let kept = parsed(&server.ask("GET", &format!("/runs/{run}/events?limit=1000"), "").1);
        assert_eq!(kept["events"], Value::Array(told), "cut behind {cut}");
        let calls = machine.run(&["read", &format!("ours/helper-cut{cut}"), "/home/user/calls"]).text();
        let mut lines: Vec<&str> = calls.lines().collect();
        lines.dedup();
        assert_eq!(lines.len(), calls.lines().count(), "a tool call was repeated, cut behind {cut}: {calls}");
    }
}

#[test]
fn a_pool_has_the_key_of_its_own_configuration_and_no_key_is_told() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![StandInTurn::text("ahoy"), StandInTurn::text("ahoy")]);
    machine.write("state/agents/helper.md", HELPER);
    machine.write(
        "home/.config/eyot/config.toml",
        "[pools.ours.models.openai]\napi_key = \"sk-canary-of-ours\"\n[agents]\nmax_turns = 1\n",
    );
    let mut server = Server::start(&machine, &[], &[], &vendor.variables());
    assert_eq!(server.prompt("/agents/helper/i1", "greet").0, 200);
    let other = machine.run(&["keys", "create", "other", "-q"]).text().trim().to_owned();
    let mut connection = Connection::open(&server.address, &other);
    connection.send_with("POST", "/agents/helper/i1", JSON, r#"{"prompt":"greet"}"#);
    assert_eq!(connection.answer().0, 200);
    let keys: Vec<String> =
        vendor.stand_in.requests().iter().map(|request| request.headers["authorization"].clone()).collect();
    assert_eq!(keys, ["Bearer sk-canary-of-ours", "Bearer sk-canary-of-the-cli"]);
    server.signal(Signal::TERM);
    let (_, log) = server.ended();
    assert!(!log.contains("sk-canary"), "{log}");
    let config = machine.path("home/.config/eyot/config.toml");
    assert_eq!(machine.files_with("sk-canary"), [config]);
}

#[test]
fn a_folder_that_is_not_there_and_a_model_that_is_none_end_the_server_at_once() {
    let machine = Machine::new();
    let refused = machine.run(&["serve", "--no-keys", "--agents", &machine.path_text("nowhere")]);
    assert!(refused.code != Some(0) && refused.stderr.contains("read the agents of"), "{refused:?}");
    let refused = machine.run(&["serve", "--no-keys", "--model", "nonsense"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("names no provider"), "{refused:?}");
    for (config, said) in [
        ("[models.lab]\napi = \"openai-completions\"\n", "needs a `base_url`"),
        (
            "[pools.p.models.lab]\napi = \"openai-completions\"\nbase_url = \"http://localhost\"\n",
            "belongs to [models]",
        ),
        ("[models.openai]\ncontext_window = 1\n", "`context_window` is for a provider"),
    ] {
        machine.write("home/.config/eyot/config.toml", config);
        let refused = machine.run(&["ls"]);
        assert!(refused.code == Some(2) && refused.stderr.contains(said), "{refused:?}");
    }
    machine.write("home/.config/eyot/config.toml", "");
}
