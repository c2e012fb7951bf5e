//! `eyot image`, and sandboxes of its images.

use std::os::unix::fs::symlink;

use eyot_image::testing::{TestImage, TestLayer};
use serde_json::json;

use super::machine::{Machine, Ran};

/// Makes an image of two layers, the upper of which removes a file. It has no program.
fn layout(machine: &Machine, name: Option<&str>) -> String {
    let below = TestLayer::default().file("bin/sh", "#!").file("gone", "x");
    let above = TestLayer::default().file(".wh.gone", "").file("etc/release", "above");
    let image = TestImage::new(&[below, above]).with_config(json!({ "WorkingDir": "/app", "Env": ["A=1"] }));
    image.write_layout(&machine.path("layout"), name).unwrap();
    machine.path_text("layout")
}

#[test]
fn an_image_is_imported_listed_used_and_removed() {
    let machine = Machine::new();
    let layout = layout(&machine, Some("docker.io/library/app:1"));
    assert_eq!(machine.run(&["image", "import", &layout]).success(), "app:1\n");
    assert_eq!(machine.run(&["image", "import", &layout, "--name", "other:2"]).success(), "other:2\n");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "app:1\nother:2\n");
    assert!(machine.run(&["image", "ls"]).success().starts_with("IMAGE"));
    let listed = machine.run(&["--json", "image", "ls"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["layers"]), (&json!("app:1"), &json!(2)));

    machine.run(&["create", "--name", "box", "--image", "app:1"]).success();
    assert_eq!(machine.run(&["read", "box", "/etc/release"]).success(), "above");
    assert!(machine.run(&["read", "box", "/gone"]).failure(125).contains("does not exist"));
    assert_eq!(machine.run(&["--json", "inspect", "box"]).json()["workdir"], "/app");

    machine.run(&["image", "rm", "other:2"]).success();
    let ran = machine.run(&["image", "rm", "app:1"]);
    let said = ran.failure(125);
    assert!(said.contains("box") && said.contains("--force"), "{said}");
    machine.run(&["sleep", "box"]).success();
    machine.run(&["image", "rm", "app:1"]).failure(125);
    machine.run(&["--quiet", "image", "prune", "--all"]).success();
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "app:1\n");
    machine.run(&["rm", "box"]).success();
    assert_eq!(machine.run(&["--json", "image", "rm", "app:1"]).json()["layers"], 2);
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
}

#[test]
fn a_folder_is_mounted_over_the_working_directory_of_an_image_and_into_its_usr() {
    let machine = Machine::new();
    machine.run(&["image", "import", &layout(&machine, Some("app:1"))]).success();
    machine.write("project/note", "from the host");
    let at = |target: &str| format!("{}:{target}:ro", machine.path_text("project"));
    let (app, usr) = (at("/app"), at("/usr/src/mine"));
    machine.run(&["create", "one", "--image", "app:1", "-v", &app]).success();
    machine.run(&["create", "two", "--image", "app:1", "-v", &usr, "-w", "/usr/src/mine"]).success();
    for name in ["one", "two"] {
        assert_eq!(machine.run(&["read", name, "note"]).success(), "from the host", "{name}");
        machine.run(&["stop", name]).success();
        assert_eq!(machine.run(&["read", name, "note"]).success(), "from the host", "{name}");
    }
    let on_host = machine.run(&["create", "-v", &at("/usr/src/mine-alone")]);
    assert!(on_host.failure(125).contains("`/usr`, which is read-only"), "{on_host:?}");
}

#[test]
fn what_is_no_image_and_what_has_no_name_is_refused_with_what_to_do() {
    let machine = Machine::new();
    let layout = layout(&machine, None);
    let missing = machine.run(&["image", "import", "debian"]).failure(125).to_owned();
    assert!(missing.contains("no such file") && missing.contains("`eyot image pull NAME`"), "{missing}");
    let nameless = machine.run(&["image", "import", &layout]);
    assert!(nameless.failure(125).contains("--name"));
    let text = machine.write("text", "this is no image");
    assert!(
        machine.run(&["image", "import", &text, "--name", "x"]).failure(125).contains("not a tar archive")
    );
    let secret = machine.write("secret", "password: hunter2\n".repeat(100));
    for arguments in [&["run", "--image", &secret, "true"][..], &["image", "import", &secret, "--name", "x"]]
    {
        let ran = machine.run(arguments);
        let said = ran.failure(125);
        assert!(said.contains("not a tar archive") && !said.contains("hunter2"), "{said}");
    }
    assert!(
        machine
            .run(&["image", "import", "/nonexistent", "--name", "x"])
            .failure(125)
            .contains("no such file")
    );
    assert_eq!(machine.run(&["image", "import", &layout, "--name", "UP"]).code, Some(2));
    assert!(machine.run(&["image", "rm", "absent"]).failure(125).contains("eyot image ls"));
    let absent = machine.run(&["run", "--image", "node:22", "--pull", "never", "--", "true"]);
    assert!(absent.failure(125).contains("eyot image pull node:22"));
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    let left = std::fs::read_dir(machine.state().join("images/blobs/sha256")).unwrap();
    assert_eq!(left.count(), 0, "an import that failed has left its blobs");
}

#[test]
fn a_debian_that_can_not_be_built_says_what_an_ordinary_user_can_do() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("bin")).unwrap();
    symlink("/bin/false", machine.path("bin/mmdebstrap")).unwrap();
    let words = ["image", "build-base", "--name", "py:3", "--suite", "bookworm", "-p", "python3,git"];
    let mut command = machine.command(&words);
    let ran = Ran::from(command.env("PATH", machine.path("bin")).output().unwrap());
    let said = ran.failure(125);
    let by_root = "sudo mmdebstrap --variant=minbase --include=python3,git bookworm base.tar && eyot image import \
                   base.tar --name py:3;";
    assert!(said.contains("check the suite"), "{said}");
    assert_eq!(said.contains(by_root), !rustix::process::geteuid().is_root(), "{said}");
}

#[test]
fn what_docker_save_writes_is_imported_from_standard_input() {
    let machine = Machine::new();
    let image = TestImage::new(&[TestLayer::default().file("bin/sh", "#!")]);
    std::fs::create_dir_all(machine.path("home")).unwrap();
    image.write_docker_archive(&machine.path("saved.tar"), &["app:1"]).unwrap();
    let saved = std::fs::read(machine.path("saved.tar")).unwrap();
    assert_eq!(machine.run_with_input(&["image", "import", "-"], &saved).success(), "app:1\n");
    let cut = machine.run_with_input(&["image", "import", "-"], &saved[..1000]);
    assert!(cut.failure(125).starts_with("eyot: import `-`: "), "{cut:?}");
}

#[test]
fn with_docker_it_is_said_whose_images_these_are() {
    let machine = Machine::new();
    for arguments in [&["image", "ls", "-q"][..], &["image", "ls"]] {
        let ran = machine.run(&[&["--provider", "docker"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let is_quiet = arguments.contains(&"-q");
        assert_eq!(ran.stderr.contains("the Engine keeps its own: docker images"), !is_quiet, "{ran:?}");
    }
    machine.run(&["image", "ls"]).success();
}
