//! Ranges of host ids: those of sandboxes that an earlier version made, beside those of new ones.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::state::State;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    let tests = vec![
        trial("a_sandbox_of_an_earlier_version_keeps_its_ids_beside_a_new_one", of_an_earlier_version),
        trial("the_same_user_of_two_sandboxes_differs_in_more_than_the_block", differ_in_low_bits),
    ];
    if rustix::process::geteuid().is_root() {
        return tests;
    }
    let kind = "needs a range of ids, which root has";
    tests.into_iter().map(|test| test.with_ignored_flag(true).with_kind(kind)).collect()
}

/// The number of ids in a range.
const LEN: u32 = 65_536;

/// Returns the host ids of a sandbox's users.
fn host_ids(state: &State, id: &str) -> Result<Vec<Range<u32>>, Failed> {
    let map = fs::read_to_string(format!("/proc/{}/uid_map", state.guest_of(id)?))?;
    let runs = map.lines().map(|line| {
        let numbers: Vec<u32> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        match numbers[..] {
            [_, host, count] => Ok(host..host + count),
            _ => Err(format!("a map of an unknown form: {map}").into()),
        }
    });
    runs.collect()
}

fn are_apart(left: &[Range<u32>], right: &[Range<u32>]) -> bool {
    left.iter().all(|left| right.iter().all(|right| left.end <= right.start || right.end <= left.start))
}

/// Gives the files of a sleeping sandbox the owners that an earlier version gave them: the inner
/// ids in order from the block's first id on. Writes the record as that version did.
fn make_older(directory: &Path) -> Result<(), Failed> {
    let file = directory.join("sandbox.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let ids =
        record.as_object_mut().and_then(|record| record.remove("ids")).ok_or("the ids are not recorded")?;
    let number = |name: &str| ids[name].as_u64().and_then(|number| u32::try_from(number).ok());
    let (block, shift) = number("block").zip(number("shift")).ok_or(format!("not a block of ids: {ids}"))?;
    record["block"] = json!(block);
    fs::write(&file, serde_json::to_vec(&record)?)?;
    let base = 0x7000_0000 + block * LEN;
    let in_order = |id: u32| match id.checked_sub(base) {
        Some(at) if at < LEN => base + (at + LEN - shift) % LEN,
        _ => id,
    };
    let mut left = vec![directory.join("upper"), directory.join("work")];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path)?;
        lchown(&path, Some(in_order(found.uid())), Some(in_order(found.gid())))?;
        if found.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(())
}

async fn of_an_earlier_version() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let older = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let id = older.id().to_string();
    older.write("kept", "words").await?;
    provider.sleep(&id).await?;
    make_older(&state.path().join("sandboxes").join(&id))?;
    let older = Sandbox::wake(&*provider, &id).await?;
    let newer = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let (old_ids, new_ids) = (host_ids(&state, &id)?, host_ids(&state, newer.id().as_str())?);
    ensure(old_ids.len() == 1 && new_ids.len() == 2, format!("{old_ids:?}, {new_ids:?}"))?;
    ensure(are_apart(&old_ids, &new_ids), format!("{old_ids:?} meets {new_ids:?}"))?;
    let owner = owner_of_kept(&older).await?;
    ensure(owner == "user user words", format!("the file is {owner}"))?;
    provider.sleep(&id).await?;
    let older = Sandbox::wake(&*provider, &id).await?;
    ensure(host_ids(&state, &id)? == old_ids, "it woke with other ids")?;
    let owner = owner_of_kept(&older).await?;
    ensure(owner == "user user words", format!("then the file is {owner}"))?;
    for id in [&id, newer.id().as_str()] {
        provider.remove(id).await?;
    }
    state.assert_empty()
}

async fn owner_of_kept(sandbox: &Sandbox) -> Result<String, Failed> {
    let line = "echo more >> kept && stat -c '%U %G' kept | tr '\\n' ' ' && head -c 5 kept";
    Ok(sandbox.exec(line, ExecOptions::default()).await?.stdout_text())
}

async fn differ_in_low_bits() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let mut low_bits = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let map = host_ids(&state, sandbox.id().as_str())?;
        low_bits.push(map[0].start % LEN);
        ids.push(sandbox.id().to_string());
    }
    ensure(low_bits[0] != low_bits[1], format!("{low_bits:?}"))?;
    for id in ids {
        provider.remove(&id).await?;
    }
    state.assert_empty()
}
