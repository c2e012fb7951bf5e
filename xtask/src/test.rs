//! Every test, in one build. Test programs, the clients' tests and all that is downloaded for them
//! run side by side; as root the tests of sandboxes run once more as an ordinary user, because half
//! of the provider (the single map, the masks) only exists there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::jobs::{self, Ended, Job};
use crate::log::say;
use crate::process::{all_of, cargo, has, is_root, root, run as run_program, target_directory};
use crate::programs::{self, ARGUMENTS, Built, Kind};
use crate::scratch::Scratch;
use crate::targets::{TARGETS, Target, Tier, User};
use crate::tested::{Program, Run, without_soak};
use crate::{images, machine, packages, sdks};

/// The user that the tests are run as a second time.
const USER: &str = "eyot-test";
/// A protection that failed once has failed: it is never tried again.
const OF_PROTECTIONS: &str = "threats";
/// Of what there is one. The limits of the host are what protections are tried against.
const ENGINE: &str = "engine";
const LIMITS: &str = "limits";
/// Cargo's lock of the target folder.
const CARGO: &str = "cargo";
/// The factor by which tests that run beside others are more patient. No rule is weaker for it: only
/// waits and the deadlines that must not come too soon are longer.
const SLOWNESS: &str = "2";
/// The targets that install npm packages before they test, and the jobs that install them.
static OF_NPM: [(&str, &str); 8] = [
    ("cloudflare_bridge", "install cloudflare_bridge"),
    ("daytona_sdks", "install daytona_sdks"),
    ("e2b_sdks", "install e2b_sdks"),
    ("modal_sdk", "install modal_sdk"),
    ("mcp_clients", "install mcp_clients"),
    ("mcp_everything", "install mcp_everything"),
    ("vendors", "install vendors"),
    ("flue", "install flue"),
];

/// The state that jobs share.
struct Shared {
    built: OnceLock<Vec<Built>>,
    engine: Mutex<Option<Engine>>,
    copies: OnceLock<Copies>,
    scratch: Option<Arc<Scratch>>,
    run: Mutex<Run>,
}

/// The task: all jobs, or those that are named and what they need.
pub fn run(names: &[String]) -> Result<(), String> {
    let began = Instant::now();
    let shared = Shared {
        built: OnceLock::new(),
        engine: Mutex::default(),
        copies: OnceLock::new(),
        scratch: Scratch::new().map(Arc::new),
        run: Mutex::default(),
    };
    let jobs = shared.jobs();
    let jobs = if names.is_empty() { jobs } else { jobs::only(jobs, names)? };
    let mut ended = jobs::run(jobs, &target_directory()?.join("test-logs"))?;
    let of_clients = shared.try_clients_again(&mut ended);
    let Shared { run, engine, copies, .. } = shared;
    let mut run = run.into_inner().unwrap_or_else(PoisonError::into_inner);
    run.try_again();
    run.note_unsteady(of_clients);
    drop((engine, copies));
    print(&ended, began);
    run.print();
    let results = ended.into_iter().map(|job| job.result);
    all_of(results.chain([run.end()]))
}

fn name_of_client(part: &sdks::Part) -> String {
    format!("client {}", part.name)
}

fn print(ended: &[Ended], began: Instant) {
    println!("\n{:<44} {:>8} {:>8}", "phase (they overlap)", "from s", "seconds");
    let mut ended: Vec<&Ended> = ended.iter().collect();
    ended.sort_by_key(|job| job.began);
    for job in ended {
        println!("{:<44} {:>8} {:>8}", job.name, job.began.as_secs(), job.took.as_secs());
    }
    println!("{:<44} {:>8} {:>8}", "all", "", began.elapsed().as_secs());
}

impl Shared {
    /// All jobs. Of those that can begin the first ones do, so what takes longest comes first.
    fn jobs(&self) -> Vec<Job<'_>> {
        let mut jobs = vec![self.build(), apt()];
        jobs.push(Job::new(ENGINE, || self.start_engine()).needs(&["apt"]).waiting());
        jobs.extend(sdks::PARTS.iter().map(|part| {
            let install = || packages::require_for_sdks().and_then(|()| (part.prepare)(&sdks::folder()?));
            Job::new(format!("install {}", part.name), install)
                .needs(&["apt"])
                .shares(part.installer)
                .waiting()
        }));
        jobs.extend(OF_NPM.iter().map(|(target, job)| {
            Job::new(*job, move || self.install_by_npm(target))
                .needs(&["build", "apt"])
                .shares("npm")
                .waiting()
        }));
        let of_ci = || TARGETS.iter().filter(|target| target.tier == Tier::Ci);
        let (on_engine, others): (Vec<_>, Vec<_>) = of_ci().partition(|target| target.on_engine);
        jobs.extend(on_engine.into_iter().map(|target| self.target(target)));
        jobs.extend(sdks::PARTS.iter().map(|part| self.client(part)));
        jobs.extend(others.into_iter().map(|target| self.target(target)));
        if self.has_ordinary_user() {
            jobs.push(Job::new(USER, || self.make_user()).needs(&["build"]));
            jobs.extend(of_ci().filter_map(|target| self.target_as_user(target)));
        }
        if is_root() && has("apt-get") {
            jobs.push(Job::new("install machine", machine::prepare).needs(&["apt"]).waiting());
            let try_limits = || machine::try_limits(self.built()?);
            jobs.push(Job::new("machine", try_limits).needs(&["build", "install machine"]));
        } else {
            println!("     Not made: the virtual machine, which needs root and apt; its tests are left out");
        }
        jobs.push(self.quick());
        jobs.push(Job::new("examples", || self.examples()).needs(&["build"]).shares(CARGO));
        jobs.push(Job::new("example provider", || self.example_provider()).needs(&["build"]).shares(CARGO));
        jobs
    }

    fn build(&self) -> Job<'_> {
        Job::new("build", || {
            let built = programs::built()?;
            self.built.set(built).map_err(|_| "the tests were built twice".to_owned())
        })
    }

    /// The tests inside libraries and programs, and all targets that make no sandboxes.
    fn quick(&self) -> Job<'_> {
        Job::new("quick", || {
            let target_of = |built: &Built| TARGETS.iter().find(|target| target.id() == built.id());
            let is_quick = |built: &&Built| {
                let is_listed = target_of(built).is_some_and(|target| target.tier == Tier::Quick);
                built.kind == Kind::UnitTests || (built.kind == Kind::Tests && is_listed)
            };
            let programs = self.built()?.iter().filter(is_quick);
            // Other jobs run beside these.
            let threads = |built: &Built| target_of(built).map_or(2, |target| target.threads.min(2));
            all_of(programs.map(|built| self.test(as_root(built, threads(built), self.scratch.as_ref()))))
        })
        .needs(&["build"])
    }

    fn target(&self, target: &'static Target) -> Job<'_> {
        let scratch = if target.on_disk { None } else { self.scratch.as_ref() };
        let test = move || self.test(as_root(self.program(target)?, target.threads, scratch));
        sharing(Job::new(target.id(), test).needs(&["build", "apt"]), target, target.on_engine)
    }

    fn client(&self, part: &'static sdks::Part) -> Job<'_> {
        let test = || (part.run)(&self.ground()?);
        let install = format!("install {}", part.name);
        let job = Job::new(name_of_client(part), test).needs(&["build", &install]);
        // It is tried on Docker, too, but makes few containers.
        if part.name == "anvia" { job.needs(&[ENGINE]) } else { job }
    }

    /// Tries again, by itself, each client that failed, as is done with a test. Returns what those
    /// said that passed now; they are no failures any more.
    fn try_clients_again(&self, ended: &mut [Ended]) -> Vec<String> {
        let mut unsteady = Vec::new();
        for job in ended {
            let part = sdks::PARTS.iter().find(|part| name_of_client(part) == job.name);
            let (Some(part), Err(why)) = (part, &job.result) else { continue };
            if job.took == Duration::ZERO {
                continue; // It could not begin.
            }
            say(format_args!("\n     Once more, by itself: {}", job.name));
            match self.ground().and_then(|ground| (part.run)(&ground)) {
                Ok(()) => {
                    unsteady.push(format!("{}\n{why}", job.name));
                    job.result = Ok(());
                }
                Err(again) => job.result = Err(format!("{why}\nand once more: {again}")),
            }
        }
        unsteady
    }

    fn ground(&self) -> Result<sdks::Ground, String> {
        sdks::Ground::new(programs::eyot(self.built()?)?, self.scratch.clone())
    }

    fn has_ordinary_user(&self) -> bool {
        let can = has("runuser") && has("useradd");
        if is_root() && !can {
            println!("     no runuser or useradd here: the tests of sandboxes run as root only");
        }
        is_root() && can
    }

    fn target_as_user(&self, target: &'static Target) -> Option<Job<'_>> {
        let mut arguments = without_soak();
        match target.user {
            User::All => {}
            User::Some(parts) => arguments.extend(parts.iter().map(|part| (*part).to_owned())),
            User::None(_) => return None,
        }
        let name = format!("{} as {USER}", target.id());
        let what = name.clone();
        let test = move || self.test(self.as_user(what, target, arguments)?);
        // They may not ask the Engine, but what it has saved of its images.
        let needs: &[&str] = if target.on_engine { &[USER, ENGINE] } else { &[USER] };
        Some(sharing(Job::new(name, test).needs(needs), target, false))
    }

    fn as_user(&self, name: String, target: &Target, arguments: Vec<String>) -> Result<Program, String> {
        let copies = self.copies.get().ok_or("there is no folder for the ordinary user")?;
        let program = copies.copy(&self.program(target)?.path, &target.id().replace('/', "-"))?;
        let images = if target.on_engine { copies.images()? } else { None };
        let (folder, scratch) = (copies.path.clone(), self.scratch.clone());
        let command = move || {
            let mut test = Command::new("runuser");
            test.args(["-u", USER, "--"]).arg(&program).current_dir(&folder);
            test.env("HOME", format!("/home/{USER}")).env_remove("XDG_STATE_HOME").env_remove("TMPDIR");
            scratch.iter().for_each(|scratch| scratch.set(&mut test));
            test.env("EYOT_BIN", folder.join("eyot")).env("EYOT_SLOWNESS", SLOWNESS);
            test.envs(images.iter().map(|images| ("EYOT_TEST_IMAGES", images)));
            test
        };
        let is_tried_again = target.name != OF_PROTECTIONS;
        Ok(Program { name, command: Arc::new(command), arguments, threads: target.threads, is_tried_again })
    }

    /// Runs the examples in the documentation of the libraries, and the program `examples/plot.rs`.
    /// The tests of the clients run the same job in Python and TypeScript.
    fn examples(&self) -> Result<(), String> {
        let mut examples = cargo();
        self.scratch.iter().for_each(|scratch| scratch.set(&mut examples));
        run_program(examples.args(ARGUMENTS).arg("--doc"))?;
        self.plot()
    }

    /// Runs `examples/plot.rs` and looks at its picture. It stays in the target folder.
    fn plot(&self) -> Result<(), String> {
        let folder = target_directory()?.join("plot");
        fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
        let project = root().join("examples/project");
        run_program(Command::new("cp").arg("-R").arg(project).arg(&folder))?;
        let mut plot = Command::new(programs::program_named(self.built()?, "plot")?);
        self.scratch.iter().for_each(|scratch| scratch.set(&mut plot));
        run_program(plot.current_dir(&folder))?;
        let picture = fs::read(folder.join("plot.png")).map_err(|error| format!("read plot.png: {error}"))?;
        if picture.starts_with(b"\x89PNG") { Ok(()) } else { Err("plot.png is no picture".to_owned()) }
    }

    /// Builds and runs the tests of the example of a provider, as those who wrote it outside of this repository do.
    fn example_provider(&self) -> Result<(), String> {
        let built = programs::built_example_provider()?;
        let tests: Vec<_> = built.iter().filter(|built| built.is_test()).collect();
        if !tests.iter().any(|test| test.name == "conformance") {
            return Err("the example of a provider has no test target `conformance`".to_owned());
        }
        all_of(tests.into_iter().map(|test| self.test(as_root(test, 3, self.scratch.as_ref()))))
    }

    fn start_engine(&self) -> Result<(), String> {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Engine::ready(self.scratch.as_deref());
        Ok(())
    }

    /// Installs the npm packages of a target without running its tests. A test that waits for the network would block
    /// a slot that another test could use.
    fn install_by_npm(&self, name: &str) -> Result<(), String> {
        let target = TARGETS.iter().find(|target| target.name == name);
        let built = self.program(target.ok_or("there is no such target")?)?;
        let mut install = (as_root(built, 1, None).command)();
        run_program(install.args(["--exact", "no test has this name"]))
    }

    fn make_user(&self) -> Result<(), String> {
        if Command::new("id").arg(USER).output().is_ok_and(|found| !found.status.success()) {
            run_program(Command::new("useradd").args(["--create-home", "--shell", "/bin/bash", USER]))?;
        }
        let copies = Copies::new()?;
        copies.copy(&programs::eyot(self.built()?)?, "eyot")?;
        self.copies.set(copies).map_err(|_| "the ordinary user's folder was made twice".to_owned())
    }

    fn built(&self) -> Result<&Vec<Built>, String> {
        self.built.get().ok_or_else(|| "nothing is built".to_owned())
    }

    fn program(&self, target: &Target) -> Result<&Built, String> {
        let id = target.id();
        let found = self.built()?.iter().find(|built| built.kind == Kind::Tests && built.id() == id);
        found.ok_or_else(|| format!("cargo built no test target `{id}`"))
    }

    /// Runs one test program, and adds what it came to to the rest.
    fn test(&self, program: Program) -> Result<(), String> {
        say(format_args!("\n     Running {}", program.name));
        let mut run = Run::default();
        let done = run.try_all(program);
        self.run.lock().unwrap_or_else(PoisonError::into_inner).merge(run);
        done
    }
}

/// A test program as the user who runs this. It writes to the disk where there is no scratch folder.
pub fn as_root(built: &Built, threads: usize, scratch: Option<&Arc<Scratch>>) -> Program {
    let (path, package, scratch) = (built.path.clone(), built.package.clone(), scratch.cloned());
    let command = move || {
        let mut test = Command::new(&path);
        scratch.iter().for_each(|scratch| scratch.set(&mut test));
        test.current_dir(&package).env("EYOT_SLOWNESS", SLOWNESS);
        test
    };
    let is_tried_again = built.name != OF_PROTECTIONS;
    Program {
        name: built.id(),
        command: Arc::new(command),
        arguments: without_soak(),
        threads,
        is_tried_again,
    }
}

/// A target that works on the Engine waits for it, and for every other that works there.
/// Protections are tried by one program at a time, because they use up what the host has.
fn sharing<'a>(job: Job<'a>, target: &Target, is_on_engine: bool) -> Job<'a> {
    match target.name {
        _ if is_on_engine => job.needs(&[ENGINE]).shares(ENGINE),
        OF_PROTECTIONS => job.shares(LIMITS),
        name => match OF_NPM.iter().find(|(target, _)| *target == name) {
            Some((_, install)) => job.needs(&[*install]),
            None => job,
        },
    }
}

fn apt<'a>() -> Job<'a> {
    let install = || {
        packages::install_for_tests();
        Ok(())
    };
    Job::new("apt", install).waiting()
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

    /// The Engine's images, as an archive.
    fn images(&self) -> Result<Option<PathBuf>, String> {
        let images = self.path.join("images.tar");
        Ok(images::save_for_tasks(&images)?.then_some(images))
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: remove {}: {error}", self.path.display());
        }
    }
}
