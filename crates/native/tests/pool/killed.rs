//! A process that works with a pool is killed at random moments. Work that it reported as done
//! stays done, nothing is left without an owner, and no sandbox is given out twice.
//!
//! This program is also the process that is killed. It prints a line before and after each piece of
//! work, and the test reads these lines.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use eyot::{ErrorKind, ExecOptions};
use eyot_engine::{Engine, PoolOptions, SandboxPool, Transfer};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Failed, Trial};

use crate::session::Session;
use crate::{ensure, trial};

/// The number of kills. `cargo xtask soak kills` uses [`KILLS_OF_SOAK`].
const KILLS: u32 = 5;
const KILLS_OF_SOAK: u32 = 50;
/// The seed for the work and for the moments of the kills, the same every time.
const SEED: u64 = 0x5eed_0000_0000_e707;
const NAMES: [&str; 3] = ["a", "b", "c"];

pub fn trials() -> Vec<Trial> {
    let soak = "soak::a_process_that_is_killed_at_any_moment_loses_nothing_and_leaves_nothing";
    vec![
        trial("a_process_that_is_killed_at_any_moment_loses_nothing_and_leaves_nothing", || killed(KILLS)),
        trial(soak, || killed(KILLS_OF_SOAK)).with_ignored_flag(true),
    ]
}

/// Pseudo-random numbers (xorshift), the same for each seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The `main` of the process that is killed: `worker WORK STATE SEED`.
pub fn worker(mut arguments: impl Iterator<Item = String>) {
    let mut next = || arguments.next();
    let (Some(kind), Some(state), Some(seed)) = (next(), next(), next().and_then(|seed| seed.parse().ok()))
    else {
        panic!("worker WORK STATE SEED");
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let (state, random) = (Path::new(&state), Random(seed));
    let done = match kind.as_str() {
        "branches" => runtime.block_on(crate::killed_branches::work(state, random)),
        _ => runtime.block_on(work(state, random)),
    };
    done.expect("the load");
}

pub fn say(word: &str, name: &str, rest: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word} {name} {rest}").and_then(|()| out.flush()).expect("the test listens");
}

pub async fn open(state: &Path) -> Result<(SandboxPool, Engine), Failed> {
    let provider =
        NativeProvider::new(NativeOptions { state: state.to_owned(), ..NativeOptions::default() })?;
    let engine = Engine::open(provider, &state.join("engine")).await?;
    Ok((engine.pool(PoolOptions::default())?, engine))
}

async fn work(state: &Path, mut random: Random) -> Result<(), Failed> {
    let (pool, _engine) = open(state).await?;
    loop {
        let name = NAMES[random.below(3) as usize];
        let (file, content) = (format!("f{}", random.below(4)), random.below(u64::MAX).to_string());
        match random.below(10) {
            0..=3 => {
                say("write", name, &format!("{file} {content}"));
                let sandbox = pool.get(name).await?;
                say("has", name, sandbox.id().as_str());
                sandbox.write(&file, content.clone()).await?;
                say("wrote", name, &format!("{file} {content}"));
            }
            4 | 5 => {
                say("write", name, &format!("{file} {content}"));
                let sandbox = pool.get(name).await?;
                say("has", name, sandbox.id().as_str());
                let line = format!("printf %s {content} > {file}.new && mv {file}.new {file}");
                sandbox.exec(line.as_str(), ExecOptions::default()).await?;
                say("wrote", name, &format!("{file} {content}"));
            }
            6 | 7 => copy(&pool, name, NAMES[random.below(3) as usize], &file).await?,
            8 => match pool.sleep(name).await {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            },
            _ => {
                say("remove", name, "");
                match pool.remove(name).await {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                    _ => say("removed", name, ""),
                }
            }
        }
    }
}

async fn copy(pool: &SandboxPool, from: &str, to: &str, file: &str) -> Result<(), Failed> {
    let source = pool.get(from).await?;
    say("has", from, source.id().as_str());
    let Ok(content) = source.read_text(file).await else { return Ok(()) };
    say("write", to, &format!("copy {content}"));
    let target = pool.get(to).await?;
    say("has", to, target.id().as_str());
    let what = Transfer { from_path: file.to_owned(), to_path: "copy".to_owned(), recursive: false };
    pool.transfer(from, to, &what).await?;
    say("wrote", to, &format!("copy {content}"));
    Ok(())
}

/// The facts about a name that the test has learned.
#[derive(Debug, Default, Clone)]
struct Known {
    id: Option<String>,
    /// The possible contents of each file: one if its last write was acknowledged, two if a write
    /// was under way.
    files: BTreeMap<String, Vec<String>>,
    /// A removal was under way.
    may_be_gone: bool,
}

#[derive(Debug, Default)]
struct Ledger(BTreeMap<String, Known>);

impl Ledger {
    fn note(&mut self, line: &str) -> Option<()> {
        let mut words = line.splitn(3, ' ');
        let (word, name, rest) = (words.next()?, words.next()?, words.next()?);
        let known = self.0.entry(name.to_owned()).or_default();
        match word {
            "has" if known.id.as_deref() != Some(rest) => {
                *known = Known {
                    id: Some(rest.to_owned()),
                    files: std::mem::take(&mut known.files),
                    may_be_gone: false,
                };
            }
            "write" => {
                let (file, content) = rest.split_once(' ')?;
                known
                    .files
                    .entry(file.to_owned())
                    .or_insert_with(|| vec![ABSENT.to_owned()])
                    .push(content.to_owned());
            }
            "wrote" => {
                let (file, content) = rest.split_once(' ')?;
                known.files.insert(file.to_owned(), vec![content.to_owned()]);
            }
            "remove" => known.may_be_gone = true,
            "removed" => *known = Known::default(),
            _ => {}
        }
        Some(())
    }
}

/// Stands for a file that is not there.
const ABSENT: &str = "(absent)";

async fn killed(kills: u32) -> Result<(), Failed> {
    let session = Session::new()?;
    let (mut random, mut ledger) = (Random(SEED), Ledger::default());
    for round in 0..kills {
        let (lines, after_ms) = (random.below(40), random.below(30));
        let note = |line: &str| {
            ledger.note(line);
        };
        work_and_be_killed("files", &session.state(), (random.below(u64::MAX), lines, after_ms), note)?;
        check(&session.state(), &mut ledger).await.map_err(|failed| {
            Failed::from(format!(
                "after kill {round} of seed {SEED:x}: {}",
                failed.message().unwrap_or_default()
            ))
        })?;
    }
    let (pool, _engine) = open(&session.state()).await?;
    pool.close().await?;
    ensure(session.count()? == 0, "sandboxes are left")
}

/// Lets a work with this seed run until it has printed so many lines, and a little longer. `note` hears each line.
pub fn work_and_be_killed(
    work: &str,
    state: &Path,
    (seed, lines, after_ms): (u64, u64, u64),
    mut note: impl FnMut(&str),
) -> Result<(), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("worker")
        .arg(work)
        .arg(state)
        .arg(seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut worker = command.spawn()?;
    let mut said = BufReader::new(worker.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        ensure(said.read_line(&mut line)? > 0, "the load ended by itself")?;
        note(line.trim_end_matches('\n'));
    }
    // The moment is the point of it: it may fall anywhere in what comes next.
    std::thread::sleep(Duration::from_millis(after_ms));
    worker.kill()?;
    worker.wait()?;
    loop {
        line.clear();
        match said.read_line(&mut line)? {
            0 => return Ok(()),
            _ if line.ends_with('\n') => note(line.trim_end_matches('\n')),
            _ => {}
        }
    }
}

async fn check(state: &Path, ledger: &mut Ledger) -> Result<(), Failed> {
    let (pool, engine) = open(state).await?;
    engine.events().ok_or("no log")?.verify()?;
    let listed: BTreeSet<String> = pool.list().await?.iter().map(|entry| entry.name.to_string()).collect();
    let there = pool.provider().list().await?;
    ensure(there.len() == listed.len(), format!("{} sandboxes, and in the pool {listed:?}", there.len()))?;
    let mut handed_out = BTreeSet::new();
    for name in NAMES {
        let known = ledger.0.get(name).cloned().unwrap_or_default();
        if !listed.contains(name) {
            ensure(known.may_be_gone || known.id.is_none(), format!("`{name}` is lost: {known:?}"))?;
            ledger.0.remove(name);
            continue;
        }
        let sandbox = pool.get(name).await?;
        ensure(handed_out.insert(sandbox.id().clone()), format!("`{name}` has another's sandbox"))?;
        if known.id.as_deref() != Some(sandbox.id().as_str()) {
            // It was being made when its maker was killed, or made after a removal that was not told of any more.
            ensure(
                known.id.is_none() || known.may_be_gone,
                format!("`{name}` is another one now: {known:?}"),
            )?;
        }
        let mut now = Known { id: Some(sandbox.id().to_string()), ..Known::default() };
        for (file, contents) in &known.files {
            let content = match sandbox.read_text(file).await {
                Ok(content) => content,
                Err(error) if error.kind() == ErrorKind::NotFound => ABSENT.to_owned(),
                Err(error) => return Err(error.into()),
            };
            let is_same = known.id.as_deref() == Some(sandbox.id().as_str());
            ensure(
                !is_same || contents.contains(&content),
                format!("`{name}`: {file} holds {content}, not {contents:?}"),
            )?;
            now.files.insert(file.clone(), vec![content]);
        }
        ledger.0.insert(name.to_owned(), now);
    }
    Ok(())
}
