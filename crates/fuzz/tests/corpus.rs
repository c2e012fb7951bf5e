//! Every target over every file of its corpus: what the fuzzer has found stays found, on machines
//! without one.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use eyot_fuzz::{FuzzTarget, TARGETS};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let replay = TARGETS.into_iter().map(|target| {
        Trial::test(format!("everything_in_the_corpus_of_{}_holds", target.name), move || replay(target))
    });
    let seeds = TARGETS.into_iter().map(|target| {
        let name = format!("the_seeds_of_{}_are_in_its_corpus_as_they_are_sent_today", target.name);
        Trial::test(name, move || seeds_are_there(target))
    });
    libtest_mimic::run(&Arguments::from_args(), replay.chain(seeds).collect()).exit();
}

fn corpus(target: FuzzTarget) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

fn replay(target: FuzzTarget) -> Result<(), Failed> {
    let mut files: Vec<PathBuf> = fs::read_dir(corpus(target))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    for file in files {
        let bytes = fs::read(&file)?;
        let held = std::panic::catch_unwind(|| (target.run)(&bytes));
        if held.is_err() {
            return Err(format!("{} breaks a promise; see the panic above", file.display()).into());
        }
    }
    Ok(())
}

fn seeds_are_there(target: FuzzTarget) -> Result<(), Failed> {
    for (name, bytes) in (target.seeds)() {
        let path = corpus(target).join(format!("seed-{name}"));
        if std::env::var_os("EYOT_WRITE_CORPUS").is_some() {
            fs::create_dir_all(corpus(target))?;
            fs::write(&path, &bytes)?;
        }
        if fs::read(&path).unwrap_or_default() != bytes {
            return Err(format!("seed `{name}` is out of date; EYOT_WRITE_CORPUS=1 writes it anew").into());
        }
    }
    Ok(())
}
