//! The tests that take too long for every change: floods at full size, all variants of Docker's
//! conformance, the load test, the fuzzer and the virtual machine. They run before an issue is
//! closed and before a release.

use std::sync::Arc;

use crate::cluster::TestCluster;
use crate::engine::Engine;
use crate::phases::Phases;
use crate::process::{all_of, is_root};
use crate::programs::{self, Built};
use crate::scratch::Scratch;
use crate::test::as_root;
use crate::tested::{OF_SOAK, Program, Run};
use crate::{fuzz, machine, packages, sdks};

/// A part of the soak: a name for the command line, and what it runs.
struct Part {
    name: &'static str,
    work: Work,
}

/// Runs a part.
enum Work {
    /// Test targets of the workspace, at full size.
    Tests(&'static [&'static str]),
    /// A test target on a Kubernetes cluster: those whose cases run side by side, then those that have it alone.
    OnCluster(&'static str),
    /// A task with these arguments.
    Task(fn(&[String]) -> Result<(), String>, &'static [&'static str]),
}

const PARTS: [Part; 11] = [
    Part { name: "threats", work: Work::Tests(&["probes/threats"]) },
    Part { name: "floods", work: Work::Tests(&["guest/program_exec", "providers/runaway"]) },
    Part { name: "kills", work: Work::Tests(&["native/pool", "engine/processes", "agent/durable"]) },
    Part { name: "docker", work: Work::Tests(&["providers/docker"]) },
    Part { name: "images", work: Work::Tests(&["cli/registry"]) },
    Part { name: "load", work: Work::Tests(&["cli/load", "cli/cli", "agent/runtime"]) },
    Part { name: "document", work: Work::Task(sdks::ask_at_length, &[]) },
    Part { name: "node", work: Work::Task(sdks::run_on_newest_node, &[]) },
    Part { name: "fuzz", work: Work::Task(fuzz::run, &["--seconds", "60"]) },
    Part { name: "cluster", work: Work::OnCluster("providers/kubernetes") },
    Part { name: "machine", work: Work::Task(machine::run, &machine::OF_SOAK) },
];

/// Runs all parts, or those that are named.
pub fn run(names: &[String]) -> Result<(), String> {
    let chosen = choose(names)?;
    if !is_root() {
        eprintln!("xtask: not root: tests that need root show as ignored, and the machine can't be made");
    }
    packages::install()?;
    let needs_engine = chosen.iter().any(|part| part.name == "docker");
    let has_tests = chosen.iter().any(|part| matches!(part.work, Work::Tests(_) | Work::OnCluster(_)));
    let built = if has_tests { programs::built()? } else { Vec::new() };
    let engine = needs_engine.then(|| Engine::ready(Scratch::new().as_ref())).flatten();
    let mut phases = Phases::default();
    let results: Vec<_> =
        chosen.iter().map(|part| phases.time(part.name, || part.work.run(part.name, &built))).collect();
    drop(engine);
    phases.print();
    all_of(results)
}

fn choose(names: &[String]) -> Result<Vec<&'static Part>, String> {
    if let Some(unknown) = names.iter().find(|name| !PARTS.iter().any(|part| part.name == **name)) {
        let known = PARTS.map(|part| part.name).join(", ");
        return Err(format!("`soak` has no part `{unknown}`; its parts are: {known}"));
    }
    let is_chosen = |part: &&Part| names.is_empty() || names.iter().any(|name| name == part.name);
    Ok(PARTS.iter().filter(is_chosen).collect())
}

impl Work {
    fn run(&self, name: &str, built: &[Built]) -> Result<(), String> {
        match self {
            Self::Task(task, arguments) => {
                let arguments: Vec<String> =
                    arguments.iter().map(|argument| (*argument).to_owned()).collect();
                task(&arguments).map_err(|error| format!("{name}: {error}"))
            }
            Self::OnCluster(target) => {
                let program = built.iter().find(|built| built.id() == *target);
                let program = program.ok_or_else(|| format!("{name}: cargo names no target `{target}`"))?;
                on_cluster(program).map_err(|error| format!("{name}: {error}"))
            }
            Self::Tests(targets) => {
                let programs = built.iter().filter(|built| targets.contains(&built.id().as_str()));
                let mut run = Run::default();
                let done = all_of(programs.map(|built| {
                    // Every test of the soak is ignored otherwise, and has this in its name. A
                    // failure is looked at, not tried again.
                    let arguments = vec!["--ignored".to_owned(), OF_SOAK.to_owned()];
                    run.try_all(Program { arguments, is_tried_again: false, ..as_root(built, 2, None) })
                }));
                run.print();
                all_of([done, run.end()]).map_err(|error| format!("{name}: {error}"))
            }
        }
    }
}

/// The cases that run side by side, and those that have the cluster for themselves.
const ON_CLUSTER: [(&str, usize); 2] = [("cluster::", 4), ("alone::", 1)];

fn on_cluster(built: &Built) -> Result<(), String> {
    let cluster = Arc::new(TestCluster::start()?);
    let mut run = Run::default();
    let done = all_of(ON_CLUSTER.map(|(cases, threads)| {
        let (cluster, path, package) = (Arc::clone(&cluster), built.path.clone(), built.package.clone());
        let command = move || {
            let mut test = cluster.command(&path);
            test.current_dir(&package).env("EYOT_SLOWNESS", "2");
            test
        };
        let arguments = vec![cases.to_owned()];
        let (name, is_tried_again) = (built.id(), false);
        run.try_all(Program { name, command: Arc::new(command), arguments, threads, is_tried_again })
    }));
    run.print();
    all_of([done, run.end()])
}
