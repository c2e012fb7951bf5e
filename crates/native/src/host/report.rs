//! The report on the host: a sandbox is made and removed as a test, and each subject gets its
//! finding.

use std::time::{Duration, Instant};

use eyot::{Error, IdentityMap, Isolation, Lifecycle, Result, Sandbox, SandboxSpec};
use serde::Serialize;

use super::cause::{self, Cause, Severity};
use super::cgroup::Cgroups;
use super::facts::Facts;
use super::failure::SetupFailure;
use super::finding::{Finding, Status};
use super::{cgroup, state_folder};
use crate::cgroup::CgroupSupport;
use crate::options::NativeOptions;
use crate::provider::NativeProvider;

/// The report on a host.
#[derive(Debug, Serialize)]
pub struct Report {
    /// A sandbox could be made.
    pub works: bool,
    /// The findings, one or more for each subject.
    pub findings: Vec<Finding>,
    /// The facts about the host.
    pub facts: Facts,
}

/// Writes the sentence of a subject where nothing is wrong.
type Telling = fn(&Facts) -> String;

/// The subjects in the order of the report, each with its sentence for a host where nothing is
/// wrong.
const SUBJECTS: [(&str, Telling); 12] = [
    ("kernel", |facts| format!("Linux {} on {}", facts.kernel, facts.machine)),
    ("user-namespaces", |_| "can be made".to_owned()),
    ("ids", |facts| {
        let users =
            if facts.uid == 0 { "a range of users of its own" } else { "one user, which is you outside" };
        format!("a sandbox has {users}")
    }),
    ("mounts", |_| "/proc and overlays can be mounted".to_owned()),
    ("seccomp", |_| "filters can be installed".to_owned()),
    ("landlock", |facts| format!("ABI {}", facts.landlock_abi)),
    ("state-folder", state_folder::all_well),
    ("open-files", |facts| match facts.open_files {
        Some(most) => format!("{most} at the most"),
        None => "as many as are wanted".to_owned(),
    }),
    ("processes", |_| "can be started".to_owned()),
    ("memory-files", |_| "a program in memory can be run".to_owned()),
    ("devices", |_| "are there".to_owned()),
    ("inotify", |_| "enough instances are left".to_owned()),
];

/// Examines the host, and makes and removes a sandbox in the state folder of these options. A state
/// folder that does not exist is made.
///
/// # Errors
/// `Invalid` if the simulated facts have the wrong shape.
pub async fn diagnose(options: NativeOptions) -> Result<Report> {
    let trial = Trial::make(&options).await;
    let gathered = Facts::gather(&options.state, options.simulated.as_ref());
    let mut facts = gathered.map_err(|error| Error::invalid("simulated", error))?;
    if let (Ok(made), None) = (&trial, &facts.cgroups.controllers) {
        facts.cgroups = Cgroups::of(&made.cgroups, facts.uid);
    }
    let mut findings = vec![tried(&trial)];
    let failure = trial.as_ref().err().and_then(SetupFailure::of);
    let explanation = failure.and_then(|failure| cause::explain(&facts, &failure)).map(|(cause, _)| cause);
    for (subject, all_well) in SUBJECTS {
        findings.extend(about(subject, all_well, &facts, trial.is_ok(), explanation));
    }
    findings.push(cgroup::finding(&facts));
    findings.push(disk(NativeProvider::check_disk()));
    findings.extend(container(&facts));
    findings.push(peers(&facts));
    Ok(Report { works: trial.is_ok(), findings, facts })
}

/// The test sandbox, after it was made and removed.
struct Trial {
    took: Duration,
    isolation: Isolation,
    cgroups: CgroupSupport,
}

impl Trial {
    async fn make(options: &NativeOptions) -> Result<Self> {
        let provider = NativeProvider::new(options.clone())?;
        let began = Instant::now();
        // Should this process be killed now, the sandbox ends by itself.
        let lifecycle = Lifecycle { ttl_ms: Some(60_000), ..Lifecycle::default() };
        let spec = SandboxSpec { lifecycle, ..SandboxSpec::default() };
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let isolation = sandbox.isolation().clone();
        sandbox.destroy().await?;
        let took = began.elapsed();
        Ok(Self { took, isolation, cgroups: provider.cgroup_support().await? })
    }
}

fn tried(trial: &Result<Trial>) -> Finding {
    let found = |status, why, fix| Finding { id: "sandbox", cause: None, status, why, fix };
    match trial {
        Ok(made) => {
            let ids = match made.isolation.identity {
                Some(IdentityMap::Range) => ", with a root of its own inside",
                _ => "",
            };
            found(Status::Ok, format!("made and removed in {} ms{ids}", made.took.as_millis()), None)
        }
        Err(error) => found(Status::Error, error.to_string(), error.hint().map(str::to_owned)),
    }
}

/// Lists everything that is wrong with one subject: what the facts show, and the cause of the
/// failure. If nothing is wrong, says so. A cause that should prevent sandboxes is only a warning
/// if the test sandbox could be made, and any cause is an error if it explains why not.
fn about(
    subject: &'static str,
    all_well: Telling,
    facts: &Facts,
    works: bool,
    explanation: Option<&Cause>,
) -> Vec<Finding> {
    let explains = |cause: &Cause| explanation.is_some_and(|explaining| std::ptr::eq(explaining, cause));
    let status = |cause: &Cause| {
        let prevents = (cause.severity == Severity::Error && !works) || explains(cause);
        if prevents { Status::Error } else { Status::Warn }
    };
    let of_subject = cause::all().filter(|cause| cause.subject == subject);
    let amiss = of_subject.filter(|cause| !cause.needs_failure || explains(cause)).filter_map(|cause| {
        let reason = (cause.shows)(facts)?;
        let (cause, status) = (Some(cause.name), status(cause));
        Some(Finding { id: subject, cause, status, why: reason.why, fix: reason.fix })
    });
    let mut findings: Vec<Finding> = amiss.collect();
    if findings.is_empty() {
        findings.push(well(subject, all_well(facts), works));
    }
    findings
}

/// Makes the finding of a subject with no known problem. If no sandbox could be made, the subjects
/// that only the test shows are not reported as working.
fn well(subject: &'static str, why: String, works: bool) -> Finding {
    let tried_only = ["user-namespaces", "mounts", "seccomp", "processes", "memory-files"];
    if !works && tried_only.contains(&subject) {
        let why = "nothing is known to be amiss".to_owned();
        Finding { id: subject, cause: None, status: Status::Info, why, fix: None }
    } else {
        Finding { id: subject, cause: None, status: Status::Ok, why, fix: None }
    }
}

fn container(facts: &Facts) -> Option<Finding> {
    let container = facts.container?;
    let name = serde_json::to_value(container).ok()?.as_str()?.to_owned();
    let why = format!("this looks like a container ({name})");
    Some(Finding { id: "container", cause: None, status: Status::Info, why, fix: None })
}

/// Makes the finding on disk limits, which need more than others. Nobody has one unless asked.
fn disk(checked: std::result::Result<(), String>) -> Finding {
    let (status, why, fix) = match checked {
        Ok(()) => (Status::Ok, "--disk is enforced, by an ext4 of that size".to_owned(), None),
        Err(reason) => {
            let fix = "run Eyot as root, with the package e2fsprogs, where it may open /dev/loop-control and the loop devices (a container has to be given them)";
            (Status::Info, format!("--disk is not enforced here: {reason}"), Some(fix.to_owned()))
        }
    };
    Finding { id: "disk", cause: None, status, why, fix }
}

fn peers(facts: &Facts) -> Finding {
    let (there, missing): (Vec<_>, Vec<_>) = facts.peers.iter().partition(|(_, path)| path.is_some());
    let names = |peers: Vec<(&String, &Option<String>)>| {
        let names: Vec<&str> = peers.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let why = format!(
        "not needed, `eyot bench` compares with them; here: {}; not here: {}",
        names(there),
        names(missing)
    );
    Finding { id: "other-programs", cause: None, status: Status::Info, why, fix: None }
}
