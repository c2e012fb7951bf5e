//! `eyot bench` on Docker: it runs and reports; its figures gate nothing.

use std::process::{Command, Stdio};

use crate::machine::{Machine, Ran};
use crate::{Case, IMAGE, on_docker};

pub fn trials() -> Vec<Case> {
    vec![
        ("every_operation_is_measured_beside_the_engines_own_and_nothing_is_left", measures),
        ("an_image_that_is_not_there_is_named_by_the_benchmark_and_never_fetched", without_image),
    ]
}

/// Rows of Eyot, of the Engine's API, and of the program.
const ROWS: [[&str; 3]; 5] = [
    ["exec /bin/true", "Engine's API: exec, attached", "docker exec"],
    ["write 1 KiB", "Engine's API: PUT archive of 1 KiB", "docker cp of 1 KiB in"],
    ["read 1 KiB", "Engine's API: GET archive of 1 KiB", "docker cp of 1 KiB out"],
    ["create → ready", "Engine's API: create and start a container", "docker run -d"],
    ["destroy", "Engine's API: remove by force", "docker rm -f"],
];

fn measures() {
    let machine = Machine::new();
    let mut command = machine.command(&["bench", "--rounds", "1", "--json", "--quiet"]);
    command.env("EYOT_PROVIDER", "docker").env("EYOT_IMAGE", IMAGE);
    command.envs(std::env::var_os("DOCKER_HOST").map(|host| ("DOCKER_HOST", host)));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let benchmark = child.id();
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.success();
    let report = ran.json();
    assert!(report["provider"] == "docker" && report["image"] == IMAGE, "{report}");
    let rows = report["rows"].as_array().unwrap();
    for [ours, api, program] in ROWS {
        for name in [ours, api, program] {
            let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}"));
            assert!(row["samples"] == 1 && row["p50_us"].as_f64().unwrap() > 0.0, "{row}");
            assert!(name == api || row["against"] == api, "{row}");
        }
    }
    assert_eq!(report["left_out"].as_array().map(Vec::len), Some(0));
    // Its own containers have its process as a label: those of others come and go meanwhile.
    let label = format!("label=eyot-bench={benchmark}");
    let left = Command::new("docker").args(["ps", "-aq", "--filter", &label]).output().unwrap();
    assert!(left.status.success() && left.stdout.is_empty(), "{left:?}");
}

fn without_image() {
    let ran =
        on_docker(&Machine::new(), &["bench", "--rounds", "1", "--image", "eyot-test-nobody-made-this:1"]);
    let said = ran.failure(125);
    assert!(said.contains("the Engine has no image `eyot-test-nobody-made-this:1`"), "{said}");
    assert!(said.contains("--image"), "{said}");
}
