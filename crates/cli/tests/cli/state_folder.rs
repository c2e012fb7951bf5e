//! The state folder: commands that look make none, and one of something else is left alone.

use crate::machine::Machine;

#[test]
fn a_command_that_only_looks_makes_no_state_folder() {
    let machine = Machine::new();
    assert!(machine.run(&["ls"]).success().starts_with("NAME"));
    assert_eq!(machine.run(&["ls", "--json"]).json(), serde_json::json!([]));
    for arguments in [
        &["ls", "-q"][..],
        &["pool", "ls", "-q"],
        &["image", "ls", "-q"],
        &["rm", "--all"],
        &["rm", "-f", "box"],
    ] {
        assert_eq!(machine.run(arguments).success(), "", "{arguments:?}");
    }
    assert!(machine.run(&["keys", "ls"]).success().starts_with("NAME"));
    assert_eq!(machine.run(&["events"]).code, Some(0));
    assert!(machine.run(&["top", "--json"]).code == Some(0));
    for arguments in [
        &["inspect", "box"][..],
        &["ps", "box"],
        &["exec", "box", "true"],
        &["read", "box", "file"],
        &["logs", "box", "p1"],
        &["rm", "box"],
        &["sleep", "team/box"],
        &["pool", "ls", "team"],
    ] {
        machine.run(arguments).failure(125);
    }
    let made = std::fs::read_dir(machine.path(".")).unwrap().count();
    assert_eq!(made, 0, "the state folder, or something else, was made");
}

#[test]
fn a_folder_that_was_named_and_is_not_there_is_told() {
    let machine = Machine::new();
    let folder = machine.path_text("misspelt");
    let ran = machine.run(&["--state", &folder, "ls"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("there is no state folder `"), "{ran:?}");
    for command in [&["exec", "box", "ls"][..], &["rm", "box"], &["cp", "box:f", "."]] {
        let said = machine.run(&[&["--state", &folder], command].concat()).failure(125).to_owned();
        assert!(
            said.contains("no sandbox `box`") && said.contains(&format!("no state folder `{folder}`")),
            "{said}"
        );
    }
    let file = machine.write("file", "");
    let said = machine.run(&["--state", &file, "ls"]).failure(125).to_owned();
    assert!(said.contains(&format!("leads to a file: {file}")), "{said}");
    assert!(!std::path::Path::new(&folder).exists());
    machine.run(&["--state", &folder, "create", "box"]).success();
    machine.run(&["--state", &folder, "rm", "-q", "box"]);
    assert_eq!(machine.run(&["--state", &folder, "ls"]).stderr, "");
}

#[test]
fn mcp_refuses_a_mount_with_the_state_folder_at_its_start() {
    let machine = Machine::new();
    let refused = |source: String| {
        let ran = machine.run(&["mcp", "--mount", &format!("{source}:/x")]);
        let said = ran.failure(2);
        assert!(said.contains("contains Eyot's state folder") && said.contains("--state DIR"), "{said}");
    };
    refused(machine.path_text("."));
    assert!(!machine.state().exists());
    std::fs::create_dir_all(machine.path("state/inside")).unwrap();
    refused(machine.path_text("state/inside"));
    std::fs::remove_dir_all(machine.state()).unwrap();
}

#[test]
fn a_new_state_folder_is_nothing_to_warn_of() {
    let machine = Machine::new();
    for arguments in [&["ls"][..], &["create", "box"], &["ls"], &["rm", "box"]] {
        let output = machine.command(arguments).env("EYOT_LOG", "eyot=info").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("WARN"), "{arguments:?}: {output:?}");
    }
}

#[test]
fn the_folder_that_another_provider_has_begun_is_eyots() {
    let machine = Machine::new();
    let listed = machine.run(&["providers", "--json"]);
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let names = listed.iter().filter_map(|provider| provider["name"].as_str());
    let others: Vec<_> = names.filter(|name| !["native", "memory"].contains(name)).collect();
    assert!(others.contains(&"docker") && others.contains(&"kubernetes"), "{others:?}");
    for name in others {
        machine.write(&format!("begun-{name}/{name}/secret"), "");
        let ran = machine.run(&["--state", &machine.path_text(&format!("begun-{name}")), "ls"]);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
    }
}

#[test]
fn the_folder_of_something_else_is_refused_and_stays_as_it_is() {
    let machine = Machine::new();
    machine.write("etc/hostname", "machine");
    let folder = machine.path_text("etc");
    for arguments in [
        &["create", "dev"][..],
        &["run", "true"],
        &["ls"],
        &["pool", "create", "team", "web"],
        &["keys", "create", "ci"],
        &["image", "ls"],
        &["serve", "--no-keys", "--listen", "127.0.0.1:0"],
        &["verify", "--filter", "k5"],
    ] {
        let ran = machine.run(&[&["--state", &folder], arguments].concat());
        let said = ran.failure(125);
        assert!(said.contains("files of something else, such as `hostname`"), "{arguments:?}: {said}");
        // The option would win over the variable.
        assert!(said.contains("EYOT_STATE=") && said.contains("instead of --state"), "{said}");
    }
    let doctor = machine.run(&["--state", &folder, "doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["hostname"]);
}
