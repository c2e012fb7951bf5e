//! State folders that other users have a hand in, which only root can stage.

use std::os::unix::fs::PermissionsExt;

use crate::Case;
use crate::machine::{Machine, Ran};

pub fn trials() -> Vec<Case> {
    vec![
        (
            "without_a_home_the_state_folder_is_in_no_folder_that_users_share",
            without_a_home_the_state_folder_is_in_no_folder_that_users_share,
        ),
        (
            "a_state_folder_that_another_users_link_leads_to_is_refused_by_every_command",
            a_state_folder_that_another_users_link_leads_to_is_refused_by_every_command,
        ),
    ]
}

fn without_a_home_the_state_folder_is_in_no_folder_that_users_share() {
    let machine = Machine::new();
    let user = 4_000_000_000;
    std::fs::create_dir(machine.path("tmp")).unwrap();
    // The program may lie in a home that others can't enter, such as root's.
    let program = machine.path("eyot");
    std::fs::copy(machine.command(&[]).get_program(), &program).unwrap();
    std::fs::set_permissions(program.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(program);
    command.arg("ls").env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", machine.path("tmp"));
    // A user who is not in the user database.
    std::os::unix::process::CommandExt::uid(&mut command, user);
    let refused = Ran::from(command.output().unwrap());
    assert!(
        refused.failure(125).contains("no home directory") && refused.stderr.contains("--state"),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_dir(machine.path("tmp")).unwrap().count(), 0);
}

fn a_state_folder_that_another_users_link_leads_to_is_refused_by_every_command() {
    let machine = Machine::new();
    let (target, link) = (machine.path("target"), machine.path("link"));
    std::fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(4321), Some(4321)).unwrap();
    let state = link.to_str().unwrap();
    let backup = machine.path_text("backup");
    for command in [
        &["ls"][..],
        &["run", "--", "true"],
        &["pool", "ls"],
        &["keys", "ls"],
        &["events"],
        &["image", "ls"],
        &["backup", &backup],
        &["restore", &backup],
        &["serve", "--no-keys", "--listen", "127.0.0.1:0"],
    ] {
        let arguments = [&["--state", state], command].concat();
        let refused = machine.run(&arguments);
        assert!(refused.failure(125).contains("a link that uid 4321 made"), "{command:?}: {refused:?}");
        assert!(!refused.stderr.contains("chown"), "{refused:?}");
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}
