//! A process that takes snapshots, goes back, forks and removes is killed at random moments. No snapshot that it reported as taken
//! is lost, none that it reported as removed is there, each has the files of its time, and nothing is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use eyot::{DiskEnforcement, ExecOptions, Limits, Sandbox, SandboxName, SandboxSpec};
use eyot_engine::{ForkOptions, RollbackOptions, SandboxPool, SnapshotOptions};
use libtest_mimic::{Completion, Failed, Trial};

use crate::killed::{Random, open, say, work_and_be_killed};
use crate::session::{Session, output};
use crate::{ensure, trial};

/// The number of kills. `cargo xtask soak kills` uses [`KILLS_OF_SOAK`].
const KILLS: u32 = 3;
const KILLS_OF_SOAK: u32 = 50;
/// The seed for the work and for the moments of the kills, the same every time.
const SEED: u64 = 0x5eed_0000_0000_b4a7;
const DEV: &str = "dev";
/// The most snapshots that the work keeps.
const MOST: usize = 6;

pub fn trials() -> Vec<Trial> {
    let soak = "soak::a_process_that_is_killed_while_it_branches_loses_no_snapshot_and_leaves_nothing";
    vec![
        trial("a_process_that_is_killed_while_it_branches_loses_no_snapshot_and_leaves_nothing", || {
            killed(KILLS)
        }),
        trial(soak, || killed(KILLS_OF_SOAK)).with_ignored_flag(true),
        with_disks(
            "a_process_that_is_killed_while_it_branches_a_sandbox_with_a_disk_limit_loses_none",
            KILLS,
        ),
        with_disks(
            "soak::a_process_that_is_killed_while_it_branches_a_sandbox_with_a_disk_limit_loses_none",
            KILLS_OF_SOAK,
        )
        .with_ignored_flag(true),
    ]
}

/// Does the same with a sandbox whose files lie on a disk of its own.
fn with_disks(name: &str, kills: u32) -> Trial {
    Trial::ignorable_test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            let session = Session::new()?;
            let (pool, engine) = open(&session.state()).await?;
            if pool.provider().isolation().await?.limits.disk != DiskEnforcement::Quota {
                return Ok(Completion::ignored_with(
                    "no disk quota here: no root, loop devices or mkfs.ext4",
                ));
            }
            let limits = Limits { disk_mib: Some(16), ..Limits::default() };
            let spec = SandboxSpec { name: Some(SandboxName::parse(DEV)?), limits, ..SandboxSpec::default() };
            Sandbox::create(&*pool.as_provider(), spec).await?;
            drop((pool, engine));
            killed_in(&session, kills).await?;
            Ok(Completion::Completed)
        })
    })
}

/// The `main` of the process that is killed.
pub async fn work(state: &Path, mut random: Random) -> Result<(), Failed> {
    let (pool, _engine) = open(state).await?;
    loop {
        let there = names(&pool).await?;
        let any = |random: &mut Random| {
            let place = usize::try_from(random.below(there.len() as u64)).unwrap_or_default();
            there.get(place).cloned().unwrap_or_default()
        };
        match random.below(10) {
            _ if there.len() >= MOST => remove(&pool, &any(&mut random)).await?,
            0..=2 => write(&pool, &random.below(u64::MAX).to_string()).await?,
            3..=5 => take(&pool, &format!("s-{}-{:x}", std::process::id(), random.below(u64::MAX))).await?,
            _ if there.is_empty() => {}
            6 | 7 => go_back(&pool, &any(&mut random)).await?,
            8 => fork(&pool, &any(&mut random)).await?,
            _ => remove(&pool, &any(&mut random)).await?,
        }
    }
}

async fn names(pool: &SandboxPool) -> Result<Vec<String>, Failed> {
    Ok(pool
        .snapshots()
        .await?
        .into_iter()
        .filter_map(|info| info.name)
        .map(|name| name.to_string())
        .collect())
}

async fn write(pool: &SandboxPool, content: &str) -> Result<(), Failed> {
    say("write", content, "-");
    // Enough for a kill to fall into the copy of a disk.
    let line = format!(
        "cd && head -c 1M /dev/zero > large && mkdir -p d && (cd d && seq 200 | xargs touch) && printf %s {content} > f.new && mv f.new f"
    );
    pool.get(DEV).await?.exec(line.as_str(), ExecOptions::default()).await?;
    say("wrote", content, "-");
    Ok(())
}

async fn take(pool: &SandboxPool, name: &str) -> Result<(), Failed> {
    pool.get(DEV).await?;
    say("take", name, "-");
    let options = SnapshotOptions { name: Some(SandboxName::parse(name)?), ..SnapshotOptions::default() };
    pool.snapshot(DEV, options).await?;
    say("took", name, "-");
    Ok(())
}

async fn go_back(pool: &SandboxPool, name: &str) -> Result<(), Failed> {
    pool.get(DEV).await?;
    say("back", name, "-");
    let options = RollbackOptions { snapshot: name.to_owned(), stop: false, asleep_only: false };
    pool.roll_back(DEV, &options).await?;
    say("went", name, "-");
    Ok(())
}

async fn fork(pool: &SandboxPool, name: &str) -> Result<(), Failed> {
    let made = forked(pool, name).await?;
    Ok(pool.remove(made.name().as_str()).await?)
}

async fn remove(pool: &SandboxPool, name: &str) -> Result<(), Failed> {
    say("remove", name, "-");
    pool.remove_snapshot(name).await?;
    say("removed", name, "-");
    Ok(())
}

async fn forked(pool: &SandboxPool, name: &str) -> Result<Sandbox, Failed> {
    let options = ForkOptions { from: name.to_owned(), count: 1, name: None, stop: false };
    let forks = pool.as_provider().fork(pool.fork_source(name).await?, options).await?;
    let made = forks.names.first().ok_or("no fork")?;
    Ok(pool.get(made.as_str()).await?)
}

/// The facts that the test has learned of the sandbox and its snapshots.
#[derive(Debug, Default)]
struct Ledger {
    /// The contents that the file may have now: several while something is under way.
    now: BTreeSet<String>,
    snapshots: BTreeMap<String, KnownSnapshot>,
}

#[derive(Debug, Default, Clone)]
struct KnownSnapshot {
    /// The contents that the file may have in it.
    contents: BTreeSet<String>,
    is_taken: bool,
    may_be_gone: bool,
}

impl Ledger {
    fn note(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let (word, what) = (words.next()?, words.next()?.to_owned());
        let contents =
            |ledger: &Self, name: &str| ledger.snapshots.get(name).map(|known| known.contents.clone());
        match word {
            "write" => drop(self.now.insert(what)),
            "wrote" => self.now = BTreeSet::from([what]),
            "take" => {
                let known = KnownSnapshot { contents: self.now.clone(), ..KnownSnapshot::default() };
                self.snapshots.insert(what, known);
            }
            "took" => self.snapshots.get_mut(&what)?.is_taken = true,
            "back" => self.now.extend(contents(self, &what)?),
            "went" => self.now = contents(self, &what)?,
            "remove" => self.snapshots.get_mut(&what)?.may_be_gone = true,
            "removed" => drop(self.snapshots.remove(&what)),
            _ => {}
        }
        Some(())
    }
}

async fn killed(kills: u32) -> Result<(), Failed> {
    killed_in(&Session::new()?, kills).await
}

async fn killed_in(session: &Session, kills: u32) -> Result<(), Failed> {
    let (mut random, mut ledger) = (Random(SEED), Ledger::default());
    {
        let (pool, _engine) = open(&session.state()).await?;
        output(&pool.get(DEV).await?, "printf %s 0 > ~/f").await?;
        ledger.now.insert("0".to_owned());
    }
    for round in 0..kills {
        let (lines, after_ms) = (1 + random.below(16), random.below(60));
        let note = |line: &str| {
            ledger.note(line);
        };
        work_and_be_killed("branches", &session.state(), (random.below(u64::MAX), lines, after_ms), note)?;
        check(&session.state(), &mut ledger).await.map_err(|failed| {
            let message = failed.message().unwrap_or_default();
            Failed::from(format!("after kill {round} of seed {SEED:x}: {message}; known: {ledger:?}"))
        })?;
    }
    let (pool, _engine) = open(&session.state()).await?;
    for name in names(&pool).await? {
        pool.remove_snapshot(&name).await?;
    }
    pool.close().await?;
    ensure(session.count()? == 0, "sandboxes are left")?;
    let left = std::fs::read_dir(session.state().join("snapshots"))?.count();
    ensure(left == 0, format!("{left} snapshots are left"))
}

/// Folders that were prepared in vain or thrown away go with the sandbox's next sleep at the latest.
async fn nothing_is_left_by_a_sleep(pool: &SandboxPool, state: &Path) -> Result<(), Failed> {
    pool.sleep(DEV).await?;
    let dev = pool.get(DEV).await?;
    let left = std::fs::read_dir(state.join("sandboxes").join(dev.id().as_str()))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| [".copied", ".next", ".discarded"].iter().any(|ending| name.ends_with(ending)));
    ensure(left.is_none(), format!("{left:?} is left"))
}

async fn check(state: &Path, ledger: &mut Ledger) -> Result<(), Failed> {
    let (pool, engine) = open(state).await?;
    engine.events().ok_or("no log")?.verify()?;
    // A fork that was made when its maker was killed stays.
    for entry in pool.list().await?.iter().filter(|entry| entry.name.as_str() != DEV) {
        pool.remove(entry.name.as_str()).await?;
    }
    let sandboxes = pool.provider().list().await?.len();
    ensure(sandboxes == 1, format!("there are {sandboxes} sandboxes"))?;
    let dev = pool.get(DEV).await?;
    let content = output(&dev, "cat ~/f").await?;
    ensure(ledger.now.contains(&content), format!("the sandbox has {content}"))?;
    ledger.now = BTreeSet::from([content]);
    nothing_is_left_by_a_sleep(&pool, state).await?;
    let listed: BTreeSet<String> = names(&pool).await?.into_iter().collect();
    let unknown = listed.iter().find(|name| !ledger.snapshots.contains_key(*name));
    ensure(unknown.is_none(), format!("{unknown:?} is there again"))?;
    for (name, known) in std::mem::take(&mut ledger.snapshots) {
        if !listed.contains(&name) {
            ensure(!known.is_taken || known.may_be_gone, format!("{name} is lost"))?;
            continue;
        }
        let fork = forked(&pool, &name).await?;
        let content = output(&fork, "cat ~/f").await?;
        pool.remove(fork.name().as_str()).await?;
        ensure(known.contents.contains(&content), format!("{name} has {content}, not {:?}", known.contents))?;
        let known = KnownSnapshot { contents: BTreeSet::from([content]), is_taken: true, may_be_gone: false };
        ledger.snapshots.insert(name, known);
    }
    Ok(())
}
