//! The images of a server: pulled, imported, listed and removed over HTTP and by `eyot --server`.

use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Case;
use crate::machine::{Machine, Ran};
use crate::pulling::{assert_tidy, image};
use crate::registry::Registry;
use crate::server::Server;

/// A bound for waits: an event that has not come by then never comes.
const HANG: Duration = Duration::from_secs(20);

pub fn trials() -> Vec<Case> {
    vec![
        ("the_images_of_a_server_are_pulled_listed_used_and_removed_by_the_command_line", commands),
        ("a_pull_over_http_tells_its_progress_and_last_the_image", progress),
        ("a_key_pulls_only_images_that_the_configuration_allows", allowed),
    ]
}

/// Returns the tests that need no registry.
pub fn plain_trials() -> Vec<Case> {
    vec![
        ("archives_folders_and_standard_input_are_imported_over_a_server", imports),
        ("a_pull_ends_when_its_client_goes_away", gone),
    ]
}

/// Runs `eyot` over a server.
fn there(machine: &Machine, server: &Server, arguments: &[&str]) -> Ran {
    let url = format!("http://{}", server.address);
    let arguments = [&["--server", url.as_str()], arguments].concat();
    Ran::from(machine.command(&arguments).env("EYOT_API_KEY", &server.key).output().unwrap())
}

fn commands() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "team/app:1");
    let name = registry.name("team/app:1");
    let server = Server::start(&machine, &[], &["--no-keys"], &[]);
    let there = |arguments: &[&str]| there(&machine, &server, arguments);
    assert_eq!(there(&["image", "pull", &name]).success(), format!("{name}\n"));
    assert_tidy(&machine);
    for list in [&["image", "ls"][..], &["image", "ls", "-q"], &["--json", "image", "ls"]] {
        assert_eq!(there(list).success(), machine.run(list).success());
    }
    there(&["create", "--name", "box", "--image", &name, "--pull", "never"]).success();
    for refused in [there(&["image", "rm", &name]), machine.run(&["image", "rm", &name])] {
        assert!(refused.failure(125).contains("made over it: box\n"), "{refused:?}");
    }
    let removed = there(&["--json", "image", "rm", "--force", &name]).json();
    assert_eq!(removed["images"], json!([name]));
    assert_eq!(there(&["image", "ls", "-q"]).success(), "");
    let absent = there(&["image", "pull", &registry.name("team/none:1")]);
    assert!(absent.failure(125).contains("has none"), "{absent:?}");
}

/// Reads the events of an answer, up to the last one.
fn events(server: &Server, path: &str) -> Vec<(String, Value)> {
    let mut connection = server.connect();
    connection.send("POST", path, "");
    let (mut events, mut name) = (Vec::new(), String::new());
    while let Some(line) = connection.line() {
        let line = line.trim_end();
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((name.clone(), serde_json::from_str(data).unwrap()));
            if name != "progress" {
                break;
            }
        }
    }
    events
}

fn progress() {
    let (registry, machine) = (Registry::new(), Machine::new());
    let digest = registry.push(&image(), "app:1");
    let server = Server::start(&machine, &[], &["--no-keys"], &[]);
    let name = registry.name("app:1");
    let told = events(&server, &format!("/v1/images/pull?name={name}"));
    let ((last, image), progress) = told.split_last().unwrap();
    assert_eq!(
        (last.as_str(), &image["name"], &image["digest"]),
        ("image", &json!(name), &json!(digest.to_string()))
    );
    let (_, progress) = progress.last().expect("progress");
    assert_eq!(progress["received_bytes"], progress["total_bytes"], "{progress}");
    assert!(progress["total_bytes"].as_u64().unwrap() > 900_000, "{progress}");
    assert_eq!((&progress["blobs"], &progress["blobs_done"]), (&json!(4), &json!(4)));
}

fn allowed() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "team/app:1");
    registry.push(&image(), "other/app:1");
    let pattern = registry.name("team/*");
    machine.write("home/.config/eyot/config.toml", format!("[registries]\nallow = [\"{pattern}\"]\n"));
    let server = Server::start(&machine, &[], &[], &[]);
    let name = registry.name("team/app:1");
    assert_eq!(there(&machine, &server, &["image", "pull", &name]).success(), format!("{name}\n"));
    let path = format!("/v1/images/pull?name={}", registry.name("other/app:1"));
    let (status, body) = server.ask("POST", &path, "");
    assert!(status == 403 && body.contains("`allow`"), "{status} {body}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), format!("{name}\n"));
    let refused = there(&machine, &server, &["image", "rm", &name]);
    assert!(refused.failure(125).contains("--image-key"), "{refused:?}");
}

fn imports() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &["--image-key", "ours"], &[]);
    let there = |arguments: &[&str]| there(&machine, &server, arguments);
    let (archive, folder) = (machine.path("archive.tar"), machine.path("layout"));
    image().write_docker_archive(&archive, &["saved:1"]).unwrap();
    image().write_layout(&folder, Some("layout:1")).unwrap();
    assert_eq!(there(&["image", "import", archive.to_str().unwrap()]).success(), "saved:1\n");
    assert_eq!(there(&["image", "import", folder.to_str().unwrap()]).success(), "layout:1\n");
    let url = format!("http://{}", server.address);
    let piped = ["--server", &url, "image", "import", "-", "--name", "piped:1"];
    let mut piped = machine.command(&piped);
    let piped = piped.env("EYOT_API_KEY", &server.key).stdin(std::fs::File::open(&archive).unwrap());
    assert_eq!(Ran::from(piped.output().unwrap()).success(), "piped:1\n");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "layout:1\npiped:1\nsaved:1\n");
    assert_tidy(&machine);
    there(&["image", "rm", "layout:1", "piped:1", "saved:1"]).success();
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    let absent = there(&["image", "import", &machine.path_text("none.tar")]);
    assert!(absent.failure(125).contains("none.tar"), "{absent:?}");
    for (arguments, hint) in
        [(&["image", "import", "docker://app:1"][..], "docker save"), (&["image", "prune"], "--server")]
    {
        let refused = there(arguments);
        assert!(refused.failure(2).contains(hint), "{refused:?}");
    }
}

fn gone() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &["--no-keys"], &[]);
    // A registry that accepts requests and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = server.connect();
    client.send("POST", &format!("/v1/images/pull?name={}/app:1", silent.local_addr().unwrap()), "");
    let (mut asked, _) = silent.accept().unwrap();
    asked.set_read_timeout(Some(HANG)).unwrap();
    drop(client);
    let ended = asked.read_to_end(&mut Vec::new());
    assert!(
        !ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        "the server still waits for the registry"
    );
}
