//! The table of providers, as the command line shows it, and the options of providers.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use serde_json::Value;

use super::machine::{Machine, Ran};

/// Runs `eyot` where no Docker Engine answers.
fn without_engine(machine: &Machine, arguments: &[&str]) -> Ran {
    let nowhere = format!("unix://{}", machine.path_text("no-engine.sock"));
    Ran::from(machine.command(arguments).env("DOCKER_HOST", nowhere).output().unwrap())
}

fn listed(ran: &Ran, name: &str) -> Value {
    let all = ran.json();
    let found = all.as_array().unwrap().iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not listed: {all}")).clone()
}

#[test]
fn every_provider_is_listed_with_what_it_can_do_here_and_why_not() {
    let machine = Machine::new();
    let ran = without_engine(&machine, &["--json", "providers"]);
    let (native, docker) = (listed(&ran, "native"), listed(&ran, "docker"));
    assert_eq!((&native["usable"], &native["in_use"]), (&true.into(), &true.into()), "{native}");
    assert!(native["capabilities"].as_array().unwrap().contains(&"pty".into()), "{native}");
    assert_eq!((&docker["usable"], &docker["cause"]), (&false.into(), &"no-engine".into()), "{docker}");
    assert!(docker["why"].as_str().unwrap().contains("no Docker Engine answers"), "{docker}");
    assert!(docker["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{docker}");
    assert_eq!(docker["lives_with_its_process"], false);
    let names = |listed: &Value| -> Vec<String> {
        let options = listed["options"].as_array().unwrap();
        options.iter().map(|option| option["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names(&native), names(&docker)),
        (vec!["slots".into()], vec!["address".into(), "image".into()])
    );
    let slots = &native["options"][0];
    assert_eq!(
        (&slots["kind"], &slots["most"], &slots["default"]),
        (&"number".into(), &64.into(), &"0".into())
    );
    machine.assert_empty();
}

#[test]
fn a_person_reads_what_each_provider_can_do_in_words() {
    let machine = Machine::new();
    let text = without_engine(&machine, &["--provider", "docker", "providers"]).success();
    for line in ["native: this Linux host itself", "docker: a Docker Engine (in use)"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(text.contains("terminals") && text.contains("  fix      ") && text.contains("no: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn an_unknown_provider_is_refused_with_those_there_are() {
    let machine = Machine::new();
    let ran = machine.run(&["--provider", "dokcer", "ls"]);
    let said = |words: &str| ran.stderr.contains(words);
    assert!(ran.code == Some(2) && said("dokcer") && said("native, docker, memory"), "{ran:?}");
    let ran = Ran::from(machine.command(&["ls"]).env("EYOT_PROVIDER", "cloud").output().unwrap());
    assert!(
        ran.failure(2).contains("use native, docker, memory, e2b, cloudflare, modal, daytona or kubernetes"),
        "{ran:?}"
    );
    machine.write("home/.config/eyot/config.toml", "provider = \"dokcer\"\n");
    let ran = machine.run(&["ls"]);
    let said = ran.failure(2);
    assert!(said.contains("line 1") && said.contains("there is docker"), "{said}");
    assert!(!machine.state().exists());
}

#[test]
fn an_option_that_the_provider_lacks_and_a_wrong_value_are_refused_before_anything_is_made() {
    let machine = Machine::new();
    let with = |option: &str| machine.run(&["--provider-option", option, "create", "box"]);
    let unknown = with("slot=1");
    let said = unknown.failure(2);
    assert!(said.contains("the provider native has no option `slot`") && said.contains("`slots`"), "{said}");
    let wrong = with("slots=65");
    assert!(wrong.failure(2).contains("a number of slots from 0 to 64, not `65`"), "{wrong:?}");
    assert_eq!(with("slots").code, Some(2));
    let server = ["--server", "http://127.0.0.1:1", "--provider-option", "slots=1", "ls"];
    assert!(machine.run(&server).failure(2).contains("a server is named"));
    assert!(!machine.state().exists());
}

/// Listens as an Engine of this version, as far as `eyot providers` asks. Returns its address.
fn engine(machine: &Machine, version: &'static str) -> String {
    let path = machine.path_text(&format!("engine-{version}.sock"));
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let answer = format!(r#"{{"Version":"{version}","ApiVersion":"1.47","MinAPIVersion":"1.24"}}"#);
            let length = answer.len();
            // The client may ask once more on the same connection.
            let mut request = [0; 4096];
            while stream.read(&mut request).is_ok_and(|read| read > 0) {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
                if write!(stream, "{head} {length}\r\n\r\n{answer}").is_err() {
                    break;
                }
            }
        }
    });
    format!("unix://{path}")
}

#[test]
fn an_option_wins_over_the_file_and_the_file_over_the_default() {
    let machine = Machine::new();
    let (of_file, of_flag) = (engine(&machine, "1.file"), engine(&machine, "2.flag"));
    machine.write("home/.config/eyot/config.toml", format!("[providers.docker]\naddress = \"{of_file}\"\n"));
    let why = |arguments: &[&str]| {
        let ran = without_engine(&machine, &[arguments, &["--json", "providers"]].concat());
        listed(&ran, "docker")["why"].as_str().unwrap().to_owned()
    };
    assert_eq!(why(&[]), "an Engine 1.file answers");
    let option = format!("address={of_flag}");
    let flag = ["--provider", "docker", "--provider-option", &option];
    assert_eq!(why(&flag), "an Engine 2.flag answers");
}

#[test]
fn completions_offer_the_names_of_the_table() {
    let script = Machine::new().run(&["completions", "bash"]).success();
    assert!(script.contains("native docker memory"), "completions lack the providers");
}

#[test]
fn providers_is_about_this_host() {
    let refused = Machine::new().run(&["--server", "http://127.0.0.1:1", "providers"]);
    assert!(refused.failure(2).contains("a server is named"), "{refused:?}");
}

#[test]
fn a_create_in_memory_is_refused_with_what_works_and_a_run_works() {
    let machine = Machine::new();
    let ran = machine.run(&["--provider", "memory", "create", "box"]);
    let said = ran.failure(2);
    assert!(["eyot run", "eyot mcp", "eyot serve"].iter().all(|way| said.contains(way)), "{said}");
    assert!(!machine.state().exists());
    let ran = machine.run(&["--provider", "memory", "run", "--", "echo", "hi"]);
    assert_eq!(ran.success(), "hi\n");
    let ran = machine.run(&["--provider", "memory", "run", "--", "sh", "-c", "cat /etc/hostname; exit 3"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn what_memory_lacks_is_refused_with_a_provider_that_has_it() {
    let machine = Machine::new();
    for flags in [&["--net", "egress"][..], &["-v", "/tmp:/x:ro"], &["--image", "debian:13"], &["-u", "root"]]
    {
        let ran = machine.run(&[&["--provider", "memory", "run"], flags, &["--", "true"]].concat());
        assert!(ran.failure(125).contains("such as --provider native\n"), "{ran:?}");
    }
    let ran = machine.run(&["--provider", "memory", "run", "--", "python3", "x.py"]);
    assert!(ran.failure(127).contains("others need --provider native or docker\n"), "{ran:?}");
}
