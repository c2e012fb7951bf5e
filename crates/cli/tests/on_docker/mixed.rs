//! One state folder, two providers.

use crate::machine::Machine;
use crate::{Case, on_docker};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_pools_sandbox_on_docker_is_kept_from_the_native_provider", pools),
        ("a_models_tools_work_on_docker", tools),
        ("doctor_says_whether_an_engine_answers", doctor),
    ]
}

const WRITE: &str = r#"{"path":"f","content":"on docker"}"#;
const READ: &str = r#"{"command":"cat f"}"#;

fn pools() {
    let machine = Machine::new();
    on_docker(&machine, &["call", "pool", "write_file", WRITE, "--pool", "mixed"]).success();
    let refused = machine.run(&["call", "pool", "shell", READ, "--pool", "mixed"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.text().contains("docker made it, and this is native"), "{refused:?}");
    let refused = machine.run(&["pool", "rm", "mixed"]);
    assert!(refused.failure(125).contains("--provider docker"));
    assert!(
        on_docker(&machine, &["call", "pool", "shell", READ, "--pool", "mixed"])
            .success()
            .contains("on docker")
    );
    on_docker(&machine, &["pool", "rm", "mixed"]).success();
    assert_eq!(machine.run(&["pool", "ls"]).success(), "");
}

fn tools() {
    let machine = Machine::new();
    let call = |toolset: &str, tool: &str, input: &str| {
        on_docker(&machine, &["call", toolset, tool, input, "--pool", "tools"]).success()
    };
    call("coding", "write", r#"{"path":"a.txt","content":"one\ntwo\n"}"#);
    call("coding", "edit", r#"{"path":"a.txt","oldText":"two","newText":"three"}"#);
    assert!(call("coding", "bash", r#"{"command":"cat a.txt"}"#).contains("one\nthree"));
    call("pool", "sandbox_create", r#"{"sandbox":"other","image":"eyot-test-busybox:1"}"#);
    let moved = r#"{"from_sandbox":"default","to_sandbox":"other","from_path":"a.txt","to_path":"b.txt"}"#;
    call("pool", "transfer", moved);
    assert!(call("pool", "shell", r#"{"sandbox":"other","command":"cat b.txt"}"#).contains("three"));
    on_docker(&machine, &["pool", "rm", "tools"]).success();
}

fn doctor() {
    let machine = Machine::new();
    let told = on_docker(&machine, &["--json", "doctor"]);
    let findings = told.json()["findings"].clone();
    let docker = findings.as_array().unwrap().iter().find(|one| one["id"] == "docker").unwrap();
    assert_eq!((told.code, &docker["status"]), (Some(0), &"ok".into()), "{docker}");
}
