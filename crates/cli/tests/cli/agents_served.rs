//! Agents that `eyot serve` has, with a stand-in for a vendor's HTTP API.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use eyot_agent::standin::StandInTurn;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::agents::Vendor;
use super::machine::Machine;
use super::server::{Connection, Server};

/// An agent that callers may start.
const HELPER: &str = "---\nmodel: openai-completions/m\nwebhook: true\n---\nTalk like a pirate.\n";
const JSON: &str = "Content-Type: application/json\r\n";

impl Server {
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
    /// Starts an agent, and follows the run.
    fn of_new(server: &Server, path: &str, prompt: &str) -> Self {
        let mut connection = server.connect();
        let headers = format!("{JSON}Accept: text/event-stream\r\n");
        connection.send_with("POST", path, &headers, &json!({"prompt": prompt}).to_string());
        Self { connection: Some(connection) }
    }

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
    assert_eq!((status, &answer["error"]["type"]), (503, &json!("agent_unusable")));
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
        let mut events = Events::of_new(&server, "/agents/helper/whole", "work");
        std::iter::from_fn(|| events.next()).count() as u64
    };
    assert!(undisturbed >= 8, "{undisturbed}");
    for cut in 0..undisturbed {
        let path = format!("/agents/helper/cut{cut}");
        let mut told: Vec<Value> = Vec::new();
        let mut events = Events::of_new(&server, &path, "work");
        while told.last().is_none_or(|last| number(last) < cut) {
            told.push(events.next().unwrap());
        }
        let run = told[0]["runId"].as_str().unwrap().to_owned();
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
        let idle = told.iter().filter(|event| event["type"] == "idle").count();
        assert_eq!(idle, 1, "cut behind {cut}");
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
fn a_run_of_the_command_line_is_followed_by_a_server_as_it_goes_on() {
    let machine = Machine::new();
    let wait = json!({"command": "until [ -e go ]; do sleep 0.05; done; echo gone"});
    let vendor = Vendor::playing(vec![StandInTurn::call("c1", "bash", wait), StandInTurn::text("Done.")]);
    let address = format!("unix:{}", machine.path_text("socket"));
    let mut server = machine.spawn(&mut machine.command(&["serve", "--no-keys", "--listen", &address]));
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let mut command = machine.command(&["agent", "--model", "openai-completions/m", "wait"]);
    let agent = machine.spawn(command.envs(vendor.variables()));
    let socket = machine.path("socket");
    let ask = |path: &str| -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    };
    let run = loop {
        let mut answer = String::new();
        ask("/v1/runs").read_to_string(&mut answer).unwrap();
        let runs = parsed(answer.split("\r\n\r\n").nth(1).unwrap());
        match runs["runs"].get(0) {
            Some(run) => break run.clone(),
            None => std::thread::yield_now(),
        }
    };
    assert_eq!((&run["agent"], &run["sandbox"]), (&json!("eyot"), &json!("default")));
    let mut kinds = Vec::new();
    for line in ask(&format!("/v1/runs/{}/stream", run["id"].as_str().unwrap())).lines() {
        if let Some(kind) = line.unwrap().strip_prefix("event: ") {
            if kind == "tool_start" {
                let sandbox = format!("{}/default", run["pool"].as_str().unwrap());
                machine.run_with_input(&["write", &sandbox, "go"], b"").success();
            }
            kinds.push(kind.to_owned());
        }
    }
    assert_eq!(kinds.last().unwrap(), "run_end", "{kinds:?}");
    assert!(kinds.contains(&"tool_call".to_owned()), "{kinds:?}");
    assert!(agent.wait_with_output().unwrap().status.success());
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    server.wait().unwrap();
}

#[test]
fn a_folder_that_is_not_there_and_a_model_that_is_none_end_the_server_at_once() {
    let machine = Machine::new();
    let refused = machine.run(&[
        "serve",
        "--no-keys",
        "--listen",
        "127.0.0.1:0",
        "--agents",
        &machine.path_text("nowhere"),
    ]);
    assert!(refused.code != Some(0) && refused.stderr.contains("read the agents of"), "{refused:?}");
    let refused = machine.run(&["serve", "--no-keys", "--listen", "127.0.0.1:0", "--model", "nonsense"]);
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

#[test]
fn a_server_says_which_agents_can_t_work_at_its_start_and_in_their_list() {
    let machine = Machine::new();
    for (name, text) in [
        ("fine", "---\nmodel: openai-completions/m\n---\nHelp."),
        ("elsewhere", "---\nmodel: openai-completions/m\nprovider: docker\n---\nHelp."),
        ("misspelt", "---\nmodle: m\n---\nHelp."),
        ("none", "Help."),
        ("strange", "---\nmodel: nobody/m\n---\nHelp."),
    ] {
        machine.write(&format!("state/agents/{name}.md"), text);
    }
    let mut server = Server::start(&machine, &[], &[], &[]);
    let listed = parsed(&server.ask("GET", "/v1/agents", "").1);
    let problem = |name: &str| {
        let agents = listed["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["name"] == name).unwrap()["problem"].clone()
    };
    assert_eq!(problem("fine"), Value::Null);
    // Whoever may start agents does not see the operator's file.
    assert_eq!(problem("misspelt"), "the agent `misspelt` can't be read; the server's log says why");
    for (name, said) in
        [("elsewhere", "this server has `native`"), ("none", "names no model"), ("strange", "`nobody`")]
    {
        assert!(problem(name).as_str().unwrap().contains(said), "{listed}");
    }
    let (status, told) = server.ask("POST", "/agents/misspelt/one", r#"{"message":"hi"}"#);
    assert!(status == 503 && told.contains("agent_unusable") && !told.contains("modle"), "{status} {told}");
    server.signal(Signal::TERM);
    let (_, log) = server.ended();
    for (name, said) in [
        ("elsewhere", "this server has `native`"),
        ("misspelt", "line 2 column 1: unknown field `modle`"),
        ("none", "names no model"),
        ("strange", "`nobody`"),
    ] {
        let line = log.lines().find(|line| line.contains(&format!("{name}.md can't be used")));
        assert!(line.is_some_and(|line| line.contains(said)), "{name}: {log}");
    }
    assert!(!log.contains("fine.md"), "{log}");
}
