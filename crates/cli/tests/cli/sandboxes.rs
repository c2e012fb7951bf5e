//! `create`, `ls`, `inspect`, `sleep`, `wake`, `rm` and `dial`.

use super::machine::Machine;

#[test]
fn a_sandbox_is_made_listed_and_removed() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["create", "--name", "a", "--label", "team=x"]).success(), "a\n");
    machine.create("b");
    let listed = machine.run(&["ls"]).success();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("NAME") && lines[1].starts_with("a ") && lines[1].contains("running"),
        "{listed}"
    );
    assert_eq!(machine.run(&["ls", "-q", "--label", "team=x"]).success().lines().count(), 1);
    assert_eq!(machine.run(&["ls", "--json"]).json()[1]["name"], "b");
    machine.run(&["rm", "a", "b"]).success();
    machine.assert_empty();
}

#[test]
fn labels_that_were_changed_are_listed_and_found() {
    let machine = Machine::with_sandbox();
    machine.run(&["update", "box", "--label", "team=search"]).success();
    assert_eq!(machine.run(&["ls", "-q", "--label", "team=search"]).success().lines().count(), 1);
    assert_eq!(machine.run(&["--json", "ls"]).json()[0]["spec"]["labels"]["team"], "search");
    machine.run(&["update", "box", "--remove-label", "team"]).success();
    assert_eq!(machine.run(&["ls", "-q", "--label", "team=search"]).success(), "");
}

#[test]
fn whoever_uses_a_sandbox_after_its_ttl_is_told_that_it_had_passed() {
    let machine = Machine::new();
    machine.run(&["create", "brief", "--ttl", "100ms"]).success();
    let gone = loop {
        let ran = machine.run(&["exec", "brief", "--", "true"]);
        if ran.code != Some(0) {
            break ran;
        }
    };
    assert!(gone.failure(125).contains("its ttl had passed"), "{gone:?}");
    // The first may have been under way at the end; the next finds that it is gone.
    machine.run(&["exec", "brief", "--", "true"]).failure(125);
    let events = machine.run(&["events", "--sandbox", "brief"]).success();
    assert!(events.contains("destroyed  (its ttl had passed)"), "{events}");
}

#[test]
fn a_name_that_is_taken_is_refused_and_its_holder_unharmed() {
    let machine = Machine::with_sandbox();
    assert!(machine.run(&["create", "--name", "box"]).failure(125).contains("--get-or-create"));
    let ran = machine.run(&["run", "--name", "box", "--", "true"]);
    let said = ran.failure(125);
    assert!(said.contains("hint: `eyot exec box -- COMMAND`") && said.contains("`eyot rm box`"), "{said}");
    assert_eq!(machine.run(&["exec", "box", "--", "echo", "alive"]).success(), "alive\n");
}

#[test]
fn several_sandboxes_are_inspected_at_once() {
    let machine = Machine::with_sandbox();
    machine.create("other");
    let page = machine.run(&["inspect", "box", "other"]).success();
    assert!(page.starts_with("box\n") && page.contains("\n\nother\n"), "{page}");
    let records = machine.run(&["inspect", "--json", "other", "box"]).json();
    assert_eq!((&records[0]["name"], &records[1]["name"]), (&"other".into(), &"box".into()));
    assert_eq!(machine.run(&["inspect", "--json", "box"]).json()["name"], "box");
    let ran = machine.run(&["inspect", "box", "nope"]);
    assert!(ran.failure(125).contains("nope") && ran.text().is_empty(), "{ran:?}");
}

#[test]
fn create_with_json_says_everything_but_secrets() {
    let machine = Machine::new();
    let file = machine.write("key.pem", "hunter2");
    let arguments =
        ["--json", "create", "--name", "a", "-e", "TOKEN=hunter2", "--file", &format!("key={file}")];
    let made = machine.run(&arguments).json();
    assert_eq!((made["name"].as_str(), made["status"].as_str()), (Some("a"), Some("running")));
    assert!(!made.to_string().contains("hunter2"), "{made}");
    assert_eq!(machine.run(&["read", "a", "key"]).success(), "hunter2");
}

#[test]
fn n7_inspect_shows_isolation_and_names_of_variables_but_no_values() {
    let machine = Machine::new();
    machine.run(&["create", "--name", "a", "-e", "TOKEN=hunter2", "--ttl", "1h"]).success();
    let page = machine.run(&["inspect", "a"]).success();
    for part in ["isolation", "namespaces", "seccomp", "network", "TOKEN", "1h", "usage"] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
    assert!(!page.contains("hunter2"), "{page}");
    let facts = machine.run(&["--json", "inspect", "a"]).json();
    assert!(facts["isolation"]["namespaces"].as_array().is_some_and(|names| !names.is_empty()), "{facts}");
    assert!(!facts.to_string().contains("hunter2"));
    assert!(machine.run(&["inspect", "--show-env", "a"]).success().contains("TOKEN=hunter2"));
    assert!(!machine.run(&["ls", "--json"]).success().contains("hunter2"));
}

#[test]
fn removing_goes_on_after_a_failure_and_force_forgives_what_is_missing() {
    let machine = Machine::with_sandbox();
    let removed = machine.run(&["rm", "nobody", "box"]);
    assert!(removed.code == Some(125) && removed.stderr.contains("nobody"), "{removed:?}");
    machine.assert_empty();
    machine.run(&["rm", "-f", "nobody"]).success();
    machine.run(&["-q", "rm", "--all"]).success();
    assert_eq!(machine.run(&["rm"]).code, Some(2));
}

#[test]
fn a_sandbox_sleeps_until_it_is_used_and_looking_at_it_is_no_use() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "sh", "-c", "echo kept > note"]).success();
    assert_eq!(machine.run(&["sleep", "box"]).success(), "");
    machine.run(&["sleep", "box"]).success();
    let listed = machine.run(&["ls"]).success();
    assert!(listed.lines().nth(1).is_some_and(|line| line.contains("sleeping")), "{listed}");
    assert!(machine.run(&["inspect", "box"]).success().contains("sleeping"));
    assert_eq!(machine.run(&["--json", "inspect", "box"]).json()["status"], "sleeping");
    for command in [&["logs", "box", "p1"][..], &["ps", "box"]] {
        let ran = machine.run(command);
        let said = ran.failure(125);
        assert!(said.contains("sandbox `box` sleeps") && said.contains("eyot wake box"), "{said}");
    }
    assert_eq!(machine.run(&["--json", "wake", "box"]).json()["awake"][0], "box");
    machine.run(&["wake", "box"]).success();
    for used in
        [&["read", "box", "note"][..], &["exec", "box", "--", "cat", "note"], &["cp", "box:note", "-"]]
    {
        machine.run(&["sleep", "box"]).success();
        assert_eq!(machine.run(used).success(), "kept\n");
    }
    assert_eq!(machine.run(&["--json", "sleep", "nobody", "box"]).code, Some(125));
    assert!(machine.run(&["wake", "nobody"]).failure(125).contains("nobody"));
    machine.run(&["rm", "box"]).success();
    machine.assert_empty();
}

#[test]
fn a_damaged_sandbox_is_listed_so_and_rm_all_removes_it_and_says_so() {
    let machine = Machine::with_sandbox();
    machine.create("whole");
    let id = machine.run(&["ls", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let damage = |id: &str| {
        let record = std::path::Path::new(&machine.state()).join("sandboxes").join(id).join("sandbox.json");
        std::fs::write(record, "").unwrap();
    };
    damage(&id);
    let listed = machine.run(&["ls"]).success();
    assert!(listed.lines().any(|line| line.starts_with("box ") && line.contains("damaged")), "{listed}");
    let refused = machine.run(&["exec", "box", "--", "true"]);
    assert!(refused.failure(125).contains(&format!("sandbox `{id}` is damaged")), "{refused:?}");
    let removed = machine.run(&["rm", "--all"]);
    let said = format!("eyot: removed 1 damaged sandbox: {id}\n");
    assert_eq!((removed.code, removed.stderr), (Some(0), said));
    machine.assert_empty();
    machine.create("box");
    let id = machine.run(&["ls", "-q"]).success().trim().to_owned();
    damage(&id);
    machine.run(&["rm", "box"]).success();
    machine.assert_empty();
}

#[test]
fn a_change_that_can_not_be_written_says_why() {
    let machine = Machine::with_sandbox();
    let id = machine.run(&["ls", "-q"]).success().trim().to_owned();
    let in_the_way = machine.state().join("sandboxes").join(id).join("sandbox.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let ran = machine.run(&["update", "box", "--ttl", "1d"]);
    assert!(ran.failure(125).contains("write the sandbox's record: is a directory"), "{ran:?}");
    std::fs::remove_dir(in_the_way).unwrap();
    machine.run(&["update", "box", "--ttl", "1d"]).success();
}

#[test]
fn a_sandbox_whose_guest_was_killed_is_dead_until_it_is_woken_or_used() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "sh", "-c", "echo kept > note"]).success();
    let id = machine.run(&["ls", "-q"]).success().trim().to_owned();
    let ready = std::path::Path::new(&machine.state()).join("sandboxes").join(&id).join("ready");
    for way_back in [&["wake", "box"][..], &["read", "box", "note"]] {
        let mark = std::fs::read_link(&ready).unwrap().to_str().unwrap().to_owned();
        let guest = mark.split(' ').next().unwrap().to_owned();
        let killed = std::process::Command::new("kill").args(["-9", &guest]).status().unwrap();
        assert!(killed.success());
        while !machine.run(&["ls"]).success().contains("dead") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let said = machine.run(&["ps", "box"]).failure(125).to_owned();
        assert!(said.contains("its guest ended unexpectedly") && said.contains("eyot wake box"), "{said}");
        machine.run(way_back).success();
        assert_eq!(machine.run(&["exec", "box", "--", "cat", "note"]).success(), "kept\n");
    }
}

#[test]
fn dial_connects_stdin_and_stdout_to_a_port_inside() {
    let machine = Machine::with_sandbox();
    let server = "import socket\n\
                  s = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True)\n\
                  c = s.accept()[0]\n\
                  data = b''\n\
                  while chunk := c.recv(65536): data += chunk\n\
                  c.sendall(data[::-1]); c.close()";
    machine.run(&["start", "box", "--", "python3", "-c", server]).success();
    // A probe would take the only connection, so wait for the word.
    while machine.run(&["logs", "box", "p1"]).text() != "ready\n" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(machine.run_with_input(&["dial", "box", "8000"], b"hello").success(), "olleh");
    machine.run(&["dial", "box", "8001"]).failure(125);
}

#[test]
fn n4_text_of_a_sandbox_reaches_a_terminal_without_anything_that_deceives() {
    let machine = Machine::new();
    // A right-to-left override, an isolate, a zero-width space, a C1 control, a byte order mark, a line separator.
    let evil = "a\u{202e}b\u{2066}c\u{200b}d\u{9b}e\u{feff}f\u{2028}g";
    let label = format!("note={evil}");
    machine.run(&["create", "--name", "box", "--label", &label, "--metadata", &label]).success();
    machine.run(&["start", "box", "--", "sleep", "1000", evil]).success();
    machine.run(&["write", "box", evil]).success();
    let missing = format!("{evil}-missing");
    let shown = [
        machine.run(&["inspect", "box"]).text(),
        machine.run(&["ps", "box"]).text(),
        machine.run(&["top", "--once", "box"]).text(),
        machine.run(&["read", "box", &missing]).failure(125).to_owned(),
        machine.run(&["--json", "read", "box", &missing]).stderr,
        machine.run(&["--json", "inspect", "box"]).text(),
        machine.run(&["--json", "ps", "box"]).text(),
        machine.run(&["--json", "glob", "box", "*"]).text(),
    ];
    for text in &shown {
        let harmless =
            |character: char| character == '\n' || character == ' ' || character.is_ascii_graphic();
        assert!(text.chars().all(harmless), "{text:?}");
    }
    assert!(shown[0].contains(r"a\u{202e}b\u{2066}c\u{200b}d\u{9b}e\u{feff}f\u{2028}g"), "{}", shown[0]);
    // A program gets the value as it is.
    let info = machine.run(&["--json", "inspect", "box"]).json();
    assert_eq!(info["spec"]["labels"]["note"], evil);
    assert_eq!(machine.run(&["glob", "box", "*"]).text(), format!("/workspace/{evil}\n"));
}

#[test]
fn a_flag_that_only_docker_takes_is_refused_natively_and_says_so() {
    let machine = Machine::new();
    for command in [&["create", "--net", "bridge"][..], &["run", "--net", "bridge", "--", "true"]] {
        let refused = machine.run(command);
        assert!(refused.failure(2).contains("--net bridge needs --provider docker"), "{refused:?}");
    }
    machine.assert_empty();
}
