//! Jobs that run side by side. Many of them wait more than they compute: for the network, for a
//! container, for an event. A job begins once the jobs that it needs have ended well and a place is
//! free.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::log;

/// The number of jobs that compute at once. One more than there are processors on the smallest
/// machine that is meant, because they also wait.
const PLACES: usize = 3;
/// The time between two lines that say which jobs run.
const PROGRESS: Duration = Duration::from_secs(30);

/// One piece of a task.
pub struct Job<'a> {
    name: String,
    needs: Vec<String>,
    shares: Option<&'static str>,
    takes_place: bool,
    work: Work<'a>,
}

type Work<'a> = Box<dyn FnOnce() -> Result<(), String> + Send + 'a>;

/// A job that ran or could not run.
#[derive(Debug)]
pub struct Ended {
    /// The job's name.
    pub name: String,
    /// The time of its beginning, counted from the first job.
    pub began: Duration,
    /// The time that it ran.
    pub took: Duration,
    /// The result.
    pub result: Result<(), String>,
}

impl<'a> Job<'a> {
    /// A job that needs nothing.
    pub fn new(name: impl Into<String>, work: impl FnOnce() -> Result<(), String> + Send + 'a) -> Self {
        Self { name: name.into(), needs: Vec::new(), shares: None, takes_place: true, work: Box::new(work) }
    }

    /// Begins only after these have ended well.
    pub fn needs(mut self, names: &[&str]) -> Self {
        self.needs.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    /// Runs at no time beside another job that shares this.
    pub fn shares(mut self, what: &'static str) -> Self {
        self.shares = Some(what);
        self
    }

    /// Takes no place of those that compute, because it waits for the network.
    pub fn waiting(mut self) -> Self {
        self.takes_place = false;
        self
    }
}

/// Runs all jobs, the first ones first, and keeps their logs in `folder`.
///
/// # Errors
/// The folder can't be made, or jobs wait for each other.
pub fn run(jobs: Vec<Job<'_>>, folder: &Path) -> Result<Vec<Ended>, String> {
    fs::create_dir_all(folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    let (sender, ended) = channel();
    thread::scope(|scope| Board::new(jobs, folder, sender).run(scope, &ended))
}

/// Keeps the jobs of these names, and what they need.
///
/// # Errors
/// No job has one of the names.
pub fn only<'a>(jobs: Vec<Job<'a>>, names: &[String]) -> Result<Vec<Job<'a>>, String> {
    let mut wanted: Vec<String> = names.to_vec();
    let mut next = 0;
    while let Some(name) = wanted.get(next).cloned() {
        let known = || jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join("\n  ");
        let job = jobs.iter().find(|job| job.name == name);
        let job = job.ok_or_else(|| format!("there is no job `{name}`; the jobs are:\n  {}", known()))?;
        let needs: Vec<_> = job.needs.iter().filter(|need| !wanted.contains(need)).cloned().collect();
        wanted.extend(needs);
        next += 1;
    }
    Ok(jobs.into_iter().filter(|job| wanted.contains(&job.name)).collect())
}

/// Jobs that wait, that run, and that have ended.
struct Board<'a> {
    folder: PathBuf,
    began: Instant,
    waiting: Vec<Job<'a>>,
    running: Vec<Running>,
    ended: Vec<Ended>,
    sender: Sender<(String, Result<(), String>)>,
}

struct Running {
    name: String,
    shares: Option<&'static str>,
    takes_place: bool,
    began: Instant,
}

impl<'a> Board<'a> {
    fn new(jobs: Vec<Job<'a>>, folder: &Path, sender: Sender<(String, Result<(), String>)>) -> Self {
        let (folder, began) = (folder.to_owned(), Instant::now());
        Self { folder, began, waiting: jobs, running: Vec::new(), ended: Vec::new(), sender }
    }

    fn run<'scope>(
        mut self,
        scope: &'scope Scope<'scope, '_>,
        ended: &Receiver<(String, Result<(), String>)>,
    ) -> Result<Vec<Ended>, String>
    where
        'a: 'scope,
    {
        loop {
            self.give_up_hopeless();
            while let Some(next) = self.waiting.iter().position(|job| self.can_begin(job)) {
                self.begin(scope, next);
            }
            if self.running.is_empty() {
                break;
            }
            match ended.recv_timeout(PROGRESS) {
                Ok((name, result)) => self.end(&name, result),
                Err(RecvTimeoutError::Timeout) => self.tell_progress(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.waiting.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().as_slice() {
            [] => Ok(self.ended),
            stuck => Err(format!("these jobs need what no job makes: {}", stuck.join(", "))),
        }
    }

    /// Ends the jobs that need one that failed.
    fn give_up_hopeless(&mut self) {
        while let Some((place, need)) = self.hopeless() {
            let job = self.waiting.remove(place);
            let result = Err(format!("{}: not run, because `{need}` failed", job.name));
            println!("     {}: not run, because `{need}` failed", job.name);
            self.ended.push(Ended {
                name: job.name,
                began: self.began.elapsed(),
                took: Duration::ZERO,
                result,
            });
        }
    }

    fn hopeless(&self) -> Option<(usize, String)> {
        let has_failed =
            |name: &&String| self.ended.iter().any(|end| end.name == **name && end.result.is_err());
        let of = |(place, job): (usize, &Job<'_>)| Some((place, job.needs.iter().find(has_failed)?.clone()));
        self.waiting.iter().enumerate().find_map(of)
    }

    fn can_begin(&self, job: &Job<'_>) -> bool {
        let is_made = |name: &String| self.ended.iter().any(|end| end.name == *name);
        let is_shared = job.shares.is_some() && self.running.iter().any(|other| other.shares == job.shares);
        let taken = self.running.iter().filter(|other| other.takes_place).count();
        job.needs.iter().all(is_made) && !is_shared && (!job.takes_place || taken < PLACES)
    }

    fn begin<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, place: usize)
    where
        'a: 'scope,
    {
        let Job { name, shares, takes_place, work, .. } = self.waiting.remove(place);
        println!("     Running {name}");
        self.running.push(Running { name: name.clone(), shares, takes_place, began: Instant::now() });
        let (sender, log) = (self.sender.clone(), self.log(&name));
        scope.spawn(move || {
            let work = || {
                log::keep(File::create(&log).map_err(|error| format!("make {}: {error}", log.display()))?);
                work()
            };
            // A job that panics has failed; the others go on.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let result = done.unwrap_or_else(|_| Err(format!("{name}: panicked")));
            if let Err(lost) = sender.send((name, result)) {
                eprintln!("xtask: the end of {} was not heard", lost.0.0);
            }
        });
    }

    fn end(&mut self, name: &str, result: Result<(), String>) {
        let Some(place) = self.running.iter().position(|job| job.name == name) else { return };
        let job = self.running.remove(place);
        let took = job.began.elapsed();
        let word = if result.is_ok() { "ended" } else { "FAILED" };
        println!("\n===== {name}: {word} after {} s", took.as_secs());
        let said = fs::read(self.log(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        print!("{said}");
        println!("===== end of {name}\n");
        let result =
            result.map_err(|why| [why].into_iter().chain(errors(&said)).collect::<Vec<_>>().join("\n"));
        self.ended.push(Ended { name: job.name, began: job.began.duration_since(self.began), took, result });
    }

    fn tell_progress(&self) {
        let running =
            self.running.iter().map(|job| format!("{} ({} s)", job.name, job.began.elapsed().as_secs()));
        let running: Vec<_> = running.collect();
        println!(
            "     {} s: {}; {} wait",
            self.began.elapsed().as_secs(),
            running.join(", "),
            self.waiting.len()
        );
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.log", name.replace([' ', '/'], "-")))
    }
}

/// Returns what compilers, linkers and the clients' tests said of their errors, for the end of a run:
/// its log may be cut before.
fn errors(log: &str) -> Vec<String> {
    const MOST_LINES: usize = 60;
    let lines: Vec<&str> = log.lines().collect();
    let of_errors = lines.iter().enumerate().filter_map(|(place, line)| Some((place, lines_of_error(line)?)));
    let told = of_errors.flat_map(|(place, count)| lines.iter().skip(place).take(count));
    told.take(MOST_LINES).map(|line| format!("    {}", line.chars().take(300).collect::<String>())).collect()
}

/// The number of lines that are told, if an error begins here: of rustc and cc, of Node's tests in
/// both of their forms, and of pytest.
fn lines_of_error(line: &str) -> Option<usize> {
    match line.trim_start() {
        _ if line.starts_with("error") => Some(6),
        test if test.starts_with("not ok ") || test.starts_with("\u{2716} ") => Some(16),
        _ if line.starts_with("E   ") || line.starts_with("FAILED ") => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_end_of_a_run_says_why_a_build_failed() {
        let log = "   Compiling a\nerror: linking with `cc` failed\n  = note: no space left\n\nwarning: 1\n2\n3\n4\n";
        assert_eq!(errors(log).len(), 6);
        assert_eq!(errors(log)[..2], ["    error: linking with `cc` failed", "      = note: no space left"]);
        assert!(errors("test a ... ok\n").is_empty());
    }

    #[test]
    fn the_end_of_a_run_says_which_test_of_a_client_failed() {
        let of_node = "ok 1 - a\n    not ok 2 - a snapshot is taken\n      error: 'Timeout'\n";
        assert_eq!(errors(of_node), ["        not ok 2 - a snapshot is taken", "          error: 'Timeout'"]);
        assert_eq!(errors("\u{2716} a (3 ms)\n").len(), 1);
        let of_pytest = "    x = 1\nE   AssertionError: no\nFAILED tests/test_a.py::test_b\n";
        assert_eq!(errors(of_pytest).len(), 2);
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("eyot-jobs-{name}-{}", std::process::id()))
    }

    fn run_in(name: &str, jobs: Vec<Job<'_>>) -> Result<Vec<Ended>, String> {
        let folder = folder(name);
        let ended = run(jobs, &folder);
        fs::remove_dir_all(folder).unwrap();
        ended
    }

    #[test]
    fn a_job_begins_after_what_it_needs_and_beside_what_it_does_not() {
        // Neither of the first two can end without the other.
        let (both, made) = (Barrier::new(2), AtomicUsize::new(0));
        let make = || {
            both.wait();
            made.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let last =
            Job::new("last", || if made.load(Ordering::SeqCst) == 2 { Ok(()) } else { Err("early".into()) });
        let jobs = vec![last.needs(&["one", "two"]), Job::new("one", make), Job::new("two", make)];
        let ended = run_in("needs", jobs).unwrap();
        assert!(
            ended.iter().all(|end| end.result.is_ok()) && ended.last().unwrap().name == "last",
            "{ended:?}"
        );
    }

    #[test]
    fn what_needs_a_failure_is_a_failure_and_everything_else_runs() {
        let jobs = vec![
            Job::new("broken", || Err("no".to_owned())),
            Job::new("after", || Ok(())).needs(&["broken"]),
            Job::new("after_that", || Ok(())).needs(&["after"]),
            Job::new("panics", || panic!("on purpose")),
            Job::new("other", || Ok(())),
        ];
        let ended = run_in("failures", jobs).unwrap();
        let failed = |name: &str| ended.iter().find(|end| end.name == name).unwrap().result.is_err();
        assert!(["broken", "after", "after_that", "panics"].into_iter().all(failed) && !failed("other"));
    }

    #[test]
    fn jobs_that_share_something_never_run_side_by_side() {
        let inside = AtomicUsize::new(0);
        let alone = || {
            let others = inside.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            if others == 0 { Ok(()) } else { Err("not alone".to_owned()) }
        };
        let jobs = (0..20).map(|number| Job::new(number.to_string(), alone).shares("engine")).collect();
        assert!(run_in("shares", jobs).unwrap().iter().all(|end| end.result.is_ok()));
    }

    #[test]
    fn a_job_is_chosen_with_all_that_it_needs() {
        let job = |name: &str| Job::new(name, || Ok(()));
        let jobs = || vec![job("a"), job("b").needs(&["a"]), job("c").needs(&["b"]), job("d")];
        let chosen = only(jobs(), &["c".to_owned()]).ok().unwrap();
        assert_eq!(chosen.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(only(jobs(), &["typo".to_owned()]).err().unwrap().contains("`typo`"));
    }

    #[test]
    fn a_need_that_nothing_makes_is_an_error() {
        let error = run_in("stuck", vec![Job::new("a", || Ok(())).needs(&["typo"])]).unwrap_err();
        assert!(error.contains("a"), "{error}");
    }
}
