//! `eyot agent`, with a stand-in for a vendor's HTTP API.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use eyot_agent::standin::{StandIn, StandInTurn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::machine::Machine;

/// A stand-in, and the runtime that serves it.
pub struct Vendor {
    pub stand_in: StandIn,
    _runtime: tokio::runtime::Runtime,
}

impl Vendor {
    pub fn playing(turns: Vec<StandInTurn>) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let stand_in = runtime.block_on(StandIn::openai(turns)).unwrap();
        Self { stand_in, _runtime: runtime }
    }

    pub fn variables(&self) -> [(&'static str, &str); 2] {
        [("OPENAI_API_KEY", "sk-canary-of-the-cli"), ("OPENAI_BASE_URL", self.stand_in.url())]
    }
}

impl Machine {
    /// Runs the program with the variables of a vendor.
    fn beside(&self, variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.command(arguments);
        let output = command.current_dir(self.path("")).envs(variables.iter().copied()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// The files of the machine, its state folder with the sandboxes included, in which this text stands.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        // Hundreds of megabytes, which a test's own loop would take a minute for.
        let mut grep = Command::new("grep");
        grep.args(["--recursive", "--files-with-matches", "--fixed-strings", "--text", "--", text]);
        let found = grep.arg(self.path("")).output().unwrap();
        // An ordinary user can't read the guest's program, nor what the kernel keeps beside the files of a sandbox.
        let is_closed = |line: &str| {
            let closed = line.contains("/programs/eyot-guest-") || line.contains("/work/work:");
            closed && line.ends_with("Permission denied")
        };
        assert!(String::from_utf8_lossy(&found.stderr).lines().all(is_closed), "{found:?}");
        String::from_utf8(found.stdout).unwrap().lines().map(PathBuf::from).collect()
    }
}

const MODEL: &str = "openai-completions/m";

#[test]
fn an_agent_works_in_a_sandbox_that_stays_and_its_conversation_goes_on() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![
        StandInTurn::text("I write it.")
            .and_call("c1", "write", json!({"path": "a.txt", "content": "one\n"}))
            .and_call("c2", "bash", json!({"command": "env; seq 20"})),
        StandInTurn::call("c3", "edit", json!({"path": "a.txt", "oldText": "one", "newText": "two"})),
        StandInTurn::text("It is written."),
        StandInTurn::call("c4", "read", json!({"path": "a.txt"})),
        StandInTurn::text("It says two."),
    ]);
    let (code, out, shown) =
        machine.beside(&vendor.variables(), &["agent", "--model", MODEL, "write a file"]);
    assert_eq!((code, out.as_str()), (Some(0), "I write it.\nIt is written.\n"), "{shown}");
    for part in ["> write: a.txt", "> bash: env; seq 20", "more lines", "  - one", "  + two", "tokens read"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("sk-canary"), "{shown}");
    assert!(!machine.files_with("It is written.").is_empty(), "the conversation is kept");
    assert_eq!(machine.files_with("sk-canary"), Vec::<PathBuf>::new());
    let id = shown.split("--continue ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert!(machine.run(&["ls"]).success().contains(&format!("{id}/default")));
    assert!(machine.run(&["read", &format!("{id}/default"), "a.txt"]).success().contains("two"));

    let (code, out, shown) = machine.beside(&vendor.variables(), &["agent", "--continue", &id, "read it"]);
    assert_eq!((code, out.as_str()), (Some(0), "It says two.\n"), "{shown}");
    let messages = vendor.stand_in.requests().last().unwrap().body["messages"].as_array().unwrap().len();
    assert!(messages > 8, "{messages}");
    let listed = machine.run(&["agent", "ls"]).success();
    assert_eq!(listed.matches(&id).count(), 2, "{listed}");
    assert!(listed.contains("completed") && listed.contains("write a file"), "{listed}");
}

#[test]
fn a_provider_of_models_of_the_configuration_is_used() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![StandInTurn::text("ahoy")]);
    let lab =
        format!("api = \"openai-completions\"\nbase_url = \"{}\"\napi_key = \"k\"\n", vendor.stand_in.url());
    machine.write("home/.config/eyot/config.toml", format!("[models.lab]\n{lab}"));
    let arguments = ["--provider", "memory", "agent", "--model", "lab/m", "greet"];
    let (code, out, shown) = machine.beside(&[], &arguments);
    assert_eq!((code, out.as_str()), (Some(0), "ahoy\n"), "{shown}");
}

#[test]
fn an_agent_whose_model_never_answers_leaves_no_sandbox_and_says_where_it_looked() {
    let machine = Machine::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://{closed}/v1");
    let variables = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", address.as_str())];
    let (code, _, shown) = machine.beside(&variables, &["agent", "--model", MODEL, "greet"]);
    assert_eq!(code, Some(1), "{shown}");
    for part in [&format!("http://{closed} can't be reached"), "the sandbox is removed", "OPENAI_BASE_URL"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(shown.matches("can't be reached").count(), 1, "the reason is told once: {shown}");
    assert!(!shown.contains("--continue"), "{shown}");
    assert_eq!(machine.run(&["--quiet", "ls"]).success(), "");
}

#[test]
fn a_file_is_an_agent_whose_words_and_sandbox_are_used() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![StandInTurn::text("ahoy"), StandInTurn::text("again")]);
    let pirate = format!("---\nmodel: {MODEL}\nprovider: memory\n---\nTalk like a pirate.\n");
    machine.write("agents/pirate.md", pirate);
    let (code, out, shown) = machine.beside(&vendor.variables(), &["agent", "--agent", "pirate", "greet"]);
    assert_eq!((code, out.as_str()), (Some(0), "ahoy\n"), "{shown}");
    let id = shown.split("--continue ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    machine.beside(&vendor.variables(), &["agent", "--continue", &id, "greet"]);
    let requests = vendor.stand_in.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(request.body["messages"][0].to_string().contains("Talk like a pirate."), "{request:?}");
    }
    let (code, _, said) = machine.beside(&[], &["agent", "--agent", "parrot", "greet"]);
    assert!(code == Some(2) && said.contains("there are pirate"), "{said}");
}

/// A turn with one command that ends and one that does not.
fn two_commands() -> StandInTurn {
    StandInTurn::call("c1", "bash", json!({"command": "echo begun"})).and_call(
        "c2",
        "bash",
        json!({"command": "sleep 600"}),
    )
}

/// Sends an agent a signal after its first command, while its second one runs. Returns the exit code and what was shown.
fn ended_in_a_command(machine: &Machine, vendor: &Vendor, signal: Signal) -> (Option<i32>, String) {
    let mut command = machine.command(&["agent", "--model", MODEL, "wait"]);
    command.envs(vendor.variables()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut agent = command.spawn().unwrap();
    let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut shown: Vec<String> = lines.by_ref().take_while(|line| !line.contains("| begun")).collect();
    kill_process(Pid::from_child(&agent), signal).unwrap();
    shown.extend(lines);
    (agent.wait().unwrap().code(), shown.join("\n"))
}

#[test]
fn an_interrupted_agent_says_how_to_go_on_and_goes_on() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![two_commands(), StandInTurn::text("I go on.")]);
    let (code, shown) = ended_in_a_command(&machine, &vendor, Signal::INT);
    assert_eq!(code, Some(130), "{shown}");
    let id = shown.split("--continue ").nth(1).unwrap().split(' ').next().unwrap();
    let (code, out, shown) = machine.beside(&vendor.variables(), &["agent", "--continue", id, "go on"]);
    assert_eq!((code, out.as_str()), (Some(0), "I go on.\n"), "{shown}");
}

#[test]
fn an_agent_that_was_killed_goes_on_and_hears_what_was_interrupted() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![two_commands(), StandInTurn::text("I go on.")]);
    ended_in_a_command(&machine, &vendor, Signal::KILL);
    let runs = machine.run(&["--json", "agent", "ls"]).json();
    assert_eq!((&runs[0]["status"], &runs[0]["isInterrupted"]), (&json!("active"), &json!(true)));
    assert!(machine.run(&["agent", "ls"]).success().contains("interrupted"));
    let id = runs[0]["instanceId"].as_str().unwrap();
    let refused = machine.run(&["agent", "--continue", id, "--model", MODEL, "more"]);
    assert!(refused.failure(2).contains("has not ended"));
    let refused = machine.run(&["agent", "--continue", id, "--tools", "shell"]);
    assert!(refused.failure(2).contains("--tools can't change a run"));
    let (code, out, shown) = machine.beside(&vendor.variables(), &["agent", "--continue", id]);
    assert_eq!((code, out.as_str()), (Some(0), "I go on.\n"), "{shown}");
    let asked = vendor.stand_in.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("begun") && asked.contains("interrupted"), "{asked}");
}

#[test]
fn an_agent_whose_output_is_closed_ends_so_that_its_conversation_can_go_on() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![StandInTurn::text("one"), StandInTurn::text("two")]);
    let mut command = machine.command(&["agent", "--model", MODEL, "talk"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.envs(vendor.variables()).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    let id = shown.split("agent ").nth(1).unwrap().split(' ').next().unwrap();
    let (code, out, shown) = machine.beside(&vendor.variables(), &["agent", "--continue", id, "go on"]);
    assert_eq!((code, out.as_str()), (Some(0), "two\n"), "{shown}");
}

#[test]
fn an_agent_keeps_its_tools_and_does_not_lose_its_sandbox_s_options() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![StandInTurn::text("one"), StandInTurn::text("two")]);
    let work = [
        "agent",
        "--model",
        MODEL,
        "--tools",
        "workspace",
        "--instructions",
        "Be brief.",
        "-e",
        "A=b",
        "talk",
    ];
    let (code, _, shown) = machine.beside(&vendor.variables(), &work);
    assert_eq!(code, Some(0), "{shown}");
    let id = shown.split("--continue ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    machine.beside(&vendor.variables(), &["agent", "--continue", &id, "talk"]);
    let requests = vendor.stand_in.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
    assert!(requests[1].body["messages"][0].to_string().contains("Be brief."));
    machine.run(&["rm", &format!("{id}/default")]).success();
    let (code, _, said) = machine.beside(&vendor.variables(), &["agent", "--continue", &id, "talk"]);
    assert!(code == Some(2) && said.contains("options of its own"), "{said}");
}

#[test]
fn with_json_the_events_are_printed_one_a_line() {
    let machine = Machine::new();
    let vendor = Vendor::playing(vec![StandInTurn::text("hi")]);
    let (_, out, _) = machine.beside(&vendor.variables(), &["--json", "agent", "--model", MODEL, "greet"]);
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["eventIndex"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        (&events[0]["type"], &events.last().unwrap()["type"]),
        (&json!("run_start"), &json!("run_end"))
    );
}

#[test]
fn what_is_missing_or_wrong_is_said_with_what_to_do() {
    let machine = Machine::new();
    assert!(machine.run(&["agent"]).failure(2).contains("no task is given"));
    assert!(machine.run(&["agent", "do it"]).failure(2).contains("--model ollama/qwen3"));
    assert!(machine.run(&["agent", "--model", "nobody/m", "do it"]).failure(2).contains("nobody"));
    assert!(machine.run(&["agent", "--continue", "agent-x", "on"]).failure(2).contains("eyot agent ls"));
    let unknown = ["agent", "--model", "ollama/m", "--tools", "nothing", "do it"];
    assert!(machine.run(&unknown).failure(2).contains("`coding`"));
    let vendor = Vendor::playing(vec![StandInTurn::failure(400, "invalid_request_error", "no such thing")]);
    let work = ["agent", "--model", MODEL, "do it"];
    let (code, _, said) = machine.beside(&vendor.variables(), &work);
    assert!(code == Some(1) && said.contains("no such thing"), "{said}");
    let (code, _, said) = machine.beside(&vendor.variables()[1..], &work);
    assert!(code == Some(1) && said.contains("OPENAI_API_KEY"), "{said}");
}

#[test]
fn an_agent_without_the_key_of_its_vendor_makes_nothing() {
    let machine = Machine::new();
    let work = ["agent", "--model", "anthropic/claude-haiku-4-5", "do it"];
    let (code, _, said) = machine.beside(&[("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_BASE_URL", "")], &work);
    assert!(code == Some(2) && said.contains("set ANTHROPIC_API_KEY"), "{said}");
    assert!(!machine.state().exists(), "{said}");
}

#[test]
fn a_word_of_other_commands_is_no_task_and_a_task_of_several_words_is_to_be_quoted() {
    let machine = Machine::new();
    assert!(machine.run(&["agent", "rm"]).failure(2).contains("eyot pool rm ID"));
    let unquoted = machine.run(&["agent", "count", "files"]);
    assert!(unquoted.code == Some(2) && unquoted.stderr.contains("quote it"), "{unquoted:?}");
}
