//! Images that a Docker Engine fetches for its own sandboxes (`--provider docker`): a registry's
//! errors have the same types as when Eyot pulls itself.

use std::fs;
use std::process::Command;

use crate::Case;
use crate::damage::kind;
use crate::machine::{Machine, Ran};
use crate::pulling::{blobs, image};
use crate::registry::Registry;

pub fn trials() -> Vec<Case> {
    vec![
        ("an_engine_that_a_registry_does_not_let_in_is_a_permission_with_a_login_as_its_hint", refused),
        ("an_engine_that_is_sent_a_damaged_layer_is_told_apart_from_one_without_the_image", damaged),
    ]
}

/// Creates a sandbox of an image that the Engine does not have. Asserts that nothing of it is there
/// afterwards.
fn create(machine: &Machine, name: &str) -> Ran {
    let ran = machine.run(&["--json", "--provider", "docker", "create", "--image", name]);
    let docker = |arguments: &[&str]| Command::new("docker").args(arguments).output().unwrap();
    assert!(!docker(&["image", "inspect", name]).status.success(), "the image is there");
    let left = docker(&["ps", "-aq", "--filter", &format!("ancestor={name}")]);
    assert!(left.stdout.is_empty(), "{left:?}");
    ran
}

fn refused() {
    let (registry, machine) = (Registry::for_members(), Machine::new());
    registry.push(&image(), "app:1");
    let ran = create(&machine, &registry.name("app:1"));
    assert_eq!(kind(&ran), "permission", "{ran:?}");
    assert!(ran.stderr.contains("docker login"), "{ran:?}");
}

fn damaged() {
    let (registry, machine, image) = (Registry::new(), Machine::new(), image());
    registry.push(&image, "app:1");
    let blob = registry.blob(&blobs(&image)[1]);
    let mut changed = fs::read(&blob).unwrap();
    changed[1000] ^= 1;
    fs::write(&blob, changed).unwrap();
    let ran = create(&machine, &registry.name("app:1"));
    assert_eq!(kind(&ran), "invalid", "{ran:?}");
    assert!(ran.stderr.contains("damaged"), "{ran:?}");
    let ran = create(&machine, &registry.name("app:2"));
    assert_eq!(kind(&ran), "not_found", "{ran:?}");
}
