//! What a native sandbox costs, beside what the host's own does: every item once per round, interleaved, so that a
//! noisy machine disturbs all alike. `cargo bench -p eyot-native` prints min, p50 and p95 in µs, and the ratio of the
//! medians. It gates nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use eyot::{Command as Run, ExecOptions, Result, Sandbox, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};

const ROUNDS: usize = 60;
const WARM_UP: usize = 5;

/// An item's name and its times in µs.
struct Item {
    name: &'static str,
    against: Option<&'static str>,
    times: Vec<f64>,
}

fn main() {
    // `cargo test --benches` runs this too; there, nothing is to be measured.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut items = runtime.block_on(measure()).expect("the measured operations work");
    print(&mut items);
}

async fn measure() -> Result<Vec<Item>> {
    let folder = tempfile::tempdir().expect("a folder");
    let options = NativeOptions { state: folder.path().join("state"), ..NativeOptions::default() };
    let provider = NativeProvider::new(options)?;
    let live = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let host_file = folder.path().join("host-file");
    let mut bench = Bench { items: Vec::new(), round: 0 };
    for round in 0..ROUNDS + WARM_UP {
        bench.round = round;
        bench.host(&host_file);
        bench.sandbox(&provider, &live).await?;
        bench.programs(&folder.path().join("cli-state"));
    }
    live.destroy().await?;
    Ok(bench.items)
}

struct Bench {
    items: Vec<Item>,
    round: usize,
}

impl Bench {
    fn note(&mut self, name: &'static str, against: Option<&'static str>, since: Instant) {
        let time = since.elapsed().as_secs_f64() * 1e6;
        if self.round < WARM_UP {
            return;
        }
        match self.items.iter_mut().find(|item| item.name == name) {
            Some(item) => item.times.push(time),
            None => self.items.push(Item { name, against, times: vec![time] }),
        }
    }

    fn host(&mut self, file: &Path) {
        let since = Instant::now();
        Command::new("/bin/true").status().expect("true runs");
        self.note(SPAWN, None, since);
        let since = Instant::now();
        Command::new("/bin/true").output().expect("true runs");
        self.note(OUTPUT, None, since);
        let since = Instant::now();
        Command::new("/bin/sh").args(["-c", "true"]).output().expect("sh runs");
        self.note(SHELL, None, since);
        let mebibyte = vec![7; 1 << 20];
        let since = Instant::now();
        std::fs::write(file, &mebibyte).expect("a write");
        self.note(WRITE, None, since);
        let since = Instant::now();
        assert_eq!(std::fs::read(file).expect("a read").len(), 1 << 20);
        self.note(READ, None, since);
    }

    async fn sandbox(&mut self, provider: &Arc<NativeProvider>, live: &Sandbox) -> Result<()> {
        let since = Instant::now();
        let result = live.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        self.note("exec /bin/true", Some(OUTPUT), since);
        assert!(result.success());
        let since = Instant::now();
        live.exec("true", ExecOptions::default()).await?;
        self.note("exec of a shell line `true` (bash)", Some(SHELL), since);
        let since = Instant::now();
        live.write("file", vec![7; 1 << 20]).await?;
        self.note("write 1 MiB", Some(WRITE), since);
        let since = Instant::now();
        assert_eq!(live.read("file").await?.len(), 1 << 20);
        self.note("read 1 MiB", Some(READ), since);

        let since = Instant::now();
        let sandbox = Sandbox::create(&**provider, SandboxSpec::default()).await?;
        self.note("create → ready", Some(SPAWN), since);
        let first = Instant::now();
        sandbox.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        self.note("first exec /bin/true in a new sandbox", Some(OUTPUT), first);
        let last = Instant::now();
        sandbox.destroy().await?;
        self.note("destroy", None, last);
        self.note("create + exec + destroy", Some(BWRAP), since);
        Ok(())
    }

    fn programs(&mut self, state: &Path) {
        if has("bwrap") {
            let since = Instant::now();
            quietly(Command::new("bwrap").args([
                "--unshare-all",
                "--ro-bind",
                "/",
                "/",
                "--proc",
                "/proc",
                "--dev",
                "/dev",
                "/bin/true",
            ]));
            self.note(BWRAP, None, since);
        }
        if let Some(eyot) = std::env::var_os("EYOT_BIN").map(PathBuf::from) {
            let since = Instant::now();
            quietly(Command::new(eyot).args(["run", "--", "/bin/true"]).env("EYOT_STATE", state));
            self.note("`eyot run -- /bin/true` as a process", Some(BWRAP), since);
        }
    }
}

const SPAWN: &str = "host: spawn /bin/true and wait";
const OUTPUT: &str = "host: Command::output() of /bin/true";
const SHELL: &str = "host: Command::output() of sh -c true";
const WRITE: &str = "host: write 1 MiB";
const READ: &str = "host: read 1 MiB";
const BWRAP: &str = "bwrap --unshare-all /bin/true as a process";

fn quietly(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("the program runs");
    assert!(status.success(), "{command:?}: {status}");
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

fn print(items: &mut [Item]) {
    for item in items.iter_mut() {
        item.times.sort_by(f64::total_cmp);
    }
    println!("| operation | min µs | p50 µs | p95 µs | ratio | against |\n|---|---|---|---|---|---|");
    for item in items.iter() {
        let median = quantile(&item.times, 0.5);
        let baseline = item.against.and_then(|name| items.iter().find(|other| other.name == name));
        let ratio =
            baseline.map(|other| format!("{:.2}", median / quantile(&other.times, 0.5))).unwrap_or_default();
        let (min, high) = (item.times[0], quantile(&item.times, 0.95));
        let against = item.against.filter(|_| baseline.is_some()).unwrap_or_default();
        println!("| {} | {min:.0} | {median:.0} | {high:.0} | {ratio} | {against} |", item.name);
    }
}
