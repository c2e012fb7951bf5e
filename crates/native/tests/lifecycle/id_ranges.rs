//! Ranges of host ids: those of sandboxes that an earlier version made, beside those of new ones.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use eyot::{ErrorKind, ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    let tests = vec![
        trial("a_sandbox_of_an_earlier_version_keeps_its_ids_beside_a_new_one", of_an_earlier_version),
        trial("the_same_user_of_two_sandboxes_differs_in_more_than_the_block", differ_in_low_bits),
        trial("a_range_is_noted_for_the_whole_host_while_a_sandbox_has_it", is_noted),
        trial("of_two_state_folders_one_alone_runs_a_sandbox_with_a_range", one_alone_runs),
        trial("a_range_is_taken_over_from_a_state_folder_that_is_gone", is_taken_over),
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

/// Returns the number of a sandbox's block.
fn block_of(state: &State, id: &str) -> Result<u64, Failed> {
    let file = state.path().join("sandboxes").join(id).join("sandbox.json");
    let record: Value = serde_json::from_slice(&fs::read(file)?)?;
    Ok(record["ids"]["block"].as_u64().ok_or("no block is recorded")?)
}

/// Returns what this host notes of a block.
fn note_of(block: u64) -> Option<String> {
    let note = fs::read_link(format!("/run/eyot-ids/{block}")).ok()?;
    Some(note.to_string_lossy().into_owned())
}

/// Gives a sleeping sandbox another block, as if an earlier version had claimed it, which knew of no
/// other state folder. Its files are not given to the new ids.
fn give_block(state: &State, id: &str, block: u64) -> Result<(), Failed> {
    let file = state.path().join("sandboxes").join(id).join("sandbox.json");
    let before = block_of(state, id)?;
    let mut record: Value = serde_json::from_slice(&fs::read(&file)?)?;
    record["ids"]["block"] = json!(block);
    fs::write(&file, serde_json::to_vec(&record)?)?;
    let blocks = state.path().join("blocks");
    fs::rename(blocks.join(before.to_string()), blocks.join(block.to_string()))?;
    Ok(fs::remove_file(format!("/run/eyot-ids/{before}"))?)
}

async fn is_noted() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let block = block_of(&state, sandbox.id().as_str())?;
    let is_own =
        |note: Option<String>| note.is_some_and(|note| note.ends_with(&*state.path().to_string_lossy()));
    ensure(is_own(note_of(block)), format!("{:?}", note_of(block)))?;
    provider.sleep(sandbox.id().as_str()).await?;
    ensure(is_own(note_of(block)), "a sleeping sandbox has no note")?;
    // As after a restart of the host: the next process that makes a sandbox notes it again.
    fs::remove_file(format!("/run/eyot-ids/{block}"))?;
    let provider = state.provider()?;
    let other = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    ensure(is_own(note_of(block)), "it was not noted again")?;
    ensure(block_of(&state, other.id().as_str())? != block, "two have the same block")?;
    for id in [sandbox.id(), other.id()] {
        let block = block_of(&state, id.as_str())?;
        provider.remove(id.as_str()).await?;
        ensure(note_of(block).is_none(), "a note of a sandbox that is gone is left")?;
    }
    state.assert_empty()
}

async fn one_alone_runs() -> Result<(), Failed> {
    let (first, second) = (State::new()?, State::new()?);
    let (of_first, of_second) = (first.provider()?, second.provider()?);
    let one = Sandbox::create(&*of_first, SandboxSpec::default()).await?;
    let other = Sandbox::create(&*of_second, SandboxSpec::default()).await?;
    let (one, other) = (one.id().to_string(), other.id().to_string());
    of_second.sleep(&other).await?;
    give_block(&second, &other, block_of(&first, &one)?)?;
    let refused = Sandbox::wake(&*of_second, &other).await.err().ok_or("two sandboxes have the same ids")?;
    let names_folder = refused.to_string().contains(&*first.path().to_string_lossy());
    ensure(refused.kind() == ErrorKind::Unavailable && names_folder, &refused)?;
    of_first.sleep(&one).await?;
    Sandbox::wake(&*of_second, &other).await?;
    let refused = Sandbox::wake(&*of_first, &one).await.err().ok_or("then two have the same ids")?;
    ensure(refused.kind() == ErrorKind::Unavailable, &refused)?;
    of_second.remove(&other).await?;
    Sandbox::wake(&*of_first, &one).await?;
    of_first.remove(&one).await?;
    first.assert_empty()?;
    second.assert_empty()
}

async fn is_taken_over() -> Result<(), Failed> {
    let (gone, state) = (State::new()?, State::new()?);
    let (of_gone, provider) = (gone.provider()?, state.provider()?);
    let lost = Sandbox::create(&*of_gone, SandboxSpec::default()).await?;
    let (guest, block) = (gone.guest_of(lost.id().as_str())?, block_of(&gone, lost.id().as_str())?);
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let id = sandbox.id().to_string();
    provider.sleep(&id).await?;
    give_block(&state, &id, block)?;
    // Nobody can tell any more whose the range is, but its guest has it.
    let moved = gone.path().with_extension("moved");
    fs::rename(gone.path(), &moved)?;
    let refused = Sandbox::wake(&*provider, &id).await.err().ok_or("it has the ids of a live process")?;
    ensure(refused.kind() == ErrorKind::Unavailable, &refused)?;
    let pid = rustix::process::Pid::from_raw(guest).ok_or("not a process number")?;
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    wait_for_end(guest).await?;
    while fs::exists(format!("/proc/{guest}"))? {
        tokio::task::yield_now().await;
    }
    Sandbox::wake(&*provider, &id).await?;
    let owner = note_of(block).unwrap_or_default();
    ensure(owner.ends_with(&*state.path().to_string_lossy()), owner)?;
    fs::rename(&moved, gone.path())?;
    of_gone.remove(lost.id().as_str()).await?;
    ensure(note_of(block).is_some(), "it took the other's note along")?;
    provider.remove(&id).await?;
    gone.assert_empty()?;
    state.assert_empty()
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
