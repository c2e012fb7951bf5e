//! `eyot transfer` between holders of sandboxes: native on this host, and a server over memory.

use std::time::Duration;

use serde_json::json;

use super::machine::{Machine, Ran};
use super::memory_server::MemoryServer;

/// A tree with modes, times and links.
const TREE: &str = "mkdir -p t/sub/empty && printf abc > t/sub/f && printf '#!/bin/sh\\necho ran\\n' > t/run \
    && chmod 750 t/run && chmod 600 t/sub/f && ln -s ../run t/sub/link && ln -s nowhere t/dangling \
    && ln t/run t/hard && touch -d @981173106 t/sub/f && touch -d @1000000000 t/run && chmod 700 t/sub \
    && touch -d @1100000000 t/sub/empty t/sub t";

/// A line for each entry: its path, kind, and target or mode and time. The times of links are not kept.
const LISTED: &str =
    "find . \\( -type l -printf '%P %y %l\\n' \\) -o -printf '%P %y %m %T@\\n' | sort | grep -v '^ '";

/// A server over memory, beside a native sandbox `box` of the same machine.
fn scene() -> MemoryServer {
    let served = MemoryServer::new();
    served.machine.create("box");
    served
}

fn in_box(served: &MemoryServer, script: &str) -> String {
    served.machine.run(&["exec", "box", "--", "sh", "-c", script]).success()
}

#[test]
fn a_tree_goes_from_native_to_memory_and_back_with_its_links_modes_and_times() {
    let served = scene();
    in_box(&served, TREE);
    let there = served.there(&["transfer", "-r", "native/box:t", "memory/web:in/t"]);
    assert_eq!(there.success(), "3 files, 41 bytes\n");
    assert_eq!(
        served.script("cat in/t/sub/f && in/t/sub/link && readlink in/t/dangling"),
        "abcran\nnowhere\n"
    );
    assert_eq!(
        served.script("stat -c '%a %Y' in/t/run in/t/sub in/t"),
        "750 1000000000\n700 1100000000\n755 1100000000\n"
    );
    let back = served.there(&["--json", "transfer", "-r", "memory/web:in/t", "native/box:back"]);
    assert_eq!(back.json(), json!({ "files": 3, "bytes": 41 }));
    let lists = |folder: &str| in_box(&served, &format!("cd {folder} && {LISTED}"));
    assert_eq!(lists("back"), lists("t"));
}

#[test]
fn a_target_that_is_a_directory_is_answered_with_the_name_to_write() {
    let machine = Machine::new();
    machine.create("one");
    machine.create("two");
    machine.run(&["exec", "one", "--", "sh", "-c", "mkdir d; echo x > d/f"]).success();
    for (words, hint) in [
        (
            &["one:d/f", "two:/workspace/"][..],
            "hint: the second path is the copy's own name, such as `two:/workspace/f`",
        ),
        (&["one:d", "two:e"], "hint: -r copies a directory"),
        (&["-r", "one:d", "two:/workspace"], "such as `/workspace/NAME`"),
    ] {
        let refused = machine.run(&[&["transfer"], words].concat());
        assert!(refused.failure(125).contains(hint), "{refused:?}");
    }
    assert_eq!(machine.run(&["exec", "two", "--", "ls", "-A"]).success(), "");
}

#[test]
fn with_a_server_a_bare_name_is_the_servers_and_a_providers_is_this_hosts() {
    let served = scene();
    served.machine.run(&["write", "box", "f", "--content", "of the host"]).success();
    for (number, to) in
        ["web", "default/web", "server/web", "server/default/web", "memory/web", "memory/default/web"]
            .into_iter()
            .enumerate()
    {
        let (to, path) = (format!("{to}:f{number}"), format!("f{number}"));
        assert_eq!(served.there(&["transfer", "native/box:f", &to]).success(), "1 file, 11 bytes\n");
        assert_eq!(served.there(&["read", "web", &path]).success(), "of the host");
    }
    let id = served.machine.run(&["ls", "-q"]).success();
    let from = format!("native/{}:f", id.lines().next().unwrap());
    served.there(&["transfer", &from, "web:by-id"]).success();
    served.there(&["transfer", "web:f0", "native/default/box:back"]).success();
    assert_eq!(served.machine.run(&["read", "box", "back"]).success(), "of the host");
    // Without a server the prefix names a provider other than the command's.
    served.machine.run(&["transfer", "native/box:f", "box:g"]).success();
    let by_memory = served.machine.run(&["--provider", "memory", "transfer", "native/box:f", "native/box:h"]);
    by_memory.success();
}

#[test]
fn a_side_in_memory_needs_a_server_over_memory_and_the_error_says_so() {
    let machine = Machine::with_sandbox();
    machine.run(&["write", "box", "f", "--content", "x"]).success();
    let alone = machine.run(&["transfer", "box:f", "memory/web:f"]);
    assert!(alone.failure(2).contains("memory does not support"), "{alone:?}");
    for way in ["eyot --provider memory serve", "--server URL"] {
        assert!(alone.stderr.contains(way), "{alone:?}");
    }
    let unnamed = machine.run(&["transfer", "box:f", "server/web:f"]);
    assert!(unnamed.failure(2).contains("no server is named") && unnamed.stderr.contains("EYOT_SERVER"));
    let unknown = machine.run(&["transfer", "box:f", "dokcer/team/web:f"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("there is no provider `dokcer`: there is docker"), "{unknown:?}");
}

#[test]
fn a_side_of_a_provider_that_can_not_be_used_here_says_so_and_not_who_made_a_namesake() {
    let machine = Machine::with_sandbox();
    machine.run(&["write", "box", "f", "--content", "x"]).success();
    let nowhere = format!("unix://{}", machine.path_text("no-engine.sock"));
    let mut transfer = machine.command(&["transfer", "docker/box:f", "native/default/box:g"]);
    let ran = Ran::from(transfer.env("DOCKER_HOST", nowhere).output().unwrap());
    assert!(ran.failure(125).contains("transfer: `docker/box:f`: no Docker Engine answers"), "{ran:?}");
    assert!(!ran.stderr.contains("native made it"), "{ran:?}");
}

#[test]
fn a_server_of_another_provider_has_no_sandboxes_in_memory() {
    let machine = Machine::with_sandbox();
    let url = format!("unix:{}", machine.path_text("native.sock"));
    let mut server = machine.spawn(&mut machine.command(&["serve", "--no-keys", "--listen", &url]));
    let mut stderr = server.stderr.take().unwrap();
    std::io::Read::read_exact(&mut stderr, &mut [0]).unwrap();
    let refused = machine.run(&["--server", &url, "transfer", "box:f", "memory/web:f"]);
    assert!(
        refused.failure(2).contains("is of memory, and the server has sandboxes of native"),
        "{refused:?}"
    );
    rustix::process::kill_process(rustix::process::Pid::from_child(&server), rustix::process::Signal::TERM)
        .unwrap();
    server.wait().unwrap();
}

#[test]
fn a_pool_with_the_name_of_a_provider_makes_two_words_mean_two_things() {
    let machine = Machine::with_sandbox();
    machine.run(&["pool", "create", "native", "box"]).success();
    machine.run(&["write", "native/box", "f", "--content", "of the pool"]).success();
    machine.run(&["write", "box", "f", "--content", "of default"]).success();
    let refused = machine.run(&["transfer", "native/box:f", "box:g"]);
    assert!(refused.failure(2).contains("`native` is a pool as well"), "{refused:?}");
    for clear in ["`native/native/box`", "`native/default/box`"] {
        assert!(refused.stderr.contains(clear), "{refused:?}");
    }
    machine.run(&["transfer", "native/native/box:f", "native/default/box:g"]).success();
    assert_eq!(machine.run(&["read", "box", "g"]).success(), "of the pool");
    machine.run(&["transfer", "native/default/box:f", "native/native/box:g"]).success();
    assert_eq!(machine.run(&["read", "native/box", "g"]).success(), "of default");
}

#[test]
fn a_wrong_side_changes_nothing_and_wakes_nobody() {
    let served = scene();
    served.there(&["sleep", "web"]).success();
    let asleep = |what: &Ran| {
        let web = served.there(&["--json", "inspect", "web"]).json();
        assert_eq!(web["status"], "sleeping", "{what:?}");
    };
    in_box(&served, "mkdir d && touch d/f");
    let missing = served.there(&["transfer", "native/box:nothing", "memory/web:x"]);
    assert!(missing.failure(125).contains("native/box:nothing"), "{missing:?}");
    asleep(&missing);
    let not_recursive = served.there(&["transfer", "native/box:d", "memory/web:x"]);
    assert!(not_recursive.failure(125).contains("hint: -r copies a directory"), "{not_recursive:?}");
    asleep(&not_recursive);
    let nobody = served.there(&["transfer", "native/nobody:d", "memory/web:x"]);
    assert!(nobody.failure(125).contains("native/nobody:d"), "{nobody:?}");
    asleep(&nobody);
    let pool = served.there(&["transfer", "--pool", "default", "native/box:d/f", "web:x"]);
    assert!(pool.failure(2).contains("--pool names the pool of both sides"), "{pool:?}");
    asleep(&pool);
    // What is there already stays as it is.
    assert_eq!(served.script("mkdir x && echo mine > x/mine && ls -d x"), "x\n");
    let taken = served.there(&["transfer", "-r", "native/box:d", "memory/web:x"]);
    assert!(taken.failure(125).contains("not empty"), "{taken:?}");
    assert_eq!(served.script("find . | sort"), ".\n./x\n./x/mine\n");
}

#[test]
fn a_large_tree_passes_through_without_being_held() {
    let served = scene();
    in_box(&served, "mkdir big && head -c 104857600 /dev/zero > big/f");
    let words = ["--server", served.url.as_str(), "transfer", "-r", "native/box:big", "memory/web:big"];
    let mut child = served.machine.spawn(&mut served.machine.command(&words));
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        peak_kib = peak_kib.max(peak_of(&std::fs::read_to_string(&status).unwrap_or_default()));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(Ran::from(child.wait_with_output().unwrap()).success(), "1 file, 104857600 bytes\n");
    assert!((1..80 * 1024).contains(&peak_kib), "{peak_kib} KiB");
    assert_eq!(served.script("stat -c %s big/f"), "104857600\n");
}

/// Returns the most memory that a process has had, in KiB.
fn peak_of(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}
