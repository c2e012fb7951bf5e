//! One state folder, two providers.

use crate::machine::{Machine, Ran};
use crate::{Boxed, Case, on_docker};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_pools_sandbox_on_docker_is_kept_from_the_native_provider", pools),
        ("a_models_tools_work_on_docker", tools),
        ("a_tree_goes_from_docker_to_native_and_back", transfers),
        ("a4_a_container_of_another_state_folder_is_listed_as_foreign_and_used_once_it_is_adopted", foreign),
        ("doctor_says_whether_an_engine_answers", doctor),
        ("providers_says_which_engine_answers", providers),
        ("verify_tries_the_rules_of_the_contract_on_containers", verify),
        ("the_image_of_sandboxes_that_name_none_is_an_option_of_the_provider", default_image),
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
    assert_eq!(machine.run(&["pool", "ls", "-q"]).success(), "");
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

fn transfers() {
    let docker = Boxed::new(&[]);
    docker.machine.create("box");
    let name = docker.name.as_str();
    let script = "mkdir -p t/d && printf abc > t/d/f && chmod 640 t/d/f && ln -s d/f t/link && touch -d @1000000000 t/d/f";
    docker.run(&["exec", name, "--", "sh", "-c", script]).success();
    let (there, back) = (format!("docker/{name}:t"), format!("docker/{name}:back"));
    assert_eq!(docker.run(&["transfer", "-r", &there, "native/box:t"]).success(), "1 file, 3 bytes\n");
    let seen = ["exec", "box", "--", "sh", "-c", "stat -c '%a %Y' t/d/f && readlink t/link"];
    assert_eq!(docker.machine.run(&seen).success(), "640 1000000000\nd/f\n");
    docker.run(&["transfer", "-r", "native/box:t", &back]).success();
    docker.run(&["exec", name, "--", "diff", "-r", "--no-dereference", "t", "back"]).success();
    let absent = docker.run(&["transfer", "-r", "docker/box:t", "native/box:t3"]);
    assert!(absent.failure(125).contains("no sandbox `box` on docker; native has one"), "{absent:?}");
    let unsaid = docker.run(&["transfer", "-r", &there, "box:t2"]);
    assert!(unsaid.failure(125).contains("native made it, and this is docker"), "{unsaid:?}");
}

fn foreign() {
    let (theirs, mine) = (Boxed::new(&[]), Machine::new());
    let (name, container) = (theirs.name.as_str(), format!("eyot-{}", theirs.name));
    let listed = on_docker(&mine, &["--json", "ls"]).json();
    let found = listed.as_array().unwrap().iter().find(|one| one["name"] == container.as_str()).unwrap();
    assert_eq!((&found["status"], &found["id"]), (&"foreign".into(), &serde_json::Value::Null));
    let text = on_docker(&mine, &["ls"]);
    assert!(
        text.text().lines().any(|line| line.starts_with(&container) && line.contains("foreign")),
        "{text:?}"
    );
    assert!(text.stderr.contains("is foreign: another state folder made it"), "{text:?}");
    assert!(text.stderr.contains("eyot --provider docker adopt"), "{text:?}");
    assert_eq!(on_docker(&mine, &["ls", "-q"]).success(), "");
    on_docker(&mine, &["-q", "rm", "--all"]).success();
    assert!(on_docker(&mine, &["rm", name]).failure(125).contains("adopt"));
    for words in [&["create", name][..], &["run", "--name", name, "true"]] {
        let ran = on_docker(&mine, words);
        assert!(ran.failure(125).contains("`eyot --provider docker ls` shows whose it is"), "{ran:?}");
    }
    let words = ["run", "--publish", "80", "true"];
    assert!(on_docker(&mine, &words).failure(2).contains("--net bridge"));
    assert!(mine.run(&["adopt", name]).failure(2).contains("--provider docker adopt"));
    assert!(on_docker(&mine, &["adopt", name]).failure(125).contains("docker stop"));
    theirs.run(&["sleep", name]).success();
    assert_eq!(on_docker(&mine, &["adopt", name]).success(), format!("{name}\n"));
    assert_eq!(on_docker(&mine, &["exec", name, "--", "echo", "mine"]).success(), "mine\n");
}

fn doctor() {
    let machine = Machine::new();
    let told = on_docker(&machine, &["--json", "doctor"]);
    let findings = told.json()["findings"].clone();
    let docker = findings.as_array().unwrap().iter().find(|one| one["id"] == "docker").unwrap();
    assert_eq!((told.code, &docker["status"]), (Some(0), &"ok".into()), "{docker}");
}

fn providers() {
    let machine = Machine::new();
    let listed = on_docker(&machine, &["--json", "providers"]).json();
    let docker = listed.as_array().unwrap().iter().find(|one| one["name"] == "docker").unwrap();
    assert_eq!((&docker["usable"], &docker["in_use"]), (&true.into(), &true.into()), "{docker}");
    assert!(docker["why"].as_str().unwrap().starts_with("an Engine "), "{docker}");
}

fn verify() {
    let machine = Machine::new();
    let words = ["--json", "verify", "--filter", "a_write_", "--filter", "exit_codes", "--filter", "egress"];
    let ran = on_docker(&machine, &words);
    let report = ran.json();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((ran.code, rows.len(), &rows[0]["id"]), (Some(0), 1, &"contract".into()), "{report}");
    let cases = rows[0]["cases"].as_array().unwrap();
    assert!(cases.len() > 3 && cases.iter().any(|case| case["status"] == "pass"), "{report}");
}

fn default_image() {
    let machine = Machine::new();
    let option = format!("image={}", crate::IMAGE);
    let mut run =
        machine.command(&["--provider", "docker", "--provider-option", &option, "run", "--", "id", "-u"]);
    if let Some(host) = std::env::var_os("DOCKER_HOST") {
        run.env("DOCKER_HOST", host);
    }
    Ran::from(run.output().unwrap()).success();
}
