//! The habits of people who know Docker: names, options, sizes and words that they type are taken
//! where they mean the same, and otherwise the error names ours.

use super::machine::{Machine, Ran};

/// Returns standard error. The arguments must have been refused.
#[track_caller]
fn refused(machine: &Machine, arguments: &[&str]) -> String {
    let ran = machine.run(arguments);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    ran.stderr
}

#[test]
fn create_takes_the_name_as_its_argument() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["create", "dev"]).success(), "dev\n");
    assert_eq!(machine.run(&["exec", "dev", "--", "echo", "hi"]).success(), "hi\n");
    assert!(machine.run(&["create", "dev"]).failure(125).contains("--get-or-create"));
    refused(&machine, &["create", "one", "--name", "two"]);
}

#[test]
fn get_or_create_uses_the_sandbox_that_is_there_awake() {
    let machine = Machine::new();
    machine.run(&["create", "--get-or-create"]).failure(2);
    assert_eq!(machine.run(&["create", "dev", "--get-or-create"]).success(), "dev\n");
    machine.run(&["write", "dev", "note", "--content", "kept"]).success();
    machine.run(&["stop", "dev"]).success();
    let again = machine.run(&["create", "dev", "--get-or-create", "--net", "host"]);
    assert_eq!((again.code, again.text().as_str()), (Some(0), "dev\n"));
    assert!(again.stderr.contains("dev was there already, with another network"), "{again:?}");
    for (flags, other) in [
        (&["--idle-timeout", "1h", "--ttl", "2h"][..], "another ttl, idle timeout\n"),
        (&["--ttl", "never", "--idle-timeout", "never", "--image", "host"], "dev was there already\n"),
        (&["-l", "a=b", "--pids", "99"], "another set of labels, limit of processes\n"),
        (&["--timeout", "5s", "--workspace", "w"], "another workspace, deadline of commands\n"),
        (&["-v", "/tmp:/data:ro"], "another set of mounts\n"),
    ] {
        let again = machine.run(&[&["create", "dev", "--get-or-create"], flags].concat());
        assert!(again.code == Some(0) && again.stderr.contains(other), "{again:?}");
    }
    assert!(machine.run(&["ls"]).success().contains("running"));
    assert_eq!(machine.run(&["-q", "create", "dev", "--get-or-create"]).success(), "dev\n");
    assert_eq!(machine.run(&["read", "dev", "note"]).success(), "kept");
}

#[test]
fn sizes_and_durations_are_taken_as_people_type_them() {
    let machine = Machine::new();
    // Quietly: an ordinary user without control groups hears that nothing enforces the memory.
    machine.run(&["-q", "create", "dev", "-m", "1.5g", "--pids-limit", "99", "--ttl", "1.5h"]).success();
    let spec = machine.run(&["inspect", "dev", "--json"]).json()["spec"].take();
    assert_eq!((&spec["limits"]["memory_mib"], &spec["limits"]["pids"]), (&1536.into(), &99.into()));
    assert_eq!(spec["lifecycle"]["ttl_ms"], 5_400_000);
    machine.run(&["write", "dev", "note", "--content", "hello"]).success();
    assert_eq!(machine.run(&["read", "dev", "note", "--limit", "1k"]).success(), "hello");
    assert!(refused(&machine, &["create", "--memory", "512"]).contains("write 512m"));
    assert!(refused(&machine, &["create", "--disk", "lots"]).contains("write 512m, 2g or 1.5g"));
    assert!(refused(&machine, &["create", "--ttl", "30"]).contains("write 30s"));
}

#[test]
fn the_working_directory_is_one_option_on_every_command() {
    let machine = Machine::new();
    machine.run(&["create", "dev", "-w", "/tmp"]).success();
    assert_eq!(machine.run(&["exec", "dev", "pwd"]).success(), "/tmp\n");
    for option in ["-w", "--workdir", "--cwd"] {
        assert_eq!(machine.run(&["exec", option, "/usr", "dev", "pwd"]).success(), "/usr\n", "{option}");
    }
    assert_eq!(machine.run(&["run", "-w", "/tmp", "pwd"]).success(), "/tmp\n");
    assert_eq!(machine.run_with_input(&["sh", "-w", "/usr", "dev"], b"pwd").success(), "/usr\n");
    machine.run(&["start", "--workdir", "/usr", "dev", "--", "pwd"]).success();
    assert_eq!(machine.run(&["logs", "-f", "dev", "p1"]).success(), "/usr\n");
}

#[test]
fn variables_come_from_files_on_every_command_and_an_option_goes_before_a_file() {
    let machine = Machine::new();
    let file = machine.write("variables", "# of the app\nA=of the file\nB=b\n");
    let print = ["sh", "-c", "echo $A $B"];
    machine.create("dev");
    for command in [&["run"][..], &["exec", "dev"]] {
        let (word, name) = command.split_first().unwrap();
        let options = [&[*word, "--env-file", &file, "-e", "B=mine"], name, &["--"], &print].concat();
        assert_eq!(machine.run(&options).success(), "of the file mine\n", "{command:?}");
    }
    let shell = machine.run_with_input(&["sh", "--env-file", &file, "dev"], b"echo $B");
    assert_eq!(shell.success(), "b\n");
    machine.run(&[&["start", "--env-file", &file, "dev", "--"], &print[..]].concat()).success();
    assert_eq!(machine.run(&["logs", "-f", "dev", "p1"]).success(), "of the file b\n");
    let missing = machine.run(&["exec", "--env-file", "/nonexistent", "dev", "true"]);
    assert!(missing.failure(125).contains("read the env file `/nonexistent`"), "{missing:?}");
}

#[test]
fn a_folder_is_mounted_where_commands_start_in_one_line() {
    let machine = Machine::new();
    machine.write("project/x.sh", "echo from the host in $PWD");
    let at = |target: &str| format!("{}:{target}", machine.path_text("project"));
    for (target, workdir) in [("/app", "/app"), ("/workspace", "/workspace"), ("/app", "/app/")] {
        let words = ["run", "--rm", "-v", &at(&format!("{target}:ro")), "-w", workdir, "sh", "x.sh"];
        assert_eq!(machine.run(&words).success(), format!("from the host in {target}\n"));
    }
    machine.run(&["create", "dev", "--mount", &at("/workspace")]).success();
    assert_eq!(machine.run(&["read", "dev", "x.sh"]).success(), "echo from the host in $PWD");
    assert!(machine.run(&["write", "dev", "new", "--content", ""]).failure(125).contains("read-only"));
    machine.run(&["rm", "dev"]).success();
    assert!(machine.path("project/x.sh").exists());
    let file = format!("{}:/app", machine.path_text("project/x.sh"));
    for workdir in ["/app", "/app/below"] {
        let ran = machine.run(&["run", "--mount", &file, "-w", workdir, "true"]);
        assert!(ran.failure(125).contains("the target of --mount is where commands start"), "{ran:?}");
    }
    let kept = ["run", "--mount", &at("/workspace"), "--workspace", "kept", "true"];
    assert!(machine.run(&kept).failure(125).contains("must not be in a persistent workspace"));
}

#[test]
fn a_volume_of_docker_is_a_mount_that_says_what_may_be_written() {
    let machine = Machine::new();
    machine.write("shared/file", "content");
    let at = |end: &str| format!("{}:/mnt/in{end}", machine.path_text("shared"));
    assert_eq!(machine.run(&["run", "--rm", "-v", &at(":ro"), "cat", "/mnt/in/file"]).success(), "content");
    assert!(refused(&machine, &["run", "-v", &at(""), "true"]).contains("if the sandbox may change"));
    for (volume, ours) in [
        ("data:/data:rw", "--workspace"),
        ("data:/data", "write ./data:/data:ro, or ./data:/data:rw if"),
        ("data:/data:rw,z", "write ./data:/data:ro, or ./data:/data:rw if"),
        ("/tmp", "such as /tmp:/data:ro"),
        ("/tmp:/x:rw,z", "write /tmp:/x:ro, or /tmp:/x:rw if"),
        ("/tmp:/x:z", "write /tmp:/x:ro, or /tmp:/x:rw if"),
    ] {
        let said = refused(&machine, &["run", "-v", volume, "true"]);
        assert!(said.contains(ours) && !said.contains("rw:r") && !said.contains("z:r"), "{volume}: {said}");
    }
}

#[test]
fn an_option_of_docker_that_means_something_else_names_ours() {
    let machine = Machine::new();
    for (arguments, ours) in [
        (&["run", "-d", "true"][..], "eyot start NAME"),
        (&["exec", "--detach", "dev", "true"], "eyot start NAME"),
        (&["run", "-p", "8080:80", "true"], "eyot browse NAME 80"),
        (&["run", "--rm", "--keep", "true"], "cannot be used with"),
        (&["create", "--rm"], "--idle-timeout"),
        (&["ls", "-a"], "lists sleeping sandboxes too"),
        (&["ls", "-v"], "--verbose"),
        (&["ls", "--filter", "status=running"], "--label K=V"),
        (&["update", "dev", "--image", "node:22"], "`eyot create NAME`"),
        (&["run", "--ulimit", "nofile=9", "true"], "`ulimit` in a shell"),
        (&["run", "--dns", "9.9.9.9", "true"], "as this host does"),
        (&["run", "--shm-size", "1g", "true"], "half of what --memory allows"),
        (&["run", "--mount", "type=bind,src=/a,dst=/b", "true"], "write /a:/b:ro, or /a:/b:rw if"),
        (&["compose", "up"], "`eyot create NAME`"),
        (&["clone", "dev"], "`eyot fork NAME`"),
        (&["run", "--expose", "80", "true"], "eyot browse NAME PORT"),
        (&["run", "--pid", "host", "true"], "namespaces of its own"),
        (&["image", "rm", "--dangling", "x"], "`eyot image rm --help` lists its options"),
        (&["ps", "-a"], "`eyot ls` lists all sandboxes"),
        (&["run", "--privileged", "true"], "where root or docker makes the sandbox"),
        (&["run", "--cap-add", "NET_ADMIN", "true"], "--image debian:13 --user root"),
        (&["exec", "--cap-add", "SYS_ADMIN", "dev", "true"], "--user root"),
        (&["create", "--gpus", "all"], "no devices of the host"),
        (&["cp", "-r", "a", "dev:b"], "leave it out"),
        (&["run", "--what-is-this", "true"], "`eyot run --help` lists its options"),
        (&["sandbox", "list"], "eyot ls"),
        (&["sh", "dev", "-c", "ls"], "eyot exec NAME -- sh -c LINE"),
        (&["init", "react"], "`eyot init --help` lists its commands"),
        (&["keys", "rm", "ci"], "`eyot keys revoke NAME`"),
        (&["keys", "delete", "ci"], "`eyot keys revoke NAME`"),
        (&["image", "remove", "node:22"], "`eyot image rm IMAGE`"),
        (&["pool", "destroy", "team"], "`eyot pool rm POOL`"),
        (&["workspace", "delete", "w"], "`eyot workspace rm ID`"),
        (&["export", "dev"], "eyot exec NAME -- tar c"),
        (&["images"], "eyot image ls"),
        (&["serve", "--port", "8080"], "--listen names the address"),
        (&["serve", "--host", "0.0.0.0"], "--listen names the address"),
        (&["mcp", "--port", "8080"], "--http 8080"),
        (&["browse", "--port", "80", "dev"], "`eyot browse NAME PORT`"),
        (&["inspect", "-f", "{{.Id}}", "dev"], "--json prints it"),
        (&["inspect", "--format", "{{.Id}}", "dev"], "--json prints it"),
        (&["events", "-o", "json"], "--json prints it"),
        (&["top", "--no-stream"], "`eyot top | cat`"),
        (&["image", "inspect", "debian:13"], "`eyot image ls --json`"),
        (&["image", "ls", "-a"], "lists all images"),
        (&["wait", "dev"], "`eyot wait NAME PROCESS`"),
        (&["exec", "dev"], "`eyot sh NAME` opens a shell"),
        (&["run"], "eyot run -it bash"),
        (&["completions"], "elvish, fish, powershell and zsh"),
        (&["stats"], "eyot top"),
        (&["ps"], "eyot ls"),
        (&["start", "dev"], "eyot wake NAME"),
        (&["kill", "dev"], "eyot sleep NAME"),
    ] {
        let said = refused(&machine, arguments);
        assert!(said.contains(ours), "{arguments:?}: {said}");
        assert!(
            !said.contains("a similar argument") && !said.contains("as a value"),
            "{arguments:?}: {said}"
        );
    }
    let bridge = machine.run(&["run", "--net", "bridge", "true"]);
    assert!(bridge.failure(2).contains("hint: --net egress reaches"), "{bridge:?}");
    let publish = machine.run(&["run", "-p", "80", "true"]);
    assert!(publish.failure(2).contains("eyot browse NAME PORT"), "{publish:?}");
    assert!(!machine.state().exists());
}

#[test]
fn a_word_that_there_is_not_names_what_does_the_same() {
    let machine = Machine::new();
    for (arguments, ours) in [
        (&["image", "tag", "a", "b"][..], "--name NAME"),
        (&["create", "ubuntu:24.04"], "eyot create --image ubuntu:24.04"),
        (&["image", "push", "a"], "`docker push`"),
        (&["fork", "dev", "copy"], "`eyot fork SANDBOX --name NAME`"),
        (&["snapshot", "dev", "before"], "`eyot snapshot SANDBOX --name NAME`"),
        (&["publish", "dev", "80"], "`eyot browse NAME PORT`"),
        (&["rn", "--", "ls"], "'run'"),
        (&["rn", "ls"], "'run'"),
        (&["fork", "dev", "-n", "0"], "must be from 1 to 64"),
        (&["create", "--ttl", "0"], "write 30s for seconds"),
        (&["events", "--tail", "3"], "`eyot events | tail -n 20`"),
    ] {
        let said = refused(&machine, arguments);
        assert!(said.contains(ours), "{arguments:?}: {said}");
    }
}

#[test]
fn stop_is_sleep_and_help_and_version_are_commands() {
    let machine = Machine::with_sandbox();
    machine.run(&["stop", "box"]).success();
    assert!(machine.run(&["ls"]).success().contains("sleeping"));
    assert!(machine.run(&["help"]).success().contains("sleep "));
    assert!(machine.run(&["help", "stop"]).success().contains("eyot stop builder"));
    assert_eq!(machine.run(&["help", "run"]).success(), machine.run(&["run", "--help"]).success());
    assert!(machine.run(&["help", "image", "pull"]).success().contains("Usage: eyot image pull"));
    assert!(machine.run(&["help", "nonsense"]).failure(2).contains("nonsense"));
    assert_eq!(machine.run(&["version"]).success(), machine.run(&["--version"]).success());
    assert_eq!(machine.run(&["version", "--json"]).json()["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_shell_line_in_one_word_gets_a_hint_at_a_shell() {
    let machine = Machine::with_sandbox();
    let hinted = |ran: &Ran, code: i32| {
        let said = ran.failure(code);
        assert!(said.contains("-- sh -c 'echo hi | wc'"), "{said}");
    };
    hinted(&machine.run(&["run", "echo hi | wc"]), 127);
    hinted(&machine.run(&["exec", "box", "echo hi | wc"]), 127);
    hinted(&machine.run(&["start", "box", "echo hi | wc"]), 127);
    assert!(!machine.run(&["run", "no-such-program"]).failure(127).contains("hint"));
}

#[test]
fn a_shells_own_command_gets_a_hint_at_a_shell() {
    let machine = Machine::with_sandbox();
    for (words, hint) in [
        (&["cd", "/tmp"][..], "-- sh -c 'cd /tmp && COMMAND'"),
        (&["source", "x"], "-- bash -c 'source x && COMMAND'"),
        (&["A=1", "env"], "-e A=1 before"),
    ] {
        for command in [&["run"][..], &["exec", "box"], &["start", "box"]] {
            let ran = machine.run(&[command, words].concat());
            assert!(ran.failure(127).contains(hint), "{ran:?}");
        }
    }
}

#[test]
fn an_image_in_the_programs_place_gets_a_hint_that_can_be_copied_and_a_missing_program_none() {
    let machine = Machine::new();
    for (words, ours) in [
        (&["alpine", "echo", "hi"][..], "eyot run --image alpine -- echo hi"),
        (&["alpine", "sh", "-c", "echo it's"], r"eyot run --image alpine -- sh -c 'echo it'\''s'"),
        (&["no-such-image:3"], "eyot run --image no-such-image:3 -- COMMAND"),
        (&["ghcr.io/team/app", "app"], "eyot run --image ghcr.io/team/app -- app"),
    ] {
        let ran = machine.run(&[&["run"], words].concat());
        assert!(ran.failure(127).contains(ours), "{ran:?}");
    }
    for words in [["no-such-program", "-c1"], ["./no/such", "file"]] {
        assert!(!machine.run(&[&["run"], &words[..]].concat()).failure(127).contains("image"), "{words:?}");
    }
}

#[test]
fn the_usual_words_of_docker_list_images_keys_and_pools_and_stop_everything() {
    let machine = Machine::new();
    for command in ["image", "keys", "pool"] {
        assert_eq!(machine.run(&[command, "list"]).success(), machine.run(&[command, "ls"]).success());
    }
    for name in ["one", "two"] {
        machine.create(name);
    }
    machine.run(&["sleep", "one"]).success();
    machine.run(&["stop", "--all"]).success();
    let listed = machine.run(&["ls"]).success();
    assert_eq!(listed.matches("sleeping").count(), 2, "{listed}");
    machine.run(&["stop", "--all"]).success();
    refused(&machine, &["stop"]);
    refused(&machine, &["stop", "--all", "one"]);
}

#[test]
fn several_keys_are_revoked_by_one_command_and_a_wrong_one_is_named() {
    let machine = Machine::new();
    for name in ["one", "two", "three"] {
        machine.run(&["keys", "create", name, "-q"]).success();
    }
    let wrong = machine.run(&["keys", "revoke", "one", "four", "two", "--json"]);
    assert!(wrong.stderr.contains("four"), "{wrong:?}");
    assert_eq!(wrong.code, Some(125), "{wrong:?}");
    let revoked: serde_json::Value = serde_json::from_slice(&wrong.stdout).unwrap();
    let names: Vec<_> =
        revoked["revoked"].as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
    assert_eq!(names, ["one", "two"]);
    let listed = machine.run(&["keys", "ls", "--json"]).json();
    let valid: Vec<_> = listed.as_array().unwrap().iter().filter(|key| key["revoked_ms"].is_null()).collect();
    assert_eq!((valid.len(), &valid[0]["name"]), (1, &serde_json::json!("three")));
    let wrong = machine.run(&["keys", "revoke", "four", "three"]);
    assert!(wrong.stderr.starts_with("eyot: revoked three\neyot: there is no key `four`"), "{wrong:?}");
    assert_eq!(wrong.code, Some(125));
}

#[test]
fn what_was_done_is_said_where_something_else_failed() {
    let machine = Machine::new();
    machine.create("one");
    for (command, said) in [("stop", "stopped one"), ("wake", "woke one"), ("rm", "removed one")] {
        let ended = machine.run(&[command, "one", "two"]);
        assert!(ended.stderr.starts_with(&format!("eyot: {said}\neyot: ")), "{ended:?}");
        assert!(ended.code == Some(125) && ended.stderr.contains("`two`"), "{ended:?}");
    }
}

#[test]
fn a_misspelt_word_of_help_and_a_misspelt_alias_are_understood() {
    let machine = Machine::new();
    assert!(refused(&machine, &["help", "craete"]).contains("did you mean `create`?"));
    assert!(
        refused(&machine, &["help", "image", "lss"]).contains("did you mean `ls`? `eyot image --help` lists")
    );
    assert!(refused(&machine, &["create", "--netwrok", "none"]).contains("'--network'"));
    assert!(refused(&machine, &["snapshot"]).contains("`eyot snapshot ls` lists the snapshots"));
    assert!(machine.run(&["call", "pool", "shel", "{}"]).text().contains("Did you mean `shell`?"));
}

#[test]
fn a_sandbox_that_tried_no_connection_has_no_decisions_and_says_so() {
    let machine = Machine::new();
    machine.run(&["create", "quiet", "--net", "egress"]).success();
    let listed = machine.run(&["net", "quiet", "--events"]);
    let note = "eyot: `quiet` has not tried to connect to anything since it was made or last woken\n";
    assert_eq!((listed.code, listed.stdout.len(), listed.stderr.as_str()), (Some(0), 0, note));
}

#[test]
fn limits_are_shown_with_numbers() {
    let machine = Machine::new();
    machine.run(&["create", "plain"]).success();
    machine.run(&["-q", "create", "dev", "-m", "512m", "--cpus", "1.5", "--pids", "99"]).success();
    let plain = machine.run(&["inspect", "plain"]).success();
    let dev = machine.run(&["inspect", "dev"]).success();
    let line = |page: &str, label: &str| {
        let line = page.lines().find_map(|line| line.trim().strip_prefix(label).map(str::trim));
        line.unwrap_or_else(|| panic!("{label} is missing in\n{page}")).to_owned()
    };
    // Where no cgroup can be had, a limit is shown and so is that nothing enforces it.
    assert!(["2 GiB (cgroup)", "none"].contains(&line(&plain, "memory limit").as_str()), "{plain}");
    assert!(line(&plain, "process limit").starts_with("512 ("), "{plain}");
    assert_eq!((line(&plain, "cpu limit"), line(&plain, "disk limit")), ("none".into(), "none".into()));
    for (label, number) in [("memory limit", "512 MiB"), ("cpu limit", "1.5"), ("process limit", "99")] {
        assert!(line(&dev, label).starts_with(number), "{dev}");
    }
    for word in ["[default: 2g", "[default: 512]", "such as 1.5h"] {
        let help = machine.run(&["create", "--help"]).success();
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(word), "{word}: {help}");
    }
}

#[test]
fn what_isolates_a_sandbox_is_said_in_words() {
    let machine = Machine::with_sandbox();
    let page = machine.run(&["inspect", "box"]).success();
    let isolation = page.split("\nisolation\n").nth(1).unwrap();
    assert!(!isolation.contains("ABI") && !isolation.contains("no new privs"), "{page}");
    for words in ["set-user-id      programs gain nothing", "filters system calls", "host user"] {
        assert!(isolation.contains(words), "{words}: {page}");
    }
    assert!(page.contains("image            host: the programs of this machine"), "{page}");
    assert!(
        page.contains("capabilities     inside only: CAP_") || page.contains("capabilities     none"),
        "{page}"
    );
}

#[test]
fn update_changes_the_deadlines_of_a_live_sandbox() {
    let machine = Machine::new();
    machine.run(&["create", "dev", "--ttl", "1h"]).success();
    assert_eq!(machine.run(&["update", "dev", "--ttl", "1.5d", "--idle-timeout", "30m"]).success(), "dev\n");
    let page = machine.run(&["inspect", "dev"]).success();
    assert!(page.contains("ttl              1d 12h") && page.contains("idle timeout     30m"), "{page}");
    machine.run(&["update", "dev", "--on-idle", "sleep"]).success();
    machine.run(&["update", "dev", "--idle-timeout", "never"]).success();
    // What would never happen.
    assert!(refused(&machine, &["update", "dev", "--on-idle", "destroy"]).contains("at the idle timeout"));
    let lifecycle = machine.run(&["--json", "inspect", "dev"]).json()["spec"]["lifecycle"].take();
    assert_eq!((&lifecycle["ttl_ms"], &lifecycle["on_idle"]), (&129_600_000.into(), &"sleep".into()));
    assert!(lifecycle["idle_timeout_ms"].is_null(), "{lifecycle}");
    machine.run(&["update", "dev", "--ttl", "1ms"]).failure(125);
    refused(&machine, &["update", "dev"]);
    assert!(refused(&machine, &["update", "dev", "--allow", "example.com"]).contains("eyot net NAME"));
    assert!(machine.run(&["update", "nobody", "--ttl", "1h"]).failure(125).contains("eyot ls"));
}

#[test]
fn update_changes_labels_of_a_pools_sandbox() {
    let machine = Machine::new();
    machine.run(&["pool", "create", "team", "web"]).success();
    let labels = || machine.run(&["--json", "inspect", "team/web"]).json()["spec"]["labels"].take();
    machine.run(&["update", "team/web", "-l", "a=1", "-l", "b=2", "--ttl", "1h"]).success();
    assert_eq!(labels(), serde_json::json!({ "a": "1", "b": "2" }));
    let changed = machine.run(&["--json", "update", "team/web", "--remove-label", "a"]).json();
    assert_eq!((labels(), &changed["spec"]["labels"]), (serde_json::json!({ "b": "2" }), &labels()));
}

#[test]
fn a_misspelt_command_is_recognised() {
    let machine = Machine::new();
    for (typed, meant) in
        [("rnu", "'run'"), ("creat", "'create'"), ("lsit", "'list'"), ("inpsect", "'inspect'")]
    {
        let said = refused(&machine, &[typed]);
        assert!(said.starts_with("eyot: unrecognized subcommand"), "{typed}: {said}");
        assert!(said.contains(&format!("\nhint: a similar subcommand exists: {meant}")), "{typed}: {said}");
    }
    assert!(!refused(&machine, &["nonsense"]).contains("hint:"));
    assert!(refused(&machine, &["undo", "dev"]).contains("`eyot rollback NAME SNAPSHOT`"));
    assert!(refused(&machine, &["checkpoint", "dev"]).contains("`eyot snapshot NAME`"));
    assert!(refused(&machine, &["upload", "dev"]).contains("`eyot cp ./DIR NAME:DIR`"));
    assert!(refused(&machine, &["prune"]).contains("`eyot image prune`"));
    // The usage is the command's own, and names no option that nobody typed.
    for command in [&["serve"][..], &["image", "pull"]] {
        let said = refused(&machine, &[command, &["--socket"]].concat());
        let usage = format!("Usage: eyot {} [OPTIONS]", command.join(" "));
        assert!(said.contains(&usage), "{said}");
    }
    for (typed, meant) in [("--lable", "'--label'"), ("--idle-timout", "'--idle-timeout'")] {
        let said = refused(&machine, &["create", typed, "x"]);
        assert!(said.contains(&format!("a similar argument exists: {meant}")), "{typed}: {said}");
    }
}

#[test]
fn a_sandbox_that_ended_is_told_of_with_the_reason_as_long_as_its_name_is_free() {
    let machine = Machine::new();
    machine.run(&["create", "gone"]).success();
    machine.run(&["rm", "gone"]).success();
    for command in
        [&["exec", "gone", "--", "true"][..], &["inspect", "gone"], &["wake", "gone"], &["rm", "gone"]]
    {
        let ran = machine.run(command);
        let said = ran.failure(125);
        assert!(said.contains("hint: it was destroyed 0s ago: it was removed"), "{said}");
        assert!(said.contains("`eyot events --sandbox gone`"), "{said}");
    }
    assert!(machine.run(&["exec", "never", "--", "true"]).failure(125).contains("eyot ls"));
}

#[test]
fn a_wrong_value_names_the_option_and_what_it_takes() {
    let machine = Machine::new();
    for (arguments, option, right) in [
        (&["create", "--idle-timeout", "0s"][..], "--idle-timeout", "write 30s"),
        (&["create", "--ttl", "0ms"], "--ttl", "write 30s"),
        (&["update", "dev", "--ttl", "0s"], "--ttl", "or never"),
        (&["run", "--cpus", "two", "true"], "--cpus", "write 0.5, 1.5 or 2"),
        (&["run", "--cpus", "0", "true"], "--cpus", "write 0.5, 1.5 or 2"),
        (&["create", "-m", "1m"], "--memory", "the least is 16m"),
        (&["create", "--pids", "1"], "--pids", "the least is 8"),
        (&["create", "--disk", "1m"], "--disk", "the least is 8m"),
        (&["run", "--timeout", "0", "true"], "--timeout", "leave the option out for no limit"),
        (&["exec", "--timeout", "0s", "dev", "true"], "--timeout", "leave the option out for no limit"),
        (&["run", "--memory", "0", "true"], "--memory", "leave the option out for the default"),
        (
            &["run", "--mount", "/:/x:rx", "true"],
            "--mount",
            "`rx` is not an option of a mount; write /:/x:ro",
        ),
        (&["run", "-m", "-5", "true"], "`-m`", "takes no negative value: `-5` was read as an option"),
        (&["create", "--cpus", "-.5"], "`--cpus`", "takes no negative value"),
        (&["create", "-m", "-2g"], "`-m`", "takes no negative value"),
        (
            &["--provider-option", "bogus", "ls"],
            "--provider-option",
            "must be KEY=VALUE, such as image=debian:12",
        ),
        (&["create", "--pids", "99999999"], "--pids", "the most 4194304"),
        (&["create", "--disk", "100000g"], "--disk", "the most is 8192 GiB"),
        (&["create", "-m", "1000000g"], "--memory", "the most is 8192 GiB"),
        (&["agent", "--max-cost", "nan", "--model", "a/b", "x"], "--max-cost", "a price above 0"),
        (&["agent", "--max-cost", "-1", "--model", "a/b", "x"], "--max-cost", "a price above 0"),
        (&["agent", "--model", "a/b", " "], "[TASK]", "a task has words"),
        (&["mcp", "--http", "7280", "--session-timeout", "0s"], "--session-timeout", "it can't be no time"),
        (&["mcp", "--http", "7280", "--max-sessions", "0"], "--max-sessions", "a number from 1"),
        (&["browse", "dev", "http"], "PORT", "a number from 1 to 65535"),
        (&["dial", "dev", "0"], "PORT", "a number from 1 to 65535"),
        (
            &["run", "--mount", "/nope:/x", "true"],
            "--mount",
            "`/nope` of this host: no such file or directory\n",
        ),
    ] {
        let said = refused(&machine, arguments);
        assert!(said.contains(option) && said.contains(right), "{arguments:?}: {said}");
        assert!(!said.contains("lifecycle") && !said.contains("limits."), "{said}");
    }
    assert!(!machine.state().exists());
}

#[test]
fn a_package_manager_of_the_machine_s_own_system_is_answered_with_where_packages_come_from() {
    let machine = Machine::new();
    let hint = "eyot image build-base";
    let refused = machine.run(&["run", "--", "apt-get", "install", "-y", "no-such-package"]);
    assert!(refused.code != Some(0) && refused.stderr.contains(hint), "{refused:?}");
    assert!(!machine.run(&["run", "--", "dpkg", "--version"]).stderr.contains(hint));
}

#[test]
fn docker_s_option_for_the_host_name_shows_the_help_and_ours() {
    let machine = Machine::new();
    let asked = machine.run(&["run", "-h", "web", "--", "hostname"]);
    assert!(asked.code == Some(0) && asked.stderr.contains("--name NAME"), "{asked:?}");
    assert_eq!(machine.run(&["run", "-h"]).stderr, "");
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let machine = Machine::new();
    machine.write("vars.env", "A=1\nexport B=2\n");
    let vars = machine.path_text("vars.env");
    let server = ["--server", "http://127.0.0.1:1", "--provider", "native", "ls"];
    assert!(refused(&machine, &server).contains("--provider is about this host's sandboxes"));
    assert!(refused(&machine, &["create", "a", "--on-idle", "sleep"]).contains("--idle-timeout"));
    let exported = machine.run(&["run", "--env-file", &vars, "--", "true"]);
    assert!(exported.code != Some(0) && exported.stderr.contains("leave `export` out"), "{exported:?}");
    assert!(refused(&machine, &["run", "-e", "A B=1", "--", "true"]).contains("is no name"));
    machine.assert_empty();
}

#[test]
fn commands_run_where_the_user_may_have_fewer_processes_than_a_sandbox() {
    let machine = Machine::new();
    let called = machine.command(&["run", "--", "echo", "hi"]);
    let mut limited = std::process::Command::new("prlimit");
    limited.arg("--nproc=400").arg(called.get_program()).args(called.get_args());
    for (name, value) in called.get_envs() {
        value.map(|value| limited.env(name, value));
    }
    let ran = limited.output().unwrap();
    assert_eq!((ran.status.code(), &ran.stdout[..]), (Some(0), &b"hi\n"[..]), "{ran:?}");
}

#[test]
fn rm_of_all_says_how_many_it_destroyed() {
    let machine = Machine::new();
    machine.create("a");
    machine.create("b");
    assert_eq!(machine.run(&["rm", "--all"]).stderr, "eyot: destroyed 2 sandboxes\n");
}
