//! Runs whose process is killed and that the next process resumes.
//!
//! The test program is also the process that is killed: see [`child`].

mod child;
mod killing_store;
mod scenario;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use eyot_agent::{AgentEvent, AgentEventKind, AgentStore, EngineStore, RunFilter, RunStatus};
use eyot_engine::store::Store;
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::Signal;
use serde_json::Value;

use child::{CHILD, Moment};

fn main() {
    if let Ok(role) = std::env::var(CHILD) {
        child::play(&role);
        return;
    }
    let trials = vec![
        Trial::test("a_run_that_is_killed_before_any_of_its_steps_goes_on_and_repeats_nothing", || {
            killed_anywhere(Moment::Before)
        }),
        Trial::test("soak::a_run_that_is_killed_behind_any_of_its_steps_goes_on_and_repeats_nothing", || {
            killed_anywhere(Moment::After)
        })
        .with_ignored_flag(true),
        Trial::test("a_run_that_is_killed_again_and_again_comes_to_its_end", || killed_often(0x5eed, 3)),
        Trial::test("soak::a_run_that_is_killed_again_and_again_comes_to_its_end", || {
            killed_often(0x50a4, 100)
        })
        .with_ignored_flag(true),
        Trial::test(
            "a_handler_that_asks_for_something_else_ends_its_run_as_nondeterministic",
            another_handler,
        ),
        Trial::test("a_run_has_one_owner_at_a_time", one_owner),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

type Check = Result<(), Failed>;

/// The fewest notes that the run writes, each in a commit of its own.
const FEWEST_COMMITS: u64 = 80;

/// More commits than the run makes.
const MOST_COMMITS: u64 = 1_000;

/// The most processes that one run is given.
const MAX_PROCESSES: usize = 200;

/// Kills the process of a run at every commit; another process then goes on.
fn killed_anywhere(moment: Moment) -> Check {
    let whole = Folder::new()?;
    let commits = whole.child("run", None)?.ok_or("the run without a kill was killed")?;
    let undisturbed = whole.check("without a kill")?;
    if commits < FEWEST_COMMITS {
        return Err(format!("the run made {commits} commits only").into());
    }
    for number in 0..MOST_COMMITS {
        let folder = Folder::new()?;
        let what = format!("killed {moment:?} commit {number}");
        let was_killed = folder.child("run", Some((moment, number)))?.is_none();
        if was_killed {
            folder.child("resume", None)?;
        }
        folder.check(&what)?.is_like(&undisturbed, &what)?;
        if !was_killed {
            break;
        }
        if number + 1 == MOST_COMMITS {
            return Err(format!("{what}: there were more commits than that").into());
        }
    }
    Ok(())
}

/// Kills each process after a few more commits. The numbers come from a seed.
fn killed_often(mut seed: u64, rounds: usize) -> Check {
    let whole = Folder::new()?;
    whole.child("run", None)?.ok_or("the run without a kill was killed")?;
    let undisturbed = whole.check("without a kill")?;
    for round in 0..rounds {
        let what = format!("round {round}");
        let folder = Folder::new()?;
        let mut role = "run";
        let mut is_done = false;
        for _ in 0..MAX_PROCESSES {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // More than a turn of the model takes: a turn that is cut is asked for again from its beginning.
            let number = 1 + (seed >> 33) % 30;
            is_done = folder.child(role, Some((Moment::After, number)))?.is_some();
            if is_done {
                break;
            }
            role = "resume";
        }
        if !is_done {
            return Err(format!("{what}: {MAX_PROCESSES} processes were not enough").into());
        }
        folder.check(&what)?.is_like(&undisturbed, &what)?;
    }
    Ok(())
}

fn another_handler() -> Check {
    let folder = Folder::new()?;
    folder.child("run", Some((Moment::After, 12)))?;
    folder.child("resume-other", None)?;
    let run = folder.run()?;
    if run.status != RunStatus::Errored || run.error_name.as_deref() != Some("nondeterministic") {
        return Err(format!("it ended as {:?}, {:?}", run.status, run.error_name).into());
    }
    Ok(())
}

/// A second process finds nothing to resume while the first one lives.
fn one_owner() -> Check {
    let folder = Folder::new()?;
    folder.child("run-and-ask-another", None)?;
    folder.check("beside another process").map(drop)
}

/// A state folder, and what the tools of its run did.
struct Folder {
    folder: tempfile::TempDir,
}

/// The parts of a stored run that the tests check.
struct MemoryRun {
    status: RunStatus,
    error_name: Option<String>,
    result: Value,
    /// The operations, with the number of their start and end events.
    operations: Vec<(String, usize, usize)>,
    events: Vec<AgentEvent>,
}

impl MemoryRun {
    /// Checks that it did the same work as the other one, with the same result.
    fn is_like(&self, other: &Self, what: &str) -> Check {
        // A command that was interrupted is an error, which the handler goes on from.
        let without_code = |result: &Value| {
            let mut result = result.clone();
            result["code"] = Value::Null;
            result
        };
        if self.operations != other.operations {
            return Err(format!("{what}: other operations: {:?}", self.operations).into());
        }
        if without_code(&self.result) != without_code(&other.result) {
            return Err(format!("{what}: another result: {}", self.result).into());
        }
        Ok(())
    }
}

impl Folder {
    fn new() -> Result<Self, Failed> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Plays a role in a process of its own. Returns the number of its commits, or `None` if it was killed.
    fn child(&self, role: &str, kill: Option<(Moment, u64)>) -> Result<Option<u64>, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(CHILD, role).env(child::FOLDER, self.path());
        if let Some((moment, number)) = kill {
            command.env(child::KILL, format!("{} {number}", moment.name()));
        }
        let output = command.output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        match (output.status.code(), kill) {
            (Some(0), _) => Ok(Some(printed.trim().parse()?)),
            (None, Some(_)) if output.status.signal() == Some(Signal::KILL.as_raw()) => Ok(None),
            (code, _) => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("{role} ended with {code:?}: {printed}{said}").into())
            }
        }
    }

    /// Returns the only run.
    fn run(&self) -> Result<MemoryRun, Failed> {
        let store = EngineStore::new(Store::open(self.path().join("eyot.db"))?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let record = store.runs(RunFilter::default()).await?.pop().ok_or("the run is lost")?;
            let events = store.events(&record.run_id, 0, 100_000).await?;
            let operations = operations(&events);
            let error_name = record.error.map(|error| error.name);
            Ok(MemoryRun { status: record.status, error_name, result: record.result, operations, events })
        })
    }

    /// Checks that the run came to its end, that nothing was done twice, and that its events have no gap and no duplicate.
    fn check(&self, what: &str) -> Result<MemoryRun, Failed> {
        let run = self.run()?;
        let problems = [
            (run.status != RunStatus::Completed)
                .then(|| format!("it ended as {:?}: {:?}", run.status, run.error_name)),
            numbers(&run.events),
            pairs(&run.events),
            self.done(&run.events)?,
        ];
        match problems.into_iter().flatten().next() {
            None => Ok(run),
            Some(problem) => {
                let kinds: Vec<&str> = run.events.iter().map(|event| event.kind.name()).collect();
                Err(format!("{what}: {problem}\n{kinds:?}").into())
            }
        }
    }

    /// Each note that was answered was written once, and each other one at most once. Returns what is not so.
    fn done(&self, events: &[AgentEvent]) -> Result<Option<String>, Failed> {
        let done = std::fs::read_to_string(self.path().join(scenario::DONE))?;
        let mut calls: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for event in events {
            let operation = event.operation_id.as_deref().unwrap_or_default();
            match &event.kind {
                AgentEventKind::ToolStart { tool_name, tool_call_id, args } if tool_name == "note" => {
                    let line = args["line"].as_str().unwrap_or_default();
                    calls.insert((operation, tool_call_id), line);
                }
                AgentEventKind::ToolCall { tool_name, tool_call_id, is_error, .. } if tool_name == "note" => {
                    let line = calls.remove(&(operation, tool_call_id)).ok_or("a call ended twice")?;
                    let times = done.lines().filter(|written| *written == line).count();
                    if times > 1 || (times == 0 && !is_error) {
                        return Ok(Some(format!("the tool call {line} was carried out {times} times")));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

fn numbers(events: &[AgentEvent]) -> Option<String> {
    let wrong = events.iter().enumerate().find(|(place, event)| event.event_index != *place as u64);
    wrong.map(|(place, event)| format!("event {} stands at {place}", event.event_index))
}

/// Checks that everything that begins also ends, exactly once.
fn pairs(events: &[AgentEvent]) -> Option<String> {
    let mut open: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for event in events {
        let operation = event.operation_id.clone().unwrap_or_default();
        let task = event.task_id.clone().unwrap_or_default();
        let (name, is_end) = match &event.kind {
            AgentEventKind::RunStart { .. } => ("run".to_owned(), false),
            AgentEventKind::RunEnd { .. } => ("run".to_owned(), true),
            AgentEventKind::OperationStart { .. } => (format!("operation {operation}"), false),
            AgentEventKind::Operation { .. } => (format!("operation {operation}"), true),
            AgentEventKind::ToolStart { tool_call_id, .. } => {
                (format!("tool {operation} {tool_call_id}"), false)
            }
            AgentEventKind::ToolCall { tool_call_id, .. } => {
                (format!("tool {operation} {tool_call_id}"), true)
            }
            AgentEventKind::TaskStart { .. } => (format!("task {task}"), false),
            AgentEventKind::Task { .. } => (format!("task {task}"), true),
            AgentEventKind::Log { message, .. } => (format!("log {message}"), false),
            _ => continue,
        };
        let (begun, ended) = open.entry(name).or_default();
        *(if is_end { ended } else { begun }) += 1;
    }
    let is_wrong = |name: &str, counts: (usize, usize)| match name.split(' ').next() {
        Some("log") => counts != (1, 0),
        _ => counts != (1, 1),
    };
    let wrong = open.into_iter().find(|(name, counts)| is_wrong(name, *counts));
    wrong.map(|(name, (begun, ended))| format!("{name} began {begun} times and ended {ended} times"))
}

/// Returns the operations of the run's own sessions, without their ids, which differ between runs.
fn operations(events: &[AgentEvent]) -> Vec<(String, usize, usize)> {
    let mut found: Vec<(String, String, usize, usize)> = Vec::new();
    for event in events.iter().filter(|event| event.parent_session.is_none()) {
        let id = event.operation_id.clone().unwrap_or_default();
        match &event.kind {
            AgentEventKind::OperationStart { operation_kind } => {
                found.push((id, operation_kind.as_str().to_owned(), 1, 0));
            }
            AgentEventKind::Operation { .. } => {
                found.iter_mut().filter(|(known, ..)| *known == id).for_each(|(.., ended)| *ended += 1);
            }
            _ => {}
        }
    }
    found.into_iter().map(|(_, kind, begun, ended)| (kind, begun, ended)).collect()
}
