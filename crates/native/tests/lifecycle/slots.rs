//! Slots: sandboxes that are half made before they are asked for.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use eyot::{
    ExecOptions, Limits, Mount, NetworkMode, Sandbox, SandboxName, SandboxPath, SandboxProvider, SandboxSpec,
};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::maker::Maker;
use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    let tests = vec![
        trial("a_create_takes_a_slot_of_its_shape_and_names_it", takes_one_and_names_it),
        trial("a_slot_of_another_shape_is_not_taken", another_shape),
        trial("a_slot_over_a_folder_that_was_replaced_is_not_taken", replaced_folder),
        trial("a_slot_whose_guest_was_killed_is_not_taken", killed_guest),
        trial("a_create_from_a_slot_that_fails_leaves_nothing", taken_name),
        trial("shapes_in_turn_have_a_slot_each", in_turn),
        trial("64_slots_are_the_most", most),
        trial("slots_are_seen_by_nobody", unseen),
        trial("the_slots_of_a_dropped_provider_are_gone", dropped),
        trial("the_slots_of_a_killed_process_end_and_the_next_sweep_removes_them", killed_owner),
    ];
    let of_user = trial("an_ordinary_user_has_no_slots", of_an_ordinary_user);
    if rustix::process::geteuid().is_root() {
        let of_user = of_user.with_ignored_flag(true).with_kind("this is root");
        return tests.into_iter().chain([of_user]).collect();
    }
    let without = |test: Trial| test.with_ignored_flag(true).with_kind("only root has slots");
    tests.into_iter().map(without).chain([of_user]).collect()
}

pub fn with_slots(state: &State, slots: usize) -> Result<Arc<NativeProvider>, Failed> {
    let options = NativeOptions { state: state.path(), slots, ..NativeOptions::default() };
    Ok(NativeProvider::new(options)?)
}

/// A slot. Its directory is open, so that no other directory gets its inode.
pub struct Slot {
    id: String,
    directory: File,
}

pub fn slots(state: &State) -> Result<Vec<Slot>, Failed> {
    let mut found = Vec::new();
    for entry in fs::read_dir(state.path().join("slots"))? {
        let entry = entry?;
        let id = entry.file_name().to_string_lossy().into_owned();
        found.push(Slot { id, directory: File::open(entry.path())? });
    }
    Ok(found)
}

/// Tells whether a sandbox was one of these slots.
pub fn was_one_of(state: &State, sandbox: &Sandbox, slots: &[Slot]) -> Result<bool, Failed> {
    let inode = fs::metadata(state.path().join("sandboxes").join(sandbox.id().as_str()))?.ino();
    let inodes =
        slots.iter().map(|slot| Ok(slot.directory.metadata()?.ino())).collect::<Result<Vec<_>, Failed>>()?;
    Ok(inodes.contains(&inode))
}

async fn takes_one_and_names_it() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 2)?;
    let made = provider.fill_slots(&SandboxSpec::default()).await?;
    let before = slots(&state)?;
    ensure(made == 2 && before.len() == 2, format!("{made} slots"))?;
    let spec = SandboxSpec {
        name: Some(SandboxName::parse("box")?),
        labels: [("team".to_owned(), "red".to_owned())].into(),
        env: [("COLOUR".to_owned(), "red".to_owned())].into(),
        ..SandboxSpec::default()
    };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    ensure(was_one_of(&state, &sandbox, &before)?, "it was made from nothing")?;
    let line = "hostname; cat /etc/hostname; grep -c ' box$' /etc/hosts; echo $COLOUR; id -un; pwd";
    let said = sandbox.exec(line, ExecOptions::default()).await?.stdout_text();
    ensure(said == "box\nbox\n1\nred\nuser\n/workspace\n", said)?;
    let opened = Sandbox::open(&*state.provider()?, "box").await?;
    ensure(opened.id() == sandbox.id() && opened.info().spec.labels["team"] == "red", "another record")?;
    sandbox.destroy().await?;
    drop(provider);
    state.assert_empty()
}

async fn another_shape() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 1)?;
    provider.fill_slots(&SandboxSpec::default()).await?;
    let before = slots(&state)?;
    let small = SandboxSpec {
        limits: Limits { memory_mib: Some(64), ..Limits::default() },
        ..SandboxSpec::default()
    };
    let networked = SandboxSpec { network: NetworkMode::Host, ..SandboxSpec::default() };
    let elsewhere = SandboxSpec { workdir: Some(SandboxPath::parse("/work")?), ..SandboxSpec::default() };
    for spec in [small, networked, elsewhere] {
        let what = format!("{spec:?}");
        let sandbox = Sandbox::create(&*provider, spec).await?;
        ensure(!was_one_of(&state, &sandbox, &before)?, what)?;
        sandbox.destroy().await?;
    }
    drop(provider);
    state.assert_empty()
}

async fn replaced_folder() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 1)?;
    let outside = tempfile::tempdir()?;
    let source = outside.path().join("shown");
    fs::create_dir(&source)?;
    fs::write(source.join("file"), "first")?;
    let target = SandboxPath::parse("/shown")?;
    let mounts = vec![Mount { source: source.clone(), target, writable: false, cow: false }];
    let spec = SandboxSpec { mounts, ..SandboxSpec::default() };
    let mut taken = Vec::new();
    for text in ["first", "second"] {
        provider.fill_slots(&spec).await?;
        let before = slots(&state)?;
        if text == "second" {
            fs::rename(&source, outside.path().join("old"))?;
            fs::create_dir(&source)?;
            fs::write(source.join("file"), text)?;
        }
        let sandbox = Sandbox::create(&*provider, spec.clone()).await?;
        let read = sandbox.read_text("/shown/file").await?;
        ensure(read == text, format!("{read} is not {text}"))?;
        taken.push(was_one_of(&state, &sandbox, &before)?);
        sandbox.destroy().await?;
    }
    ensure(taken == [true, false], format!("{taken:?}"))
}

/// Returns the processes of a slot: those whose control group is named after it.
fn processes_of(slot: &str) -> Result<Vec<Pid>, Failed> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")? {
        let process = process?;
        let groups = fs::read_to_string(process.path().join("cgroup")).unwrap_or_default();
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        found.extend(pid.filter(|_| groups.contains(slot)));
    }
    Ok(found)
}

async fn killed_guest() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 1)?;
    provider.fill_slots(&SandboxSpec::default()).await?;
    let before = slots(&state)?;
    let guests = processes_of(&before[0].id)?;
    if guests.is_empty() {
        return Err("no control group is named after the slot".into());
    }
    for guest in guests {
        kill_process(guest, Signal::KILL)?;
        wait_for_end(guest.as_raw_pid()).await?;
    }
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    ensure(!was_one_of(&state, &sandbox, &before)?, "it has a dead guest")?;
    ensure(sandbox.exec("true", ExecOptions::default()).await?.outcome.exit_code() == 0, "it does not work")?;
    sandbox.destroy().await?;
    drop(provider);
    state.assert_empty()
}

async fn taken_name() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 1)?;
    let named = SandboxSpec { name: Some(SandboxName::parse("box")?), ..SandboxSpec::default() };
    let first = Sandbox::create(&*provider, named.clone()).await?;
    provider.fill_slots(&SandboxSpec::default()).await?;
    let refused = Sandbox::create(&*provider, named).await.err().ok_or("two sandboxes of one name")?;
    ensure(refused.kind() == eyot::ErrorKind::AlreadyExists, refused.to_string())?;
    let listed = provider.list().await?;
    ensure(listed.len() == 1 && listed[0].id == *first.id(), format!("{listed:?}"))?;
    first.destroy().await?;
    drop(provider);
    state.assert_empty()
}

async fn in_turn() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 2)?;
    let small = SandboxSpec {
        limits: Limits { memory_mib: Some(64), ..Limits::default() },
        ..SandboxSpec::default()
    };
    let specs = [SandboxSpec::default(), small];
    for spec in &specs {
        provider.fill_slots(spec).await?;
    }
    let before = slots(&state)?;
    ensure(before.len() == 2, format!("{} slots", before.len()))?;
    for spec in specs {
        let sandbox = Sandbox::create(&*provider, spec).await?;
        ensure(was_one_of(&state, &sandbox, &before)?, "it was made from nothing")?;
        sandbox.destroy().await?;
    }
    Ok(())
}

async fn most() -> Result<(), Failed> {
    let state = State::new()?;
    with_slots(&state, eyot_native::MOST_SLOTS)?;
    let options =
        NativeOptions { state: state.path(), slots: eyot_native::MOST_SLOTS + 1, ..NativeOptions::default() };
    let refused = NativeProvider::new(options).err().ok_or("65 slots")?;
    ensure(refused.to_string() == "`slots` must be at most 64, not 65", refused.to_string())
}

async fn unseen() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 2)?;
    provider.fill_slots(&SandboxSpec::default()).await?;
    let before = slots(&state)?;
    let other = state.provider()?;
    for provider in [&provider, &other] {
        ensure(provider.list().await?.is_empty(), "a slot is listed")?;
        for slot in &before {
            let refused = provider.info(&slot.id).await.err().ok_or("a slot is found")?;
            ensure(refused.kind() == eyot::ErrorKind::NotFound, refused.to_string())?;
        }
    }
    // A list sweeps, and a live owner's slots stay.
    ensure(slots(&state)?.len() == before.len(), "a sweep removed a slot")
}

async fn dropped() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 3)?;
    provider.fill_slots(&SandboxSpec::default()).await?;
    let guests = processes_of(&slots(&state)?[0].id)?;
    drop(provider);
    ensure(slots(&state)?.is_empty(), "a slot is left")?;
    for guest in guests {
        wait_for_end(guest.as_raw_pid()).await?;
    }
    state.assert_empty()
}

async fn killed_owner() -> Result<(), Failed> {
    let state = State::new()?;
    let mut maker = Maker::start(&state.path(), "slots", 2)?;
    ensure(maker.line().await? == "2", "there are no slots")?;
    let left = slots(&state)?;
    ensure(left.len() == 2, format!("{} slots", left.len()))?;
    let guests = left.iter().map(|slot| processes_of(&slot.id)).collect::<Result<Vec<_>, Failed>>()?;
    maker.kill_9().await?;
    for guest in guests.into_iter().flatten() {
        wait_for_end(guest.as_raw_pid()).await?;
    }
    ensure(state.provider()?.list().await?.is_empty(), "a slot is listed")?;
    ensure(slots(&state)?.is_empty(), "a slot is left")?;
    state.assert_empty()
}

async fn of_an_ordinary_user() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = with_slots(&state, 2)?;
    let made = provider.fill_slots(&SandboxSpec::default()).await?;
    ensure(made == 0, format!("{made} slots"))?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    Ok(sandbox.destroy().await?)
}
