//! Flags win over variables, which win over the user's file.

use super::machine::{Machine, Ran};

#[test]
fn an_unknown_key_is_refused_with_the_files_name_and_line() {
    let machine = Machine::new();
    machine.write("home/.config/eyot/config.toml", "[defaults]\nmemory = 5\n");
    let ran = machine.run(&["ls"]);
    let sentence = ran.failure(2);
    assert!(
        sentence.contains("config.toml") && sentence.contains("line 2") && sentence.contains("memory"),
        "{sentence}"
    );
}

#[test]
fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
    let machine = Machine::new();
    machine.write("home/.config/eyot/config.toml", "[defaults]\nttl = \"1h\"\npids = 64\ntimeout = \"9m\"\n");
    let mut create = machine.command(&["--json", "create", "--name", "a", "--ttl", "3h"]);
    let output = create.env("EYOT_TTL", "2h").env("EYOT_PIDS", "32").output().unwrap();
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["spec"]["lifecycle"]["ttl_ms"], 3 * 3_600_000);
    assert_eq!(made["spec"]["limits"]["pids"], 32);
    assert_eq!(made["spec"]["limits"]["timeout_ms"], 540_000);
}

#[test]
fn never_takes_a_configured_deadline_away_wherever_it_is_said() {
    let machine = Machine::new();
    let file = "[defaults]\nttl = \"1h\"\nidle_timeout = \"2h\"\n";
    machine.write("home/.config/eyot/config.toml", file);
    let none = serde_json::Value::Null;
    let flags = ["--json", "create", "a", "--ttl", "never", "--idle-timeout", "never"];
    let made = machine.run(&flags).json();
    let lifecycle = &made["spec"]["lifecycle"];
    assert_eq!((&lifecycle["ttl_ms"], &lifecycle["idle_timeout_ms"]), (&none, &none));
    machine.run(&["run", "--ttl", "never", "--idle-timeout", "never", "--", "true"]).success();

    let output = machine.command(&["--json", "create", "b"]).env("EYOT_TTL", "never").output().unwrap();
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lifecycle = &made["spec"]["lifecycle"];
    assert_eq!((&lifecycle["ttl_ms"], &lifecycle["idle_timeout_ms"]), (&none, &7_200_000.into()));

    machine.write("home/.config/eyot/config.toml", "[defaults]\nttl = \"never\"\n");
    let made = machine.run(&["--json", "create", "c"]).json();
    assert_eq!(made["spec"]["lifecycle"]["ttl_ms"], none);
}

#[test]
fn the_state_folder_is_the_flags_the_variables_or_the_files() {
    let machine = Machine::with_sandbox();
    let other = machine.path_text("other");
    assert_eq!(machine.run(&["--state", &other, "ls", "-q"]).success(), "");
    machine.write("home/.config/eyot/config.toml", format!("state = \"{other}\"\n"));
    let mut list = machine.command(&["ls", "-q"]);
    let output = list.env_remove("EYOT_STATE").output().unwrap();
    assert_eq!(output.stdout, b"");
    assert_eq!(machine.run(&["ls", "-q"]).success().lines().count(), 1);
}

#[test]
fn causes_are_shown_only_with_verbose() {
    let machine = Machine::new();
    let file = machine.write("file", "");
    let quiet = machine.run(&["--state", &file, "ls"]);
    quiet.failure(125);
    let verbose = machine.run(&["--verbose", "--state", &file, "ls"]);
    assert!(verbose.stderr.contains("caused by: "), "{verbose:?}");
}

#[test]
fn a_pool_is_held_to_the_configured_quota_and_knows_the_configured_images() {
    let machine = Machine::new();
    let file = "[quotas]\nmax_sandboxes = 1\n[images]\n\"python:3.12\" = \"host\"\n";
    machine.write("home/.config/eyot/config.toml", file);
    let create = |name: &str, image: &str| {
        let input = serde_json::json!({ "sandbox": name, "image": image }).to_string();
        machine.run(&["call", "pool", "sandbox_create", &input])
    };
    assert!(create("a", "python:3.12").success().contains("python:3.12"));
    let refused = create("b", "python:3.12");
    assert!(refused.code == Some(1) && refused.text().contains("may have 1 "), "{refused:?}");
    machine.run(&["pool", "rm", "default"]).success();
}

#[test]
fn a_variable_that_is_nearly_one_of_ours_is_refused_and_any_other_is_not() {
    let machine = Machine::new();
    for (typed, ours) in [("EYOT_MEMORY", "EYOT_MEMORY_MIB"), ("EYOT_IDEL_TIMEOUT", "EYOT_IDLE_TIMEOUT")] {
        let ran = Ran::from(machine.command(&["run", "true"]).env(typed, "1g").output().unwrap());
        let said = ran.failure(2);
        assert!(said.contains(&format!("`{typed}`")) && said.contains(&format!("{ours} is")), "{said}");
    }
    let ran = Ran::from(machine.command(&["run", "true"]).env("EYOT_OF_ANOTHER", "1").output().unwrap());
    ran.success();
}

#[test]
fn a_wrong_value_of_a_variable_is_named_with_what_is_right() {
    let machine = Machine::new();
    for (name, value, right) in [
        ("EYOT_MEMORY_MIB", "512m", "write a number of MiB, such as 512\n"),
        ("EYOT_DISK_MIB", "1g", "write a number of MiB, such as 512\n"),
        ("EYOT_CPUS", "two", "write a number of processors, such as 1.5\n"),
        ("EYOT_PIDS", "-1", "write a number of processes, such as 512\n"),
        ("EYOT_MAX_OUTPUT_BYTES", "64k", "write a number of bytes, such as 65536\n"),
        ("EYOT_MAX_FILE_BYTES", "1m", "write a number of bytes, such as 65536\n"),
        ("EYOT_POOL_MAX_SANDBOXES", "many", "such as 20, or unlimited\n"),
        ("EYOT_POOL_MEMORY_MIB", "4g", "such as 4096, or unlimited\n"),
        ("EYOT_DOCKER_ENGINE", "no", "write true or false\n"),
        ("EYOT_TIMEOUT", "10", "write 10s"),
        ("EYOT_IDLE_TIMEOUT", "soon", "or never"),
    ] {
        let ran = Ran::from(machine.command(&["run", "true"]).env(name, value).output().unwrap());
        let said = ran.failure(2);
        assert!(said.contains(name) && said.contains(right) && said.contains(value), "{said}");
    }
}

#[test]
fn a_server_without_its_scheme_is_told_what_is_missing() {
    let machine = Machine::new();
    let said = machine.run(&["--server", "127.0.0.1:7070", "ls"]);
    assert!(said.failure(2).contains("neither http:// nor https:// nor unix:/"), "{said:?}");
}

#[test]
fn https_to_a_server_without_tls_is_told_so() {
    let machine = Machine::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let plain = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut caller, b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
    });
    let said = machine.run(&["--server", &server, "ls"]);
    plain.join().unwrap();
    assert!(said.failure(125).contains("begins with http://"), "{said:?}");
}

#[test]
fn a_named_file_takes_the_place_of_the_user_s_and_must_be_there() {
    let machine = Machine::new();
    machine.write("home/.config/eyot/config.toml", "[defaults]\nmemory_mib = 50\n");
    machine.write("team.toml", "[defaults]\npids = 77\n");
    let file = machine.path_text("team.toml");
    let made = machine.run(&["--config", &file, "--json", "create", "a"]).success();
    assert!(made.contains("\"pids\":77"), "{made}");
    let mut listed = machine.command(&["ls"]);
    let listed = listed.env("EYOT_CONFIG", &file).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let refused = machine.run(&["--config", &machine.path_text("nowhere.toml"), "ls"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("there is no configuration"), "{refused:?}");
}

#[test]
fn a_database_is_for_sandboxes_that_several_hosts_have_and_its_password_is_never_shown() {
    let machine = Machine::new();
    let run = |database: &str, arguments: &[&str]| {
        Ran::from(machine.command(arguments).env("EYOT_DATABASE", database).output().unwrap())
    };
    let absent = "postgresql://me:secret@127.0.0.1:1/eyot";
    for command in
        [&["ls"][..], &["keys", "ls"], &["serve", "--listen", "127.0.0.1:0"], &["events"], &["pool", "ls"]]
    {
        let ran = run(absent, command);
        let said = ran.failure(2);
        assert!(
            said.contains("those of native are one host's") && said.contains("kubernetes"),
            "{command:?}: {said}"
        );
    }
    for command in [&["backup", "file"][..], &["pool", "reconcile", "--new-store"]] {
        let ran = run(absent, &[&["--provider", "kubernetes"], command].concat());
        let said = ran.failure(2);
        assert!(said.contains("the store is the database eyot at 127.0.0.1"), "{command:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
    for wrong in ["secret", "mysql://me:secret@h/d", "postgresql://me:secret@h:x/d"] {
        let ran = run(wrong, &["--provider", "kubernetes", "keys", "ls"]);
        let said = ran.failure(2);
        assert!(said.contains("hint: write it as postgresql://") && !said.contains("secret"), "{said}");
    }
    let misspelt = Ran::from(machine.command(&["ls"]).env("EYOT_DATABASE_URL", absent).output().unwrap());
    assert!(misspelt.failure(2).contains("EYOT_DATABASE is"), "{misspelt:?}");
    assert!(!machine.state().exists());
}
