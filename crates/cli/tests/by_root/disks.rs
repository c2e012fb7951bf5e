//! Sandboxes with disks of their own, which only root makes.

use crate::Case;
use crate::machine::Machine;

pub fn trials() -> Vec<Case> {
    vec![(
        "a_sandbox_with_a_disk_has_no_branches_and_a_refusal_stops_nothing",
        a_sandbox_with_a_disk_has_no_branches_and_a_refusal_stops_nothing,
    )]
}

fn a_sandbox_with_a_disk_has_no_branches_and_a_refusal_stops_nothing() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("folder")).unwrap();
    let mount = format!("{}:/data:cow", machine.path_text("folder"));
    machine.run(&["create", "box", "--disk", "64m", "--mount", &mount]).success();
    machine.run(&["start", "box", "--", "sleep", "1000"]).success();
    let pid = machine.run(&["--json", "ps", "box"]).success().to_owned();
    for command in ["snapshot", "fork", "apply"] {
        for stop in [&[][..], &["--stop"]] {
            let refused = machine.run(&[&[command, "box"], stop].concat());
            assert!(refused.failure(125).contains("a disk of its own"), "{command} {stop:?}: {refused:?}");
        }
    }
    assert_eq!(machine.run(&["--json", "ps", "box"]).success(), pid);
    machine.run(&["kill", "box", "p1"]).success();
    assert_eq!(machine.run(&["wait", "box", "p1"]).code, Some(143));
}
