//! `eyot image build-base`: a real Debian, built once for all tests here. It takes minutes, so it
//! is for the soak.

use crate::Case;
use crate::machine::Machine;
use crate::registry::has;

pub fn trials() -> Vec<Case> {
    vec![("soak::a_debian_is_built_with_the_packages_that_were_asked_for", built)]
}

/// Returns the reason why it cannot be tested here, if there is one.
pub fn missing() -> Option<&'static str> {
    if !has("mmdebstrap") {
        return Some("there is no mmdebstrap");
    }
    (!rustix::process::geteuid().is_root()).then_some("an ordinary user needs sub-ids for mmdebstrap")
}

fn built() {
    let machine = Machine::new();
    let unknown = machine.run(&["image", "build-base", "--name", "x", "--suite", "no-such-suite"]);
    assert!(unknown.failure(125).contains("mmdebstrap failed"));
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    let packages = ["image", "build-base", "--name", "py:3", "-p", "python3-minimal", "--quiet"];
    assert_eq!(machine.run(&packages).success(), "py:3\n");
    let sum = ["run", "--image", "py:3", "--", "python3", "-c", "print(6*7)"];
    assert_eq!(machine.run(&sum).success(), "42\n");
    let dpkg =
        ["run", "--image", "py:3", "--user", "root", "--", "sh", "-c", "dpkg -s python3-minimal && ls /home"];
    let said = machine.run(&dpkg).success();
    assert!(said.contains("Status: install ok installed") && said.ends_with("user\n"), "{said}");
    machine.run(&["image", "rm", "py:3"]).success();
    assert_eq!(std::fs::read_dir(machine.state().join("images/diffs")).unwrap().count(), 0);
}
