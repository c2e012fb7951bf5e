//! Every test, in one build; and as root those of the sandbox once more as an ordinary user,
//! because half of the provider (the single map, the masks) only exists there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::engine::Engine;
use crate::phases::Phases;
use crate::process::{all_of, cargo, has, is_root, root, run as run_program};
use crate::programs::{self, ARGUMENTS, Built};
use crate::tested::Run;
use crate::{images, packages, sdks};

/// The user that the tests are run as a second time.
const USER: &str = "eyot-test";

/// The test programs that make sandboxes.
const OF_SANDBOXES: [&str; 10] =
    ["conformance", "threats", "real_programs", "lifecycle", "pool", "cli", "host", "images", "tasks", "api"];

/// The tests that never run a second time: a protection that failed once has failed.
const OF_PROTECTIONS: &str = "threats";

/// Runs the tests.
fn run_all(run: &mut Run, phases: &mut Phases) -> Result<(), String> {
    // All that fails, not the first: a run takes half an hour.
    let again = |program: Option<&Path>| {
        let path = root().join(program?);
        let is_it = |built: &Built| built.path == path && built.name != OF_PROTECTIONS;
        let built = programs::built().ok()?.into_iter().find(is_it)?;
        let mut test = Command::new(&built.path);
        test.current_dir(built.package);
        Some(test)
    };
    phases.time("tests", || run.try_all("cargo test", cargo().args(ARGUMENTS).arg("--no-fail-fast"), again));
    match has("runuser") && has("useradd") {
        _ if !is_root() => Ok(()),
        true => phases.time(format!("sandbox tests as {USER}"), || as_ordinary_user(run)),
        false => {
            eprintln!("xtask: no runuser or useradd here: the sandbox tests were run as root only");
            Ok(())
        }
    }
}

/// The Engine and its images, made while the tests are built: the one waits for downloads, the
/// other for processors.
fn engine_and_build() -> Result<Option<Engine>, String> {
    thread::scope(|scope| {
        let build = scope.spawn(|| run_program(cargo().args(ARGUMENTS).arg("--no-run")));
        let engine = Engine::ready();
        let built = build.join().unwrap_or_else(|_| Err("the build of the tests panicked".to_owned()));
        built.map(|()| engine)
    })
}

/// The task.
pub fn run() -> Result<(), String> {
    packages::install()?;
    let mut phases = Phases::default();
    let engine = phases.time("build, Engine and images", engine_and_build)?;
    let mut run = Run::default();
    let tested = run_all(&mut run, &mut phases);
    // Once, as whoever this is: nothing in them depends on it.
    let clients = phases.time("clients, document and page", || sdks::run(&[]));
    drop(engine);
    phases.print();
    all_of([run.end(), tested, clients])
}

fn as_ordinary_user(run: &mut Run) -> Result<(), String> {
    if Command::new("id").arg(USER).output().is_ok_and(|found| !found.status.success()) {
        run_program(Command::new("useradd").args(["--create-home", "--shell", "/bin/bash", USER]))?;
    }
    let folder = Copies::new()?;
    let built = programs::built()?;
    // They may not ask the Engine.
    let images = folder.path.join("images.tar");
    let images = images::save_for_tasks(&images)?.then_some(images);
    let eyot = built.iter().find(|built| built.name == "eyot" && !built.is_test);
    let eyot = eyot.map(|built| folder.copy(&built.path, "eyot")).transpose()?;
    for program in built.iter().filter(|built| built.is_test && OF_SANDBOXES.contains(&built.name.as_str())) {
        let what = format!("{} as {USER}", program.name);
        println!("\n     Running {what}");
        let copy = folder.copy(&program.path, &program.name)?;
        let test = || {
            let mut test = Command::new("runuser");
            test.args(["-u", USER, "--"]).arg(&copy).current_dir(&folder.path);
            test.env("HOME", format!("/home/{USER}")).env_remove("XDG_STATE_HOME").env_remove("TMPDIR");
            test.envs(images.iter().map(|images| ("EYOT_TEST_IMAGES", images)));
            test.envs(eyot.iter().map(|eyot| ("EYOT_BIN", eyot)));
            test
        };
        let is_tried_again = program.name != OF_PROTECTIONS;
        run.try_all(&what, &mut test(), |_| is_tried_again.then(&test));
    }
    Ok(())
}

/// A place for copies of the programs that the ordinary user can reach, wherever the repository
/// lies.
struct Copies {
    path: PathBuf,
}

impl Copies {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("eyot-xtask-{}", std::process::id()));
        let made = fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        made.map_err(|error| format!("make {}: {error}", path.display()))?;
        Ok(Self { path })
    }

    fn copy(&self, program: &Path, name: &str) -> Result<PathBuf, String> {
        let copy = self.path.join(name);
        let done = fs::copy(program, &copy)
            .and_then(|_| fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)));
        done.map_err(|error| format!("copy {}: {error}", program.display()))?;
        Ok(copy)
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: remove {}: {error}", self.path.display());
        }
    }
}
