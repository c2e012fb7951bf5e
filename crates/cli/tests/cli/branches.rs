//! Snapshots, forks, rollbacks and differences, as somebody types them.

use eyot_image::testing::{TestImage, TestLayer};
use serde_json::json;

use super::in_memory::Session;
use super::machine::Machine;
use super::memory_server::MemoryServer;

fn machine() -> Machine {
    let machine = Machine::new();
    machine.run(&["create", "dev"]).success();
    machine.run(&["write", "dev", "a", "--content", "one"]).success();
    machine
}

#[test]
fn a_bad_step_is_undone_and_three_tries_begin_where_it_was_good() {
    let machine = machine();
    assert_eq!(machine.run(&["diff", "dev"]).success(), "A /workspace/a\n");
    let id = machine.run(&["snapshot", "dev", "--name", "good", "-l", "step=1"]).success();
    assert!(id.starts_with("sn_"), "{id}");
    assert_eq!(machine.run(&["diff", "dev"]).success(), "");
    machine.run(&["exec", "dev", "--", "sh", "-c", "echo two > a; mkdir d; echo x > d/f"]).success();
    let changed = "C /workspace/a\nA /workspace/d\nA /workspace/d/f\n";
    assert_eq!(machine.run(&["diff", "dev"]).success(), changed);
    assert_eq!(machine.run(&["diff", "good", "dev"]).success(), changed);
    let texts = machine.run(&["diff", "dev", "--text", "--path", "/workspace/d"]).success();
    assert_eq!(texts, "A /workspace/d\n--- /dev/null\n+++ b/workspace/d/f\n@@ -0,0 +1,1 @@\n+x\n");
    assert_eq!(
        machine.run(&["diff", "dev", "--path", "/workspace/d"]).success(),
        "A /workspace/d\nA /workspace/d/f\n"
    );
    let found = machine.run(&["diff", "dev", "--json"]).json();
    assert_eq!((&found["changes"][0]["change"], &found["truncated"]), (&"changed".into(), &false.into()));
    assert_eq!(machine.run(&["fork", "good", "-n", "3"]).success(), "dev-1\ndev-2\ndev-3\n");
    for name in ["dev-1", "dev-2", "dev-3"] {
        assert_eq!(machine.run(&["read", name, "a"]).success(), "one");
    }
    machine.run(&["rollback", "dev", "good"]).success();
    assert_eq!(machine.run(&["read", "dev", "a"]).success(), "one");
    assert_eq!(machine.run(&["diff", "good", "dev"]).success(), "");
    let listed = machine.run(&["snapshot", "ls", "--json"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["labels"]["step"]), (&"good".into(), &"1".into()));
    assert_eq!((&listed[0]["pool"], &listed[0]["sandbox_name"]), (&"default".into(), &"dev".into()));
    machine.run(&["snapshot", "rm", "good"]).success();
    assert_eq!(machine.run(&["snapshot", "ls", "-q"]).success(), "");
    assert_eq!(machine.run(&["read", "dev-2", "a"]).success(), "one");
    machine.run(&["rm", "--all", "-q"]).success();
    assert_eq!(std::fs::read_dir(machine.state().join("snapshots")).unwrap().count(), 0, "layers are left");
}

#[test]
fn a_fork_of_a_sandbox_and_of_that_fork_have_its_spec_and_files() {
    let machine = Machine::new();
    // Quietly: an ordinary user is told that the limit is not enforced.
    machine.run(&["--quiet", "create", "team/dev", "-e", "WORD=hello", "-m", "256m"]).success();
    machine.run(&["write", "team/dev", "a", "--content", "one"]).success();
    assert_eq!(machine.run(&["fork", "team/dev", "--name", "first"]).success(), "team/first\n");
    assert_eq!(machine.run(&["fork", "team/first"]).success(), "team/first-1\n");
    let said = machine.run(&["exec", "team/first-1", "--", "sh", "-c", "cat a; echo $WORD"]).success();
    assert_eq!(said, "onehello\n");
    let spec = machine.run(&["inspect", "team/first-1", "--json"]).json();
    assert_eq!(spec["spec"]["limits"]["memory_mib"], 256);
    assert_eq!(machine.run(&["snapshot", "ls", "team", "-q"]).success(), "", "a fork leaves no snapshot");
    machine.run(&["pool", "rm", "-f", "team"]).success();
    assert_eq!(std::fs::read_dir(machine.state().join("snapshots")).unwrap().count(), 0, "layers are left");
}

#[test]
fn a_sandbox_that_works_is_refused_unless_what_runs_may_be_stopped() {
    let machine = machine();
    machine.run(&["start", "dev", "--", "sleep", "1000"]).success();
    let refused = machine.run(&["snapshot", "dev"]);
    let said = refused.failure(125);
    assert!(said.contains("`sleep 1000` runs in sandbox `dev`") && said.contains("stop"), "{said}");
    assert!(machine.run(&["exec", "dev", "--", "pgrep", "sleep"]).code == Some(0), "it was ended");
    let taken = machine.run(&["snapshot", "dev", "--stop", "--json"]);
    assert_eq!(taken.json()["stopped"][0], "sleep 1000");
    assert!(taken.stderr.contains("`sleep 1000` was ended"), "{}", taken.stderr);
    let id = taken.json()["id"].as_str().unwrap().to_owned();
    machine.run(&["rollback", "dev", &id]).success();
}

#[test]
fn an_image_is_made_of_a_sandbox_and_of_a_snapshot() {
    let machine = Machine::new();
    let layer = TestLayer::default().file("bin/sh", "#!").file("etc/gone", "x");
    let base = TestImage::new(&[layer]).with_config(json!({ "Env": ["A=1"], "WorkingDir": "/app" }));
    base.write_layout(&machine.path("layout"), Some("base:1")).unwrap();
    machine.run(&["image", "import", &machine.path_text("layout")]).success();
    machine.run(&["create", "dev", "--image", "base:1"]).success();
    machine.run(&["write", "dev", "a", "--content", "one"]).success();
    machine.run(&["snapshot", "dev", "--name", "good"]).success();
    machine.run(&["write", "dev", "a", "--content", "two"]).success();
    assert_eq!(machine.run(&["commit", "dev", "app:2"]).success(), "app:2\n");
    let made = machine.run(&["commit", "good", "app:1", "--json"]).json();
    assert_eq!((&made["name"], &made["layers"], &made["stopped"]), (&json!("app:1"), &json!(2), &json!([])));
    let removed = machine.run(&["rm", "dev"]);
    let note = "eyot: a snapshot stays; `eyot snapshot rm good` removes it\n";
    assert_eq!((removed.code, removed.stderr.as_str()), (Some(0), note));
    machine.run(&["snapshot", "rm", "good"]).success();
    assert_eq!(std::fs::read_dir(machine.state().join("snapshots")).unwrap().count(), 0, "layers are left");
    for (image, text) in [("app:1", "one"), ("app:2", "two")] {
        let name = image.replace(':', "-");
        machine.run(&["create", &name, "--image", image]).success();
        assert_eq!(machine.run(&["read", &name, "a"]).success(), text);
        assert_eq!(machine.run(&["inspect", &name, "--json"]).json()["workdir"], "/app");
    }

    machine.run(&["create", "plain"]).success();
    for (arguments, part) in [
        (&["commit", "plain", "app:3"][..], "`eyot create --image NAME`"),
        (&["commit", "app-1", "Not A Name"], "names have no capital letters"),
        (&["commit", "app-1", "host"], "this host's own programs"),
        (&["commit", "nobody", "app:3"], "nor a sandbox `nobody`"),
        (&["commit", "app-1"], "<REFERENCE>"),
        (&["--provider", "memory", "commit", "app-1", "app:3"], "eyot:"),
    ] {
        let ran = machine.run(arguments);
        assert!(ran.code != Some(0) && ran.stderr.contains(part), "{arguments:?}: {ran:?}");
    }
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "app:1\napp:2\nbase:1\n");
    let kept = std::fs::read_dir(machine.state().join("snapshots")).unwrap().count();
    assert_eq!(kept, 0, "a refused commit took a snapshot");
}

#[test]
fn services_start_again_after_a_snapshot_and_are_no_work() {
    let machine = Machine::new();
    machine.run(&["pool", "create", "p", "web", "--service", "exec sleep 1000"]).success();
    let taken = machine.run(&["snapshot", "p/web", "--json"]).json();
    assert_eq!(taken["stopped"], serde_json::json!([]));
    machine.run(&["exec", "p/web", "--", "pgrep", "sleep"]).success();
}

#[test]
fn names_that_are_not_there_or_taken_are_refused_with_what_to_do() {
    let machine = machine();
    machine.run(&["snapshot", "dev", "--name", "one"]).success();
    for (arguments, part) in [
        (&["snapshot", "dev", "--name", "one"][..], "the name `one` is in use"),
        (&["snapshot", "nobody"], "no sandbox `nobody`"),
        (&["rollback", "dev", "nothing"], "`eyot snapshot ls`"),
        (&["fork", "nothing"], "nor a sandbox `nothing`"),
        (&["diff", "one", "nothing"], "nor a sandbox `nothing`"),
        (&["snapshot", "rm", "nothing"], "no snapshot `nothing`"),
        (&["fork", "dev", "-n", "65"], "from 1 to 64"),
        (&["--provider", "memory", "snapshot", "dev"], "eyot:"),
    ] {
        let ran = machine.run(arguments);
        assert!(ran.code != Some(0) && ran.stderr.contains(part), "{arguments:?}: {ran:?}");
    }
    let empty = Machine::new().run(&["snapshot", "dev"]);
    assert!(empty.failure(125).contains("no sandbox `dev`"), "{empty:?}");
    let slept = machine.run(&["sleep", "dev"]);
    assert_eq!(slept.code, Some(0));
    machine.run(&["snapshot", "dev", "--name", "two"]).success();
    assert_eq!(machine.run(&["ls", "--json"]).json()[0]["status"], "sleeping", "it was woken");
}

#[test]
fn a_sandbox_in_memory_is_kept_forked_and_rolled_back_by_its_server() {
    let served = MemoryServer::new();
    served.script("echo one > a");
    served.there(&["start", "web", "--", "sleep", "1000"]).success();
    let refused = served.there(&["snapshot", "web", "--name", "good"]);
    assert!(refused.failure(125).contains("`sleep 1000` runs in sandbox `web`"), "{refused:?}");
    let taken = served.there(&["snapshot", "web", "--name", "good", "--stop", "--json"]).json();
    assert_eq!((&taken["stopped"][0], &taken["shared_bytes"]), (&"sleep 1000".into(), &0.into()));
    served.script("echo two > a; echo new > b");
    assert_eq!(served.there(&["diff", "web"]).success(), "C /workspace/a\nA /workspace/b\n");
    assert_eq!(served.there(&["fork", "good", "-n", "2"]).success(), "web-1\nweb-2\n");
    assert_eq!(served.there(&["read", "web-2", "a"]).success(), "one\n");
    served.there(&["rollback", "web", "good"]).success();
    assert_eq!(served.script("cat a; ls"), "one\na\n");
    served.there(&["snapshot", "rm", "good"]).success();
    assert_eq!(served.there(&["snapshot", "ls", "-q"]).success(), "");
}

#[test]
fn the_checkpoints_of_a_session_go_with_it_even_if_it_is_killed() {
    let machine = Machine::new();
    let kept = || std::fs::read_dir(machine.state().join("snapshots")).unwrap().count();
    for is_killed in [false, true] {
        let mut session = Session::begin(&machine, &["mcp", "--toolset", "pool", "--toolset", "checkpoints"]);
        let call = json!({ "name": "checkpoint", "arguments": { "name": "good" } });
        let answer = session.ask("tools/call", call);
        assert_eq!(answer["structuredContent"], json!({ "checkpoint": "good" }), "{answer}");
        assert_eq!(kept(), 1);
        if is_killed {
            session.kill();
            machine.run(&["pool", "ls"]).success();
        } else {
            assert_eq!(session.end(), Some(0));
        }
        assert_eq!(kept(), 0, "killed: {is_killed}");
    }
}
