//! Fuzzing: builds libFuzzer around the targets of `crates/fuzz`, runs each for a while, and keeps
//! what reached something new.
//!
//! It works with a stable compiler: the coverage that libFuzzer goes by is a pass of LLVM, which
//! flags turn on. There is no address sanitizer (that needs a nightly one); panics, overflows,
//! broken promises, hangs and memory are what is found, and unsafe code is in none of the targets.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{cargo, root, run as run_program, target_directory};

/// The default time for each target, in seconds: the time that a release needs.
const SECONDS: u64 = 600;
/// One input may take so long before it counts as a hang, in seconds. Most take microseconds.
const HANG_SECONDS: u64 = 10;
const MEMORY_MIB: u64 = 1024;
const LONGEST_INPUT_BYTES: u64 = 8192;
/// Coverage of every edge, counted inline, and of what is compared.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The task: `[--seconds N] [target…]`.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let wanted = Wanted::parse(arguments)?;
    let fuzzer = build()?;
    let mut failed = Vec::new();
    for target in &wanted.targets {
        if let Err(finding) = fuzz(&fuzzer, target, wanted.seconds) {
            failed.push(finding);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("findings:\n  {}", failed.join("\n  "))) }
}

struct Wanted {
    seconds: u64,
    targets: Vec<String>,
}

impl Wanted {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let known = targets()?;
        let mut wanted = Self { seconds: SECONDS, targets: Vec::new() };
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            match argument.as_str() {
                "--seconds" => {
                    let number = left.next().and_then(|number| number.parse().ok());
                    wanted.seconds = number.ok_or("--seconds needs a number")?;
                }
                target if known.iter().any(|known| known == target) => wanted.targets.push(target.to_owned()),
                other => return Err(format!("there is no target `{other}`; there are: {}", known.join(" "))),
            }
        }
        if wanted.targets.is_empty() {
            wanted.targets = known;
        }
        Ok(wanted)
    }
}

/// The targets' names: each has a folder of its own in the corpus.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("crates/fuzz/corpus");
    let failed = |error| format!("read {}: {error}", folder.display());
    let entries = std::fs::read_dir(&folder).map_err(failed)?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn build() -> Result<PathBuf, String> {
    let target_directory = target_directory()?.join("fuzz");
    let mut build = cargo();
    build
        .args(["build", "--release", "--target", TRIPLE, "--manifest-path"])
        .arg("crates/fuzz/fuzzer/Cargo.toml")
        .arg("--target-dir")
        .arg(&target_directory)
        .env("RUSTFLAGS", INSTRUMENTED)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // What the provider embeds is not fuzzed here, and need not be small.
        .env("EYOT_EMBED", "quick");
    run_program(&mut build)?;
    Ok(target_directory.join(TRIPLE).join("release/eyot-fuzzer"))
}

/// Runs one target, and takes what it found into the corpus.
fn fuzz(fuzzer: &Path, target: &str, seconds: u64) -> Result<(), String> {
    println!("\n     Fuzzing {target} for {seconds} s");
    let kept = root().join("crates/fuzz/corpus").join(target);
    let artifacts = root().join("crates/fuzz/fuzzer/artifacts").join(target);
    let found = target_directory()?.join("fuzz/found").join(target);
    for folder in [&artifacts, &found] {
        std::fs::create_dir_all(folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    }
    let mut fuzzing = libfuzzer(fuzzer, target);
    fuzzing.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    fuzzing.arg(format!("-artifact_prefix={}/", artifacts.display())).args([&found, &kept]);
    show(&mut fuzzing).map_err(|error| {
        let (artifacts, kept) = (artifacts.display(), kept.display());
        format!(
            "{target}: {error}; the input is in {artifacts}: mend it, and add it to {kept} as found-<what>"
        )
    })?;
    // By edges alone, and the fewest inputs that reach them: a corpus is read by people and run by
    // every test run.
    let mut merging = libfuzzer(fuzzer, target);
    merging.args(["-set_cover_merge=1", "-use_counters=0"]).args([&kept, &found]);
    show(&mut merging)
}

fn libfuzzer(fuzzer: &Path, target: &str) -> Command {
    let mut command = Command::new(fuzzer);
    command
        .env("EYOT_FUZZ_TARGET", target)
        .arg(format!("-timeout={HANG_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-max_len={LONGEST_INPUT_BYTES}"));
    command
}

/// Runs libFuzzer and shows of its many lines those that a person wants: how far it is, what it
/// found, the sums.
fn show(command: &mut Command) -> Result<(), String> {
    let started = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut running = started.map_err(|error| format!("start the fuzzer: {error}"))?;
    if let Some(stderr) = running.stderr.take() {
        let lines = BufReader::new(stderr).split(b'\n').map_while(Result::ok);
        for line in
            lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| is_wanted(line))
        {
            println!("{line}");
        }
    }
    match running.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the fuzzer stopped: {status}")),
        Err(error) => Err(format!("wait for the fuzzer: {error}")),
    }
}

fn is_wanted(line: &str) -> bool {
    let noise = ["INFO:", "###", "\"", "MERGE-INNER", "MERGE-OUTER: attempt", "==", "NOTE:"];
    if line.starts_with('#') && !line.starts_with("###") {
        ["pulse", "INITED", "DONE"].iter().any(|mark| line.contains(mark))
    } else {
        !line.trim().is_empty() && !noise.iter().any(|start| line.starts_with(start))
    }
}
