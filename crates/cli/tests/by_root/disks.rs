//! Sandboxes with disks of their own, which only root makes.

use crate::Case;
use crate::machine::Machine;

pub fn trials() -> Vec<Case> {
    vec![(
        "a_sandbox_with_a_disk_has_snapshots_forks_and_an_apply_as_others_have",
        a_sandbox_with_a_disk_has_snapshots_forks_and_an_apply_as_others_have,
    )]
}

fn a_sandbox_with_a_disk_has_snapshots_forks_and_an_apply_as_others_have() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("folder")).unwrap();
    std::fs::write(machine.path("folder").join("file"), "one").unwrap();
    let mount = format!("{}:/data:cow", machine.path_text("folder"));
    machine.run(&["create", "box", "--disk", "64m", "--mount", &mount]).success();
    machine.run(&["exec", "box", "--", "sh", "-c", "printf two > /data/file; echo kept > kept"]).success();
    machine.run(&["snapshot", "box", "--name", "good"]).success();
    machine.run(&["exec", "box", "--", "sh", "-c", "printf three > /data/file; rm kept"]).success();
    let changed = machine.run(&["diff", "box"]);
    assert!(changed.success().contains("D /workspace/kept"), "{changed:?}");
    machine.run(&["fork", "good"]).success();
    assert_eq!(machine.run(&["exec", "box-1", "--", "cat", "/data/file", "kept"]).success(), "twokept\n");
    machine.run(&["rollback", "box", "good"]).success();
    assert_eq!(machine.run(&["exec", "box", "--", "cat", "/data/file", "kept"]).success(), "twokept\n");
    machine.run(&["apply", "box", "--dry-run"]).success();
    machine.run(&["apply", "box"]).success();
    assert_eq!(std::fs::read_to_string(machine.path("folder").join("file")).unwrap(), "two");
}
