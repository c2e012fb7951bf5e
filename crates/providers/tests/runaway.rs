//! Scripts in memory that would run away: each ends by its deadline at its caller, and its thread
//! soon after; the process stays healthy.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyot::{ExecOptions, Outcome, Result, Sandbox, SandboxSpec};
use eyot_providers::memory::MemoryProvider;
use futures_util::future::join_all;

const DEADLINE: Duration = Duration::from_millis(500);
/// The wait that a usual machine is given. How late a quiet one is stands in docs/performance.md.
const USUAL_PATIENCE: Duration = Duration::from_secs(5);

/// Of the scripts, the first ones and a part of the others are tried alone for every change. The soak tries all.
fn is_tried_always(index: usize) -> bool {
    index < 17 || index.is_multiple_of(4)
}

/// The lock that makes each test run alone, because the tests count the threads of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// The wait that this machine is given: it may be slower than usual by the factor in `EYOT_SLOWNESS`.
fn patience() -> Duration {
    let slowness = std::env::var("EYOT_SLOWNESS").ok().and_then(|said| said.parse().ok());
    USUAL_PATIENCE * slowness.unwrap_or(1)
}

const SCRIPTS: [(&str, &str); 41] = [
    ("a loop without end", "while :; do :; done"),
    ("a loop of programs", "while true; do echo x | tr x y >/dev/null; done"),
    ("a fork bomb", ":(){ :|:& };:; wait"),
    ("jobs without end", "while :; do sleep 1000 & done"),
    ("ten gibibytes", "yes | head -c 10737418240"),
    ("ten gibibytes into a file", "yes > file"),
    ("ten gibibytes into a variable", "x=$(yes)"),
    ("deep recursion", "f() { f; }; while :; do f 2>/dev/null; done"),
    (
        "deep recursion of shells",
        "f() { bash -c \"$1\" _ \"$1\"; }; while :; do (((1))); ( ( ( ( : ) ) ) ); done",
    ),
    ("a bomb for regular expressions", "s=$(printf 'a%.0s' {1..40}); while :; do [[ $s =~ (a+)+b ]]; done"),
    ("a bomb for grep -P", "printf 'a%.0s' {1..40} > f; while :; do grep -qP '(a+)+b' f; done"),
    ("a bomb for sed", "printf 'a%.0s' {1..5000} > f; while :; do sed -E 's/(a*)*b//' f >/dev/null; done"),
    (
        "a huge glob",
        "mkdir -p a/{1..40}/{1..40}; while :; do echo **/* */*/../../*/*/../../*/* >/dev/null; done",
    ),
    ("a string that doubles", "x=x; while :; do x=$x$x; done"),
    ("a string that grows", "x=; while :; do x=$x.; done"),
    ("braces without end", "echo {1..99999999} >/dev/null"),
    ("a sequence without end", "seq 1 99999999999 >/dev/null"),
    ("awk without end", "awk 'BEGIN { while (1) i++ }'"),
    (
        "deep recursion of awk",
        "while :; do awk 'function f(n) { return f(n + 1) } BEGIN { f(1) }' 2>/dev/null; done",
    ),
    (
        "a string of awk that doubles",
        "while :; do awk 'BEGIN { x = \"x\"; while (1) x = x x }' 2>/dev/null; done",
    ),
    ("an array of awk that grows", "awk 'BEGIN { while (1) a[i++] = i }'; while :; do :; done"),
    ("output of awk without end", "awk 'BEGIN { while (1) print | \"cat\" }'; while :; do :; done"),
    ("a child of awk without end", "awk 'BEGIN { \"yes\" | getline; while (1) system(\"true\") }'"),
    ("jq without end", "jq -n 'repeat(1)' >/dev/null"),
    ("jq without output", "jq -n 'def f: f; f'"),
    ("jq that counts", "jq -n 'reduce range(1e18) as $x (0; . + 1)'"),
    ("gzip without end", "yes | gzip >/dev/null"),
    ("tar without end", "cat /dev/zero | tar t -i; while :; do :; done"),
    ("sed without end", "echo x | sed ':a;s/x/x/;ta'"),
    ("a number without end", "echo '2^2^30' | bc"),
    ("an input without end for xargs", "yes | xargs >/dev/null"),
    ("a word without end for xargs", "yes | tr -d '\\n' | xargs -n1 echo >/dev/null"),
    ("a child for each line without end", "yes | xargs -n1 true"),
    ("a loop within a timeout within a timeout", "timeout 1000 timeout 2000 bash -c 'while :; do :; done'"),
    (
        "timeouts that end late loops",
        "while :; do timeout 0.1 timeout 1000 awk 'BEGIN { while (1) i++ }'; done",
    ),
    (
        "children in children",
        "s='while :; do timeout 1000 bash -c \"$1\" _ \"$1\"; done'; timeout 1000 bash -c \"$s\" _ \"$s\" 2>/dev/null",
    ),
    ("children side by side", "while :; do timeout 1000 sleep 1000 & yes | timeout 1000 sort & done"),
    (
        "a bomb for tac",
        "head -c 1000000 /dev/zero | tr '\\0' a >f; tac -rs 'a.*b\\|a' f; while :; do :; done",
    ),
    (
        "many keys for long lines",
        "head -c 2000000 /dev/zero >a; { cat a; echo; cat a; } >f; sort $(yes ' -k1f' | head -n 9000) f; while :; do :; done",
    ),
    (
        "one line of 256 MiB",
        "truncate -s 256M f; fold -w1 f & rev f & fmt f & sort -z f & wait; while :; do :; done",
    ),
    ("an array without end", "a=(); i=0; while :; do a[i++]=$i; done"),
];

async fn run(provider: &MemoryProvider, script: &str) -> Result<(Outcome, Duration)> {
    run_within(provider, script, DEADLINE).await
}

async fn run_within(
    provider: &MemoryProvider,
    script: &str,
    deadline: Duration,
) -> Result<(Outcome, Duration)> {
    let sandbox = Sandbox::create(provider, SandboxSpec::default()).await?;
    let timeout_ms = u64::try_from(deadline.as_millis()).ok();
    let began = Instant::now();
    let result = sandbox.exec(script, ExecOptions { timeout_ms, ..ExecOptions::default() }).await?;
    let took = began.elapsed();
    sandbox.destroy().await?;
    Ok((result.outcome, took))
}

fn runtime() -> tokio::runtime::Runtime {
    stand_back();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap_or_else(
        |error| {
            panic!("the test has no runtime: {error}");
        },
    )
}

/// Lets other programs go first: these scripts take all processors that they get.
#[cfg(target_os = "linux")]
fn stand_back() {
    if let Err(error) = rustix::process::nice(19) {
        println!("the scripts run at the usual priority: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn stand_back() {}

/// Counts the threads that run commands.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "eyot-memory").count()
}

#[cfg(not(target_os = "linux"))]
fn threads() -> usize {
    0
}

/// The time that this process has had of the processors.
#[cfg(target_os = "linux")]
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn worked() -> Duration {
    Duration::MAX
}

/// Waits for the end of all threads that run commands; says how long that took. These scripts stand back behind other
/// programs, so what they are given is patience for their work, and ten times that in all.
fn ended(patience: Duration) -> Option<Duration> {
    let (began, before) = (Instant::now(), worked());
    while threads() > 0 {
        let (took, work) = (began.elapsed(), worked().saturating_sub(before));
        if took > patience && (work > patience || took > patience * 10) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(began.elapsed())
}

#[test]
fn a_script_that_runs_away_ends_by_its_deadline_and_leaves_no_thread() {
    let tried = SCRIPTS.iter().enumerate().filter(|(index, _)| is_tried_always(*index));
    all_end(tried.map(|(_, script)| script));
}

mod soak {
    use super::*;

    #[test]
    #[ignore = "cargo xtask soak floods"]
    fn every_script_that_runs_away_ends_by_its_deadline_and_leaves_no_thread() {
        all_end(SCRIPTS.iter());
    }
}

fn all_end<'a>(scripts: impl Iterator<Item = &'a (&'a str, &'a str)>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = runtime();
    let provider = MemoryProvider::default();
    let mut wrong = Vec::new();
    for (name, script) in scripts {
        match runtime.block_on(run(&provider, script)) {
            Ok((outcome, took)) => {
                let left = ended(patience());
                println!("{name}: {outcome:?} after {took:?}, its thread after {left:?}");
                if took > DEADLINE + patience() || left.is_none() {
                    wrong.push(format!("{name}: {outcome:?} after {took:?}, its thread after {left:?}"));
                }
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn fifty_of_them_at_once_leave_the_process_healthy() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = runtime();
    let provider = MemoryProvider::default();
    let all = (0..50).map(|index| run(&provider, SCRIPTS[index % SCRIPTS.len()].1));
    let ended_all = runtime.block_on(join_all(all));
    assert!(ended_all.iter().all(Result::is_ok), "{ended_all:?}");
    // While the threads of the scripts still run, a command may miss its deadline on two processors.
    assert!(ended(patience() * 2).is_some(), "{} threads are left", threads());
    let healthy = runtime.block_on(run_within(&provider, "echo healthy", patience()));
    assert!(matches!(healthy, Ok((Outcome::Exited(0), _))), "{healthy:?}");
}
