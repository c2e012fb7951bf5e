//! Images of a Docker Engine: a real one if there is one, and a fake one for what a real one does
//! rarely.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use eyot_image::Digest;
use eyot_image::testing::{TestImage, TestLayer};
use serde_json::json;

use crate::Case;
use crate::damage::kind;
use crate::machine::{Machine, Ran};
use crate::pulling::assert_tidy;
use crate::sources::released;

/// Returns the tests that need a real Engine.
pub fn real_trials() -> Vec<Case> {
    vec![
        ("an_image_of_an_engine_is_imported_with_its_layers_and_its_wishes", imported),
        ("a_create_takes_an_image_that_is_missing_from_the_engine_unless_told_otherwise", taken),
    ]
}

pub fn trials() -> Vec<Case> {
    vec![
        ("an_engine_that_is_absent_is_an_error_only_for_who_names_it", absent),
        ("an_engine_that_breaks_off_or_sends_another_image_leaves_nothing", broken),
    ]
}

/// Tells whether an Engine answers.
pub fn answers() -> bool {
    let asked = Command::new("docker").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// An image in the Engine, removed when this is dropped. Its registry does not exist, so a look-up
/// there fails at once.
struct Loaded {
    name: String,
}

impl Loaded {
    fn new(image: &TestImage, tag: &str) -> Self {
        let name = format!("127.0.0.1:1/eyot-test-images-{}:{tag}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("saved.tar");
        image.write_docker_archive(&archive, &[&name]).unwrap();
        let done = Command::new("docker").args(["load", "-q", "-i"]).arg(archive).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        Self { name }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let removed = Command::new("docker").args(["image", "rm", &self.name]).output().unwrap();
        assert!(removed.status.success() || std::thread::panicking(), "{removed:?}");
    }
}

fn imported() {
    let below = TestLayer::default().file("bin/sh", "#!").file("gone", "x");
    let above = TestLayer::default().file(".wh.gone", "").file("etc/release", "of the engine");
    let image = TestImage::new(&[below, above]).with_config(json!({ "WorkingDir": "/app", "Env": ["A=1"] }));
    let (loaded, machine) = (Loaded::new(&image, "imported"), Machine::new());
    let source = format!("docker://{}", loaded.name);
    assert_eq!(machine.run(&["image", "import", &source]).success(), format!("{}\n", loaded.name));
    assert_eq!(machine.run(&["image", "import", &source, "--name", "mine:1"]).success(), "mine:1\n");
    assert_tidy(&machine);
    let listed = machine.run(&["--json", "image", "ls"]).json();
    assert_eq!((&listed[0]["layers"], &listed[0]["complete"]), (&json!(2), &json!(true)));
    machine.run(&["create", "--name", "box", "--image", "mine:1", "--pull", "never"]).success();
    assert_eq!(machine.run(&["read", "box", "/etc/release"]).success(), "of the engine");
    assert!(machine.run(&["read", "box", "/gone"]).failure(125).contains("does not exist"));
    assert_eq!(machine.run(&["--json", "inspect", "box"]).json()["workdir"], "/app");
    let other = machine.run(&["--json", "image", "import", &source.replace(":imported", ":none")]);
    assert_eq!(kind(&other), "not_found");
    assert!(other.stderr.contains("the Engine has no such image"), "{other:?}");
}

fn taken() {
    let (loaded, machine) = (Loaded::new(&released("of the engine"), "taken"), Machine::new());
    let create = |variable: &str, value: &str| {
        let mut command = machine.command(&["--json", "create", "--image", &loaded.name]);
        Ran::from(command.env(variable, value).output().unwrap())
    };
    assert_eq!(kind(&create("EYOT_PULL", "never")), "not_found");
    assert_eq!(kind(&create("EYOT_DOCKER_ENGINE", "false")), "unavailable");
    // As for a model, whoever serves it has not named the image.
    let asked = json!({ "sandbox": "web", "image": loaded.name }).to_string();
    assert_ne!(machine.run(&["call", "pool", "sandbox_create", &asked]).code, Some(0));
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    let made = create("EYOT_DOCKER_ENGINE", "true");
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), format!("{}\n", loaded.name));
    assert_eq!(fs::read_dir(machine.state().join("images/incoming")).unwrap().count(), 0);
}

fn absent() {
    let machine = Machine::new();
    let at = |arguments: &[&str]| {
        let mut command = machine.command(&[&["--json"], arguments].concat());
        Ran::from(command.env("DOCKER_HOST", "unix:///nonexistent/docker.sock").output().unwrap())
    };
    let named = at(&["image", "import", "docker://app:1"]);
    assert_eq!(kind(&named), "unavailable");
    assert!(
        named.stderr.contains("no Docker Engine answers") && named.stderr.contains("DOCKER_HOST"),
        "{named:?}"
    );
    let made = at(&["create", "--image", "127.0.0.1:1/app:1"]);
    assert!(made.stderr.contains("registry `127.0.0.1:1` can't be reached"), "{made:?}");
    let by_digest = at(&["image", "import", &format!("docker://app@{}", Digest::of(b"x"))]);
    assert_eq!(kind(&by_digest), "invalid");
    machine.assert_empty();
}

/// A fake Engine with one image, which answers the export with these bytes.
struct FakeEngine {
    address: String,
    _served: JoinHandle<()>,
}

impl FakeEngine {
    fn new(machine: &Machine, id: &Digest, archive: Vec<u8>, promised: usize) -> Self {
        let socket = machine.path("engine.sock");
        drop(fs::remove_file(&socket));
        let listener = UnixListener::bind(&socket).unwrap();
        let id = id.to_string();
        let served = std::thread::spawn(move || {
            for stream in listener.incoming() {
                // Whoever has heard enough hangs up.
                drop(serve(stream.unwrap(), &id, &archive, promised));
            }
        });
        Self { address: format!("unix://{}", socket.display()), _served: served }
    }
}

fn serve(mut stream: UnixStream, id: &str, archive: &[u8], promised: usize) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (body, length) = match () {
        () if request.contains("/version") => (br#"{"ApiVersion":"1.41","Version":"0"}"#.to_vec(), None),
        () if request.contains("/json") => (json!({ "Id": id, "Size": 1 }).to_string().into_bytes(), None),
        () => (archive.to_vec(), Some(promised)),
    };
    let length = length.unwrap_or(body.len());
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(&body)
}

fn broken() {
    let machine = Machine::new();
    let image = released("whole");
    let file = machine.path("saved.tar");
    fs::create_dir_all(machine.path("home")).unwrap();
    image.write_docker_archive(&file, &["app:1"]).unwrap();
    let (archive, id) = (fs::read(file).unwrap(), Digest::of(&image.config_blob()));
    let import = |engine: &FakeEngine| {
        let mut command = machine.command(&["--json", "image", "import", "docker://app:1"]);
        Ran::from(command.env("DOCKER_HOST", &engine.address).output().unwrap())
    };
    let half = FakeEngine::new(&machine, &id, archive[..archive.len() / 2].to_vec(), archive.len());
    let ran = import(&half);
    assert_eq!(kind(&ran), "unavailable", "{ran:?}");
    assert!(ran.stderr.contains("import `docker://app:1`"), "{ran:?}");
    let other = FakeEngine::new(&machine, &Digest::of(b"other"), archive.clone(), archive.len());
    let ran = import(&other);
    assert_eq!(kind(&ran), "invalid", "{ran:?}");
    assert!(ran.stderr.contains("it holds another image"), "{ran:?}");
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    assert_tidy(&machine);
    let whole = FakeEngine::new(&machine, &id, archive.clone(), archive.len());
    assert_eq!(import(&whole).code, Some(0));
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "app:1\n");
}
