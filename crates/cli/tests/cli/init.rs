//! `eyot init flue`: the place of the file, the output, and the files that are left alone. The
//! compiler is a stand-in here; `sdks/typescript/test/client/init.test.ts` has the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::machine::Machine;

/// Makes a Flue project with its packages installed, and a `tsc` that is this script.
fn project(machine: &Machine, flue: &str, compiler: &str) -> String {
    machine.write("project/package.json", "{}");
    machine.write("project/tsconfig.json", "{}");
    for (package, version) in [("@flue/runtime", flue), ("@eyot/client", "0.1.0")] {
        let file = format!("project/node_modules/{package}/package.json");
        machine.write(&file, format!(r#"{{"version":"{version}"}}"#));
    }
    let tsc = machine.write("project/node_modules/.bin/tsc", format!("#!/bin/sh\n{compiler}\n"));
    fs::set_permissions(tsc, fs::Permissions::from_mode(0o755)).unwrap();
    machine.path_text("project")
}

fn file(machine: &Machine, name: &str) -> String {
    fs::read_to_string(machine.path("project").join(name)).unwrap()
}

#[test]
fn the_file_goes_where_flue_looks_first() {
    for (folders, flue, expected) in [
        (&[][..], "2.1.0", "sandboxes/eyot.ts"),
        (&["src"], "2.1.0", "src/sandboxes/eyot.ts"),
        (&[".flue"], "2.1.0", ".flue/sandboxes/eyot.ts"),
        (&["src"], "0.8.1", "sandboxes/eyot.ts"),
        (&["src"], "0.9.0", "src/sandboxes/eyot.ts"),
    ] {
        let machine = Machine::new();
        let project = project(&machine, flue, "exit 0");
        for folder in folders {
            fs::create_dir(machine.path("project").join(folder)).unwrap();
        }
        let done = machine.run(&["--json", "init", "flue", &project]).json();
        assert_eq!(done["file"], expected, "{folders:?} {flue}");
        assert!(file(&machine, expected).contains(r#"from "@eyot/client/flue""#), "{folders:?} {flue}");
    }
}

#[test]
fn two_source_folders_are_unclear_until_one_is_named() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", "exit 0");
    for folder in ["src", ".flue"] {
        fs::create_dir(machine.path("project").join(folder)).unwrap();
    }
    let refused = machine.run(&["init", "flue", &project]);
    assert!(refused.failure(2).contains("--folder"), "{refused:?}");
    assert!(
        !machine.path("project/.flue/sandboxes").exists() && !machine.path("project/src/sandboxes").exists()
    );
    let done = machine.run(&["--json", "init", "flue", &project, "--folder", "src"]).json();
    assert_eq!(done["file"], "src/sandboxes/eyot.ts");
}

#[test]
fn a_file_that_is_there_stays_without_force() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", "exit 0");
    machine.write("project/sandboxes/eyot.ts", "// mine\n");
    let refused = machine.run(&["init", "flue", &project]);
    assert!(refused.failure(125).contains("--force"), "{refused:?}");
    assert_eq!(file(&machine, "sandboxes/eyot.ts"), "// mine\n");
    machine.run(&["init", "flue", &project, "--force"]).success();
    assert_ne!(file(&machine, "sandboxes/eyot.ts"), "// mine\n");
    // What it has written itself is no reason to refuse.
    machine.run(&["init", "flue", &project]).success();
}

#[test]
fn the_projects_own_compiler_is_given_that_file_alone_with_the_projects_options() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", r#"cp "$4" given.json"#);
    let done = machine.run(&["--json", "init", "flue", &project]).json();
    assert_eq!(done["typecheck"]["status"], "passed");
    let given: serde_json::Value = serde_json::from_str(&file(&machine, "given.json")).unwrap();
    assert_eq!(given["extends"], "./tsconfig.json");
    assert_eq!(given["files"], serde_json::json!(["sandboxes/eyot.ts"]));
    assert_eq!(given["compilerOptions"]["noEmit"], true);
    let left = fs::read_dir(machine.path("project")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("tsconfig.eyot")));
}

#[test]
fn what_the_compiler_refuses_is_said_and_exits_with_1() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", "echo 'sandboxes/eyot.ts(3,1): error TS1: no'; exit 2");
    let ran = machine.run(&["--json", "init", "flue", &project]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.json()["typecheck"]["status"], "failed");
    assert!(ran.json()["typecheck"]["output"].as_str().unwrap().contains("TS1"));
    assert!(machine.run(&["init", "flue", &project]).text().contains("error TS1"));
}

#[test]
fn what_is_missing_is_named_with_the_line_that_installs_it() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", "exit 0");
    fs::remove_dir_all(machine.path("project/node_modules/@eyot")).unwrap();
    let done = machine.run(&["--json", "init", "flue", &project]).json();
    assert_eq!(done["missing"], serde_json::json!(["@eyot/client"]));
    let pack = r#"npm ci --prefix "$EYOT/sdks/typescript" && npm pack "$EYOT/sdks/typescript""#;
    // The registry has no `@eyot/client`, and a link would bring a second Flue.
    assert_eq!(done["install"], format!("{pack} && npm install ./eyot-client-0.1.0.tgz"));
    assert_eq!(done["typecheck"]["status"], "not_run");
    machine.write("project/pnpm-lock.yaml", "");
    let text = machine.run(&["init", "flue", &project]).success();
    assert!(text.contains("pnpm add ./eyot-client-0.1.0.tgz") && text.contains("not checked"), "{text}");
    assert!(text.contains("$EYOT is your clone"), "{text}");
    assert!(text.contains("EYOT_SERVER") && text.contains("EYOT_API_KEY"), "{text}");
    fs::remove_dir_all(machine.path("project/node_modules/@flue")).unwrap();
    let both = machine.run(&["--json", "init", "flue", &project]).json();
    let line = both["install"].as_str().unwrap();
    assert!(line.ends_with("&& pnpm add ./eyot-client-0.1.0.tgz @flue/runtime"), "{line}");
}

#[test]
fn a_project_without_a_compiler_is_told_that_nothing_was_checked() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", "exit 0");
    fs::remove_file(machine.path("project/node_modules/.bin/tsc")).unwrap();
    let done = machine.run(&["--json", "init", "flue", &project]).json();
    assert_eq!(done["typecheck"]["status"], "not_run");
    assert!(done["typecheck"]["reason"].as_str().unwrap().contains("typescript"));
}

#[test]
fn the_snippet_is_that_of_the_projects_flue() {
    for (flue, expected) in [("2.1.0", "useSandbox(eyot)"), ("0.8.1", "createAgent(() => ({ sandbox: eyot")] {
        let machine = Machine::new();
        let project = project(&machine, flue, "exit 0");
        assert!(machine.run(&["init", "flue", &project]).success().contains(expected), "{flue}");
    }
}

#[test]
fn a_folder_of_a_project_is_the_project_and_one_of_none_is_refused() {
    let machine = Machine::new();
    let project = project(&machine, "2.1.0", "exit 0");
    fs::create_dir_all(machine.path("project/src/agents")).unwrap();
    machine.run(&["init", "flue", &format!("{project}/src/agents")]).success();
    assert!(machine.path("project/src/sandboxes/eyot.ts").exists());
    fs::create_dir(machine.path("empty")).unwrap();
    let refused = machine.run(&["init", "flue", &machine.path_text("empty")]);
    assert!(refused.failure(2).contains("package.json"), "{refused:?}");
}
