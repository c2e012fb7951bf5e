//! A user's commands about a sandbox, on Docker as on any provider.

use crate::{Boxed, Case};

pub fn trials() -> Vec<Case> {
    vec![
        ("commands_and_files_work_on_docker_as_they_do_natively", commands_and_files),
        ("a_sandbox_on_docker_sleeps_and_any_use_wakes_it", sleeps),
        ("a_started_process_has_logs_and_ends_when_it_is_told_to", processes),
        ("a_deadline_ends_a_command_and_what_it_has_started", deadline),
        ("inspect_shows_what_holds_and_where_ports_are_published", inspect),
        ("a_port_is_reached_without_being_published", dial),
        ("a6_a_model_has_the_engine_ask_no_registry_that_nobody_allowed", no_registry),
    ]
}

fn no_registry() {
    let machine = crate::machine::Machine::new();
    let registry = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    registry.set_nonblocking(true).unwrap();
    let image = format!("{}/eyot-test/none:1", registry.local_addr().unwrap());
    let arguments = serde_json::json!({ "sandbox": "box", "image": image }).to_string();
    let ran = crate::on_docker(&machine, &["call", "pool", "sandbox_create", &arguments]);
    assert!(ran.code == Some(1) && ran.text().contains("there is no image"), "{ran:?}");
    assert_eq!(registry.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

fn commands_and_files() {
    let sandbox = Boxed::new(&["--user", "1000:1000"]);
    let name = &sandbox.name;
    let ran = sandbox.run(&["exec", name, "--", "sh", "-c", "id -u; pwd; echo no >&2; exit 7"]);
    assert_eq!((ran.code, ran.text().as_str(), ran.stderr.as_str()), (Some(7), "1000\n/workspace\n", "no\n"));
    sandbox.machine.write("in/ä b.txt", "content\n");
    let (from, to) = (sandbox.machine.path_text("in"), format!("{name}:copied"));
    sandbox.run(&["cp", &from, &to]).success();
    assert_eq!(sandbox.run(&["read", name, "copied/ä b.txt"]).success(), "content\n");
    assert_eq!(sandbox.run(&["grep", name, "cont"]).success().lines().count(), 1);
    let out = sandbox.machine.path_text("out");
    sandbox.run(&["cp", &to, &out]).success();
    assert_eq!(std::fs::read_to_string(sandbox.machine.path("out/ä b.txt")).unwrap(), "content\n");
    let listed = sandbox.run(&["--json", "ls"]).json();
    assert!(listed.as_array().unwrap().iter().any(|one| one["name"] == name.as_str()), "{listed}");
}

fn sleeps() {
    let sandbox = Boxed::new(&[]);
    let name = &sandbox.name;
    sandbox.run(&["exec", name, "--", "sh", "-c", "echo kept > f; echo lost > /dev/shm/f"]).success();
    sandbox.run(&["sleep", name]).success();
    let listed = sandbox.run(&["--json", "ls"]).json();
    let own = listed.as_array().unwrap().iter().find(|one| one["name"] == name.as_str()).unwrap();
    assert_eq!(own["status"], "sleeping");
    assert_eq!(sandbox.run(&["exec", name, "--", "sh", "-c", "cat f; ls /dev/shm"]).success(), "kept\n");
}

fn processes() {
    let sandbox = Boxed::new(&[]);
    let name = &sandbox.name;
    let line = "echo begun; trap 'echo told; exit 3' TERM; while :; do sleep 0.1; done";
    let started = sandbox.run(&["start", name, "--", "sh", "-c", line]).success();
    let process = started.trim();
    // Its first line is there when it can be told to end.
    let mut follow = sandbox.machine.command(&["--provider", "docker", "logs", name, process, "--follow"]);
    let mut following = sandbox.machine.spawn(&mut follow);
    let mut first = [0; 6];
    std::io::Read::read_exact(following.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"begun\n");
    sandbox.run(&["kill", name, process, "--signal", "TERM"]).success();
    assert_eq!(sandbox.run(&["wait", name, process]).code, Some(3));
    assert_eq!(following.wait_with_output().unwrap().stdout, b"told\n");
}

fn deadline() {
    let sandbox = Boxed::new(&[]);
    let name = &sandbox.name;
    let line = "setsid sleep 86421 & sleep 86422";
    let ran = sandbox.run(&["exec", name, "--timeout", "500ms", "--", "sh", "-c", line]);
    assert_eq!(
        (ran.code, ran.stderr.contains("timed out after 500 milliseconds")),
        (Some(124), true),
        "{ran:?}"
    );
    // The pattern does not match itself.
    let look = "grep -l '8642[12]' /proc/[0-9]*/cmdline | wc -l";
    assert_eq!(sandbox.run(&["exec", name, "--", "sh", "-c", look]).text(), "0\n");
}

fn inspect() {
    let sandbox = Boxed::new(&["--net", "bridge", "--publish", "8000", "--memory-mib", "64", "--read-only"]);
    let told = sandbox.run(&["--json", "inspect", &sandbox.name]).json();
    let holds = &told["isolation"];
    assert_eq!((&holds["provider"], &holds["network"]), (&"docker".into(), &"bridge".into()), "{told}");
    assert_eq!((&holds["limits"]["memory"], &holds["limits"]["disk"]), (&"cgroup".into(), &"none".into()));
    assert_eq!((&holds["readonly_rootfs"], &holds["runtime"]), (&true.into(), &"runc".into()));
    let published = &told["published_ports"][0];
    assert_eq!((&published["port"], &published["host"]), (&8000.into(), &"127.0.0.1".into()));
    let line = format!("8000 on 127.0.0.1:{}", published["host_port"]);
    assert!(sandbox.run(&["inspect", &sandbox.name]).success().contains(&line));
}

fn dial() {
    let sandbox = Boxed::new(&[]);
    let name = &sandbox.name;
    sandbox.run(&["write", name, "served", "--content", "by python"]).success();
    sandbox.run(&["start", name, "--", "python3", "-m", "http.server", "8000"]).success();
    let wait = "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))' 2>/dev/null; do :; done";
    sandbox.run(&["exec", name, "--timeout", "60s", "--", "sh", "-c", wait]).success();
    let request = b"GET /served HTTP/1.0\r\n\r\n";
    let answer =
        sandbox.machine.run_with_input(&["--provider", "docker", "dial", name, "8000"], request).success();
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("by python"), "{answer}");
}
