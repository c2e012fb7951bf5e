//! One store, many processes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use eyot::{ErrorKind, SandboxId, SandboxName, SandboxSpec};
use eyot_engine::PoolQuotas;
use eyot_engine::store::{NameReservation, NewSandbox, RowState, Store};
use libtest_mimic::Trial;

use super::role::{Actor, say};

fn open(folder: &Path) -> Arc<Store> {
    let store = Store::open(folder.join("eyot.db")).unwrap();
    store.put_pool(&name("p"), &serde_json::json!({})).unwrap();
    store
}

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

fn new(sandbox: &str) -> NewSandbox {
    NewSandbox {
        pool: name("p"),
        name: name(sandbox),
        id: SandboxId::generate(),
        provider: "demo".to_owned(),
        lives_with_its_process: false,
        image: None,
        spec: SandboxSpec::default(),
        services: Vec::new(),
        sleep_after_ms: None,
        deadline_ms: None,
        snapshots_mib: 0,
    }
}

/// Takes every name of `<prefix>0` to `<prefix>29` that it can, in a pool of at most so many; says those it got.
pub fn take_role(arguments: &[String]) {
    let store = open(Path::new(&arguments[0]));
    let quotas = PoolQuotas { max_sandboxes: Some(arguments[2].parse().unwrap()), ..PoolQuotas::default() };
    for index in 0..30 {
        let new = new(&format!("{}{index}", arguments[1]));
        match store.begin_making(&new, &quotas) {
            Ok(NameReservation::New(row)) => {
                store.finish_making(&row.id).unwrap();
                say(&row.name);
            }
            Ok(NameReservation::InUse(_)) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Quota, "{error}"),
        }
    }
}

/// Makes and removes sandboxes for ever, and says what it was told is done.
pub fn churn_role(arguments: &[String]) {
    let store = open(Path::new(&arguments[0]));
    for index in 0.. {
        let new = new(&format!("{}{index}", arguments[1]));
        let NameReservation::New(row) = store.begin_making(&new, &PoolQuotas::default()).unwrap() else {
            panic!("the name is free")
        };
        say(format_args!("making {}", row.id));
        store.finish_making(&row.id).unwrap();
        say(format_args!("live {}", row.id));
        if index % 2 == 0 {
            store.begin_removing(&row.id).unwrap();
            say(format_args!("removing {}", row.id));
            store.finish_removing(&row.id).unwrap();
            say(format_args!("gone {}", row.id));
        }
    }
}

/// Makes a sandbox that ends with this process, says its id, and stays until it is killed.
pub fn keep_role(arguments: &[String]) {
    let store = open(Path::new(&arguments[0]));
    let new = NewSandbox { lives_with_its_process: true, ..new("kept") };
    let NameReservation::New(row) = store.begin_making(&new, &PoolQuotas::default()).unwrap() else {
        panic!("the name is free")
    };
    let row = store.finish_making(&row.id).unwrap();
    assert!(!row.is_in_another_process() && !row.has_ended_with_its_process());
    say(&row.id);
    loop {
        std::thread::park();
    }
}

/// Takes over what was abandoned, says what that is, and stays until it is killed.
pub fn adopt_role(arguments: &[String]) {
    let store = open(Path::new(&arguments[0]));
    for row in store.abandoned().unwrap() {
        say(&row.id);
    }
    say("done");
    loop {
        std::thread::park();
    }
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("of_many_processes_that_want_a_name_one_gets_it", || {
            one_gets_it();
            Ok(())
        }),
        Trial::test("many_processes_together_stay_within_a_quota", || {
            within_a_quota();
            Ok(())
        }),
        Trial::test("what_a_killed_process_was_told_is_kept_and_the_store_is_usable", || {
            killed(5);
            Ok(())
        }),
        Trial::test("soak::what_a_process_killed_twenty_times_was_told_is_kept", || {
            killed(20);
            Ok(())
        })
        .with_ignored_flag(true),
        Trial::test("a_sandbox_that_ends_with_its_process_is_that_process_s_while_it_runs", || {
            ends_with_its_process();
            Ok(())
        }),
        Trial::test("what_was_abandoned_is_taken_over_by_exactly_one_process", || {
            taken_over_once();
            Ok(())
        }),
    ]
}

/// Returns what processes in the role `take` get, all together; they open a store that is not there
/// yet.
fn taken(prefixes: &[&str], most: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let actors: Vec<Actor> =
        prefixes.iter().map(|prefix| Actor::start("take", folder.path(), &[prefix, most])).collect();
    let mut names: Vec<String> = actors.into_iter().flat_map(Actor::finish).collect();
    names.sort();
    assert_eq!(open(folder.path()).quota_use(&name("p")).unwrap().sandboxes, names.len() as u64);
    names
}

fn one_gets_it() {
    let mut expected: Vec<String> = (0..30).map(|index| format!("a{index}")).collect();
    expected.sort();
    assert_eq!(taken(&["a"; 6], "1000"), expected);
}

fn ends_with_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut actor = Actor::start("keep", folder.path(), &[]);
    let id = SandboxId::parse(&actor.hear()).unwrap();
    let store = open(folder.path());
    let row = || store.sandbox(&id).unwrap().unwrap();
    assert!(row().is_in_another_process() && !row().has_ended_with_its_process());
    assert_eq!(store.abandoned().unwrap(), Vec::new(), "nothing is to be done on it");
    assert_eq!(store.quota_use(&row().pool).unwrap().sandboxes, 1);
    actor.kill();
    assert_eq!(store.quota_use(&row().pool).unwrap().sandboxes, 0, "it takes the place of others");
    assert!(!row().is_in_another_process() && row().has_ended_with_its_process());
    // Others end with no process.
    let NameReservation::New(other) = store.begin_making(&new("other"), &PoolQuotas::default()).unwrap()
    else {
        panic!("the name is free")
    };
    assert!(other.process.is_none() && !other.is_in_another_process() && !other.has_ended_with_its_process());
}

fn within_a_quota() {
    assert_eq!(taken(&["a", "b", "c", "d", "e", "f"], "10").len(), 10);
}

fn killed(rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    for round in 0..rounds {
        let mut actors: Vec<Actor> = ["x", "y"]
            .into_iter()
            .map(|prefix| Actor::start("churn", folder.path(), &[&format!("{prefix}{round}-")]))
            .collect();
        let mut said: Vec<Vec<String>> =
            actors.iter_mut().map(|actor| (0..=round * 2).map(|_| actor.hear()).collect()).collect();
        for (said, actor) in said.iter_mut().zip(actors) {
            said.extend(actor.kill());
        }
        for said in &said {
            holds(&store, said);
        }
        for row in store.abandoned().unwrap() {
            store.begin_removing(&row.id).unwrap();
            store.finish_removing(&row.id).unwrap();
        }
        assert!(store.all_sandboxes().unwrap().iter().all(|row| row.state == RowState::Live));
        store = open(folder.path());
    }
}

/// The store knows at least what the process was told about each of its sandboxes.
fn holds(store: &Store, said: &[String]) {
    let mut last = std::collections::BTreeMap::new();
    for line in said {
        let (state, id) = line.split_once(' ').unwrap();
        last.insert(id, state);
    }
    for (id, state) in last {
        let row = store.sandbox(&SandboxId::parse(id).unwrap()).unwrap();
        let now = row.map(|row| row.state);
        let fits = match state {
            "making" => matches!(now, Some(RowState::Making | RowState::Live)),
            "live" => matches!(now, Some(RowState::Live | RowState::Removing)),
            "removing" => matches!(now, Some(RowState::Removing) | None),
            "gone" => now.is_none(),
            other => panic!("{other}"),
        };
        assert!(fits, "{id} was said to be {state} and is {now:?}");
    }
}

fn taken_over_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    // Each is killed at some point of its work, so most leave something.
    for round in 0..12 {
        let mut actor = Actor::start("churn", folder.path(), &[&format!("n{round}-")]);
        for _ in 0..=round {
            actor.hear();
        }
        actor.kill();
    }
    let unfinished = |rows: Vec<eyot_engine::store::SandboxRow>| -> BTreeSet<String> {
        let rows = rows.into_iter().filter(|row| row.state != RowState::Live);
        rows.map(|row| row.id.to_string()).collect()
    };
    let abandoned = unfinished(store.all_sandboxes().unwrap());
    assert!(!abandoned.is_empty());
    let mut actors: Vec<Actor> = (0..5).map(|_| Actor::start("adopt", folder.path(), &[])).collect();
    let mut adopted = Vec::new();
    for actor in &mut actors {
        adopted.extend(actor.says.by_ref().map(Result::unwrap).take_while(|line| line != "done"));
    }
    assert_eq!(adopted.len(), abandoned.len(), "each once");
    assert_eq!(adopted.into_iter().collect::<BTreeSet<String>>(), abandoned);
    assert_eq!(store.abandoned().unwrap(), Vec::new(), "those who have them live");
    drop(actors);
    assert_eq!(unfinished(store.abandoned().unwrap()), abandoned, "and now they are free again");
}
