//! The store through its public interface, in one process.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use eyot::{Error, ErrorKind, SandboxId, SandboxName, SandboxSpec, Service};
use eyot_engine::PoolQuotas;
use eyot_engine::store::{
    Claim, NameReservation, NewSandbox, Owner, QuotaUse, RowState, SandboxRow, Store, WakingTurn,
};
use tempfile::TempDir;

struct Scene {
    folder: TempDir,
    store: Arc<Store>,
}

impl Scene {
    /// A store with the pools `p` and `q`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("state/eyot.db")).unwrap();
        for pool in ["p", "q"] {
            store.put_pool(&name(pool), &serde_json::json!({ "name": pool })).unwrap();
        }
        Self { folder, store }
    }

    fn begin(&self, new: &NewSandbox) -> Result<NameReservation, Error> {
        self.store.begin_making(new, &PoolQuotas::default())
    }

    /// The row of a sandbox that is being made.
    fn making(&self, sandbox: &str) -> SandboxRow {
        making(self.begin(&new("p", sandbox)).unwrap())
    }

    fn live(&self, sandbox: &str) -> SandboxRow {
        self.store.finish_making(&self.making(sandbox).id).unwrap()
    }

    /// Makes the row's owner a process that has ended, as its kill would.
    fn kill_owner(&self, row: &SandboxRow) {
        let file = rusqlite::Connection::open(self.folder.path().join("state/eyot.db")).unwrap();
        let sql = "UPDATE sandboxes SET owner_start_ticks = owner_start_ticks + 1 WHERE id = ?1";
        assert_eq!(file.execute(sql, [row.id.as_str()]).unwrap(), 1);
    }

    /// Makes the row's owner another process that lives: the one that started this one.
    fn give_to_parent(&self, row: &SandboxRow) {
        let file = rusqlite::Connection::open(self.folder.path().join("state/eyot.db")).unwrap();
        let parent = std::os::unix::process::parent_id();
        let stat = fs::read_to_string(format!("/proc/{parent}/stat")).unwrap();
        let ticks: i64 =
            stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
        let sql = "UPDATE sandboxes SET owner_pid = ?2, owner_start_ticks = ?3 WHERE id = ?1";
        assert_eq!(file.execute(sql, rusqlite::params![row.id.as_str(), parent, ticks]).unwrap(), 1);
    }
}

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

fn new(pool: &str, sandbox: &str) -> NewSandbox {
    NewSandbox {
        pool: name(pool),
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

fn with_limits(sandbox: &str, memory_mib: Option<u64>, disk_mib: Option<u64>) -> NewSandbox {
    let mut new = new("p", sandbox);
    (new.spec.limits.memory_mib, new.spec.limits.disk_mib) = (memory_mib, disk_mib);
    new
}

#[track_caller]
fn making(begun: NameReservation) -> SandboxRow {
    match begun {
        NameReservation::New(row) => *row,
        NameReservation::InUse(row) => panic!("it is there: {row:?}"),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[test]
fn a_sandbox_is_kept_as_it_was_begun() {
    let scene = Scene::new();
    let mut new = with_limits("box", Some(64), None);
    new.image = Some("node".to_owned());
    new.spec.env.insert("A".to_owned(), "ä\0\n".to_owned());
    new.spec.network = eyot::NetworkMode::Egress;
    new.services = vec![Service { command: "serve".to_owned(), cwd: None, env: [].into() }];
    (new.sleep_after_ms, new.deadline_ms) = (Some(600_000), Some(1_700_000_000_000));
    let row = making(scene.begin(&new).unwrap());
    assert_eq!((row.pool.clone(), row.name.clone(), row.id.clone()), (new.pool, new.name, new.id));
    assert_eq!((row.provider.clone(), row.image.clone()), (new.provider, new.image));
    assert_eq!((row.spec.clone(), row.services.clone()), (new.spec, new.services));
    assert_eq!((row.sleep_after_ms, row.deadline_ms), (new.sleep_after_ms, new.deadline_ms));
    assert_eq!((row.generation, row.state), (1, RowState::Making));
    assert_eq!(row.owner, Some(Owner::this_process().unwrap()));
    assert!(row.created_ms > 0 && row.created_ms == row.last_change_ms);
    assert_eq!(scene.store.sandbox(&row.id).unwrap(), Some(row.clone()));
    assert_eq!(scene.store.sandbox_named(&row.pool, &row.name).unwrap(), Some(row));
}

#[test]
fn a_name_that_is_taken_answers_with_who_has_it_and_changes_nothing() {
    let scene = Scene::new();
    let first = scene.making("box");
    assert_eq!(scene.begin(&new("p", "box")).unwrap(), NameReservation::InUse(Box::new(first.clone())));
    let live = scene.store.finish_making(&first.id).unwrap();
    assert_eq!((live.state, live.owner.clone(), live.generation), (RowState::Live, None, 1));
    assert_eq!(scene.begin(&new("p", "box")).unwrap(), NameReservation::InUse(Box::new(live)));
    assert_eq!(
        making(scene.begin(&new("q", "box")).unwrap()).generation,
        1,
        "in another pool the name is free"
    );
}

#[test]
fn a_name_counts_how_often_it_was_used() {
    let scene = Scene::new();
    for generation in 1..=3 {
        let row = scene.live("box");
        assert_eq!(row.generation, generation);
        scene.store.begin_removing(&row.id).unwrap();
        scene.store.finish_removing(&row.id).unwrap();
        assert_eq!(scene.store.sandbox(&row.id).unwrap(), None);
    }
    assert_eq!(scene.making("other").generation, 1);
}

#[test]
fn a_make_that_was_refused_uses_nothing_up() {
    let scene = Scene::new();
    let taken = scene.live("taken");
    let mut same_id = new("p", "box");
    same_id.id = taken.id;
    refused(scene.begin(&same_id), ErrorKind::AlreadyExists);
    assert_eq!(scene.making("box").generation, 1);
    let message = refused(scene.begin(&new("nowhere", "box")), ErrorKind::NotFound);
    assert_eq!(message, "the store has no pool `nowhere`");
}

#[test]
fn rows_are_listed_by_pool_and_name() {
    let scene = Scene::new();
    for (pool, sandbox) in [("q", "a"), ("p", "b"), ("p", "a")] {
        making(scene.begin(&new(pool, sandbox)).unwrap());
    }
    let names = |rows: Vec<SandboxRow>| -> Vec<String> {
        rows.iter().map(|row| format!("{}/{}", row.pool, row.name)).collect()
    };
    assert_eq!(names(scene.store.all_sandboxes().unwrap()), ["p/a", "p/b", "q/a"]);
    assert_eq!(names(scene.store.sandboxes(&name("p")).unwrap()), ["p/a", "p/b"]);
    assert_eq!(scene.store.sandboxes(&name("nowhere")).unwrap(), []);
}

#[test]
fn a_make_that_failed_is_removed_by_who_made_it() {
    let scene = Scene::new();
    let row = scene.making("box");
    scene.store.begin_removing(&row.id).unwrap();
    refused(scene.store.finish_making(&row.id), ErrorKind::Conflict);
    scene.store.finish_removing(&row.id).unwrap();
    scene.store.finish_removing(&row.id).unwrap();
    refused(scene.store.begin_removing(&row.id), ErrorKind::NotFound);
    refused(scene.store.finish_making(&row.id), ErrorKind::NotFound);
    assert_eq!(scene.making("box").generation, 2);
}

#[test]
fn what_another_living_process_is_at_work_on_is_left_to_it() {
    let scene = Scene::new();
    let row = scene.making("box");
    scene.give_to_parent(&row);
    assert_eq!(scene.store.abandoned().unwrap(), []);
    let message = refused(scene.store.begin_removing(&row.id), ErrorKind::Conflict);
    let parent = std::os::unix::process::parent_id();
    assert_eq!(message, format!("sandbox `box` of pool `p` is being made by process {parent}"));
    refused(scene.store.finish_making(&row.id), ErrorKind::Conflict);
    refused(scene.store.finish_removing(&row.id), ErrorKind::Conflict);
}

#[test]
fn what_a_process_left_when_it_ended_is_taken_over_as_it_is() {
    let scene = Scene::new();
    let (made, removed, live) = (scene.making("made"), scene.live("removed"), scene.live("live"));
    let removed = scene.store.begin_removing(&removed.id).unwrap();
    scene.kill_owner(&made);
    scene.kill_owner(&removed);
    let rows = scene.store.abandoned().unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.state)).collect();
    assert_eq!(told, [("made", RowState::Making), ("removed", RowState::Removing)]);
    assert!(rows.iter().all(|row| row.owner == Some(Owner::this_process().unwrap())));
    assert_eq!(scene.store.abandoned().unwrap(), [], "they are this process's now");
    scene.store.finish_making(&made.id).unwrap();
    scene.store.finish_removing(&removed.id).unwrap();
    assert_eq!(scene.store.sandbox(&live.id).unwrap(), Some(live));
}

#[test]
fn a_sandbox_whose_maker_has_ended_can_be_removed_at_once() {
    let scene = Scene::new();
    let row = scene.making("box");
    scene.kill_owner(&row);
    let row = scene.store.begin_removing(&row.id).unwrap();
    assert_eq!((row.state, row.owner), (RowState::Removing, Some(Owner::this_process().unwrap())));
}

#[test]
fn the_number_of_sandboxes_is_held_whatever_state_they_are_in() {
    let scene = Scene::new();
    let quotas = PoolQuotas { max_sandboxes: Some(2), ..PoolQuotas::default() };
    let begin = |pool, sandbox| scene.store.begin_making(&new(pool, sandbox), &quotas);
    let first = making(begin("p", "a").unwrap());
    making(begin("p", "b").unwrap());
    assert_eq!(refused(begin("p", "c"), ErrorKind::Quota), "pool `p` may have 2 sandboxes and has 2");
    assert!(matches!(begin("p", "a").unwrap(), NameReservation::InUse(_)), "one that is there is no more");
    making(begin("q", "c").unwrap());
    scene.store.begin_removing(&first.id).unwrap();
    refused(begin("p", "c"), ErrorKind::Quota);
    scene.store.finish_removing(&first.id).unwrap();
    making(begin("p", "c").unwrap());
}

#[test]
fn sums_of_memory_and_disk_are_held() {
    let scene = Scene::new();
    let quotas = PoolQuotas { memory_mib: Some(100), disk_mib: Some(1000), ..PoolQuotas::default() };
    let begin = |new: &NewSandbox| scene.store.begin_making(new, &quotas);
    making(begin(&with_limits("a", Some(60), Some(400))).unwrap());
    assert_eq!(
        refused(begin(&with_limits("b", Some(41), Some(1))), ErrorKind::Quota),
        "pool `p` may use 100 MiB by `memory_mib`: 60 are taken and 41 more were asked for"
    );
    let error = begin(&with_limits("b", Some(40), None)).unwrap_err();
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Quota, Some("give it `limits.disk_mib` (--disk)")));
    making(begin(&with_limits("b", Some(40), Some(600))).unwrap());
    let used = scene.store.quota_use(&name("p")).unwrap();
    assert_eq!(used, QuotaUse { sandboxes: 2, memory_mib: 100, disk_mib: 1000, processes: 1024 });
}

#[test]
fn a5_the_sum_of_processes_is_held_and_one_without_a_limit_counts_with_the_one_that_it_has() {
    let scene = Scene::new();
    let quotas = PoolQuotas { processes: Some(600), ..PoolQuotas::default() };
    let with_pids = |sandbox: &str, pids| {
        let mut new = new("p", sandbox);
        new.spec.limits.pids = pids;
        new
    };
    let begin = |new: &NewSandbox| scene.store.begin_making(new, &quotas);
    making(begin(&with_pids("a", None)).unwrap());
    assert_eq!(
        refused(begin(&with_pids("b", Some(89))), ErrorKind::Quota),
        "pool `p` may use 600 processes by `pids`: 512 are taken and 89 more were asked for"
    );
    making(begin(&with_pids("b", Some(88))).unwrap());
    refused(begin(&with_pids("c", None)), ErrorKind::Quota);
}

#[test]
fn a5_names_that_were_used_once_do_not_fill_the_store() {
    let scene = Scene::new();
    let held = making(scene.begin(&new("p", "held")).unwrap());
    for number in 0..1100 {
        let row = making(scene.begin(&new("p", &format!("name-{number}"))).unwrap());
        scene.store.begin_removing(&row.id).unwrap();
        scene.store.finish_removing(&row.id).unwrap();
    }
    assert_eq!(making(scene.begin(&new("p", "name-1099")).unwrap()).generation, 2);
    assert_eq!(making(scene.begin(&new("p", "name-0")).unwrap()).generation, 1, "nothing was forgotten");
    scene.store.begin_removing(&held.id).unwrap();
    scene.store.finish_removing(&held.id).unwrap();
    assert_eq!(making(scene.begin(&new("p", "held")).unwrap()).generation, 2, "a name in use was forgotten");
}

#[test]
fn the_largest_limits_overflow_nothing() {
    let scene = Scene::new();
    let most = Some(i64::MAX as u64);
    for sandbox in ["a", "b", "c"] {
        making(scene.begin(&with_limits(sandbox, most, most)).unwrap());
    }
    let quotas = PoolQuotas { memory_mib: Some(u64::MAX - 1), ..PoolQuotas::default() };
    refused(scene.store.begin_making(&with_limits("d", Some(1), None), &quotas), ErrorKind::Quota);
    // No database has a larger number; this one says the same.
    making(scene.begin(&with_limits("d", Some(u64::MAX), None)).unwrap());
    let used = scene.store.quota_use(&name("p")).unwrap();
    assert_eq!((used.sandboxes, used.memory_mib), (4, u64::MAX));
}

#[test]
fn live_sandboxes_expire_by_their_deadlines() {
    let scene = Scene::new();
    for (sandbox, deadline_ms) in [("late", Some(30)), ("soon", Some(10)), ("never", None), ("now", Some(20))]
    {
        let row = making(scene.begin(&NewSandbox { deadline_ms, ..new("p", sandbox) }).unwrap());
        scene.store.finish_making(&row.id).unwrap();
    }
    making(scene.begin(&NewSandbox { deadline_ms: Some(1), ..new("p", "unfinished") }).unwrap());
    let expired = scene.store.expired(20).unwrap();
    let names: Vec<&str> = expired.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["soon", "now"]);
}

#[test]
fn a_pool_keeps_its_first_day_and_its_last_options() {
    let scene = Scene::new();
    let first = scene.store.pool(&name("p")).unwrap().unwrap();
    let second = scene.store.put_pool(&name("p"), &serde_json::json!({ "a": [1] })).unwrap();
    assert_eq!((second.created_ms, second.options), (first.created_ms, serde_json::json!({ "a": [1] })));
    assert_eq!(scene.store.pool(&name("nowhere")).unwrap(), None);
}

#[test]
fn a_pool_with_sandboxes_is_not_forgotten_and_an_empty_one_is() {
    let scene = Scene::new();
    let row = scene.live("box");
    assert_eq!(
        refused(scene.store.remove_pool(&name("p")), ErrorKind::Conflict),
        "forget pool `p`: it has 1 sandboxes"
    );
    scene.store.begin_removing(&row.id).unwrap();
    scene.store.finish_removing(&row.id).unwrap();
    for _ in 0..2 {
        scene.store.remove_pool(&name("p")).unwrap();
    }
    let pools: Vec<String> = scene.store.pools().unwrap().iter().map(|pool| pool.name.to_string()).collect();
    assert_eq!(pools, ["q"]);
    scene.store.put_pool(&name("p"), &serde_json::json!({})).unwrap();
    assert_eq!(scene.making("box").generation, 2, "its names are still those that were used");
}

#[test]
fn everything_is_there_again_when_the_store_is_opened_again() {
    let Scene { folder, store } = Scene::new();
    let row = making(store.begin_making(&new("p", "box"), &PoolQuotas::default()).unwrap());
    let again = Store::open(folder.path().join("state/eyot.db")).unwrap();
    drop(store);
    assert_eq!(again.all_sandboxes().unwrap(), [row]);
    drop(again);
    let again = Store::open(folder.path().join("state/eyot.db")).unwrap();
    assert_eq!(again.all_sandboxes().unwrap().len(), 1);
}

#[test]
fn only_the_owner_may_read_the_store() {
    let scene = Scene::new();
    let mode =
        |name: &str| fs::metadata(scene.folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state"), 0o700);
    for file in ["eyot.db", "eyot.db-wal", "eyot.db-shm", "eyot.db.lock"] {
        assert_eq!(mode(&format!("state/{file}")), 0o600, "{file}");
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("eyot.db");
    let text = "no database at all\n".repeat(100);
    fs::write(&path, &text).unwrap();
    let message = refused(Store::open(&path).map(drop), ErrorKind::Conflict);
    assert_eq!(message, "open the store: the file is damaged or not a store");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::create_dir(folder.path().join("d")).unwrap();
    assert!(Store::open(folder.path().join("d")).is_err());
}

#[test]
fn threads_of_one_process_share_a_store() {
    let scene = Scene::new();
    let again = Store::open(scene.folder.path().join("state/eyot.db")).unwrap();
    let made: usize = std::thread::scope(|scope| {
        let stores = [&scene.store, &scene.store, &again, &again];
        let threads: Vec<_> = stores
            .into_iter()
            .map(|store| {
                scope.spawn(move || {
                    let names = (0..25).map(|index| new("p", &format!("n{index}")));
                    let begun = names.map(|new| store.begin_making(&new, &PoolQuotas::default()).unwrap());
                    begun.filter(|begun| matches!(begun, NameReservation::New(_))).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(made, 25);
}

#[test]
fn a_key_is_known_by_its_hash_until_it_is_revoked() {
    let scene = Scene::new();
    let pools = [name("p"), name("q")];
    let key = scene.store.add_key("key_1", &name("ci"), &pools, [7; 32]).unwrap();
    assert!(key.opens(&name("q")) && !key.opens(&name("other")));
    assert_eq!(scene.store.key_of_hash([7; 32]).unwrap(), Some(key.clone()));
    assert_eq!(scene.store.key_of_hash([8; 32]).unwrap(), None);
    let taken = scene.store.add_key("key_2", &name("ci"), &pools, [8; 32]).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert_eq!(
        scene.store.add_key("key_2", &name("x"), &[], [8; 32]).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert!(scene.store.revoke_key("ci").unwrap().revoked_ms.is_some());
    assert_eq!(scene.store.key_of_hash([7; 32]).unwrap(), None);
    assert_eq!(scene.store.revoke_key("key_1").unwrap_err().kind(), ErrorKind::NotFound);
    // Its name is free again, and what it was is not forgotten.
    scene.store.add_key("key_2", &name("ci"), &pools[..1], [8; 32]).unwrap();
    let ids: Vec<String> = scene.store.keys().unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["key_1", "key_2"]);
}

/// The turn to wake a sandbox, which must be had.
#[track_caller]
fn waking(turn: WakingTurn) -> (Claim, bool) {
    match turn {
        WakingTurn::Ours(claim) => (claim, false),
        WakingTurn::TakenOver(claim) => (claim, true),
        WakingTurn::Theirs => panic!("somebody else has the turn"),
    }
}

#[test]
fn a_turn_to_wake_whose_task_was_dropped_goes_to_the_next_one_who_asks() {
    let scene = Scene::new();
    let row = scene.live("box");
    // As a second server in this process has it open.
    let other = Store::open(scene.folder.path().join("state/eyot.db")).unwrap();
    let (claim, _) = waking(scene.store.begin_waking(&row.id).unwrap());
    for store in [&scene.store, &other] {
        assert!(matches!(store.begin_waking(&row.id).unwrap(), WakingTurn::Theirs));
        assert_eq!(store.abandoned_wakes().unwrap(), []);
    }
    drop(claim);
    assert_eq!(
        scene.store.abandoned_wakes().unwrap(),
        std::slice::from_ref(&row),
        "other processes see it too"
    );
    let (claim, was_half_awake) = waking(other.begin_waking(&row.id).unwrap());
    assert!(was_half_awake);
    other.finish_waking(&row.id).unwrap();
    claim.finish();
    let (claim, was_half_awake) = waking(scene.store.begin_waking(&row.id).unwrap());
    assert!(!was_half_awake);
    scene.store.finish_waking(&row.id).unwrap();
    claim.finish();
}

#[test]
fn what_a_task_was_making_or_removing_when_it_was_dropped_is_anybodys() {
    let scene = Scene::new();
    let new = new("p", "made");
    let claim = scene.store.claim(&new.id);
    let made = making(scene.begin(&new).unwrap());
    assert!(!scene.store.is_given_up(&made).unwrap());
    drop(claim);
    let removed = scene.live("removed");
    let (first, second) = (scene.store.claim(&removed.id), scene.store.claim(&removed.id));
    let removing = scene.store.begin_removing(&removed.id).unwrap();
    drop(first);
    assert!(!scene.store.is_given_up(&removing).unwrap(), "somebody else still removes it");
    drop(second);
    let state = |row: &SandboxRow| scene.store.sandbox(&row.id).unwrap().unwrap();
    for row in [&made, &removed] {
        assert!(scene.store.is_given_up(&state(row)).unwrap());
        assert!(!state(row).owner.unwrap().is_alive(), "other processes see it too");
    }
    let names: Vec<_> = scene.store.abandoned().unwrap().into_iter().map(|row| row.name).collect();
    assert_eq!(names, [name("made"), name("removed")]);
}

#[test]
fn a_claim_that_is_finished_or_that_another_process_has_taken_over_changes_nothing() {
    let scene = Scene::new();
    let row = scene.making("box");
    let claim = scene.store.claim(&row.id);
    scene.give_to_parent(&row);
    let theirs = scene.store.sandbox(&row.id).unwrap();
    drop(claim);
    assert_eq!(scene.store.sandbox(&row.id).unwrap(), theirs);
    let row = scene.making("other");
    scene.store.claim(&row.id).finish();
    assert_eq!(scene.store.sandbox(&row.id).unwrap().unwrap().owner, row.owner);
}

#[test]
fn a_sandbox_that_was_made_since_its_row_was_read_is_not_removed_as_given_up() {
    let scene = Scene::new();
    let wanted = new("p", "a");
    let claim = scene.store.claim(&wanted.id);
    let seen = making(scene.begin(&wanted).unwrap());
    scene.store.finish_making(&seen.id).unwrap();
    claim.finish();
    assert!(scene.store.is_given_up(&seen).unwrap(), "by the row as it was");
    let claim = scene.store.claim(&seen.id);
    refused(scene.store.begin_removing_given_up(&seen.id), ErrorKind::Conflict);
    claim.finish();
    assert_eq!(scene.store.sandbox(&seen.id).unwrap().unwrap().state, RowState::Live);

    let given_up = scene.making("b");
    let claim = scene.store.claim(&given_up.id);
    assert_eq!(scene.store.begin_removing_given_up(&given_up.id).unwrap().state, RowState::Removing);
    claim.finish();
}
