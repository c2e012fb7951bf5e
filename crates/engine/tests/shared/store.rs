//! Pools, names, quotas and keys of several servers.

use std::sync::Arc;
use std::thread;

use eyot::{ErrorKind, Limits, SandboxId, SandboxName, SandboxSpec};
use eyot_engine::PoolQuotas;
use eyot_engine::store::{DatabaseUrl, NameReservation, NewSandbox, RowState, SandboxRow, Store, WakingTurn};

use crate::Case;
use crate::postgres::{Postgres, TestDatabase};

pub const CASES: &[(&str, Case)] = &[
    ("store::of_many_who_ask_for_a_name_one_gets_it", one_gets_a_name),
    ("store::a_quota_holds_for_all_servers_together", a_quota_holds),
    ("store::a_row_has_everything_that_was_put_into_it", a_row_has_everything),
    ("store::a_server_that_works_keeps_its_sandbox_and_one_that_ended_does_not", work_is_taken_over),
    ("store::a_silent_server_is_taken_for_ended_once", a_silent_server),
    ("store::a_claim_that_is_dropped_in_async_code_gives_up_the_sandbox", a_claim_in_async_code),
    ("store::one_of_two_servers_wakes_a_sandbox", one_wakes),
    ("store::a_key_of_one_server_is_every_servers", keys),
    ("store::a_change_is_heard_by_the_other_server", a_change_is_heard),
    ("store::pools_are_sorted_by_bytes_and_go_when_they_are_empty", pools),
    ("store::a_name_counts_how_often_it_was_used", generations),
    ("store::a_database_that_was_restarted_is_used_again", a_restart),
    ("store::a_server_with_other_sandboxes_is_refused", other_sandboxes),
    ("store::one_server_at_a_time_has_a_turn", turns),
    ("store::more_calls_than_connections_wait_and_none_is_lost", many_calls),
    ("store::tables_of_a_newer_version_are_refused_and_left", a_newer_version),
    ("store::many_servers_open_an_empty_database_at_once", many_open),
];

pub fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

fn new(sandbox: &str) -> NewSandbox {
    NewSandbox {
        pool: name("p"),
        name: name(sandbox),
        id: SandboxId::generate(),
        provider: "demo".to_owned(),
        lives_with_its_process: false,
        image: Some("an image".to_owned()),
        spec: SandboxSpec::default(),
        services: Vec::new(),
        sleep_after_ms: Some(u64::MAX),
        deadline_ms: Some(7),
        snapshots_mib: 0,
    }
}

/// Two servers, with the pool `p`.
fn two(database: &TestDatabase<'_>) -> [Arc<Store>; 2] {
    let stores = [database.store(), database.store()];
    stores[0].put_pool(&name("p"), &serde_json::json!({})).unwrap();
    stores
}

fn making(store: &Store, sandbox: &str) -> SandboxRow {
    match store.begin_making(&new(sandbox), &PoolQuotas::default()).unwrap() {
        NameReservation::New(row) => *row,
        NameReservation::InUse(row) => panic!("in use: {row:?}"),
    }
}

fn live(store: &Store, sandbox: &str) -> SandboxRow {
    store.finish_making(&making(store, sandbox).id).unwrap()
}

fn one_gets_a_name(database: &TestDatabase<'_>) {
    let stores = two(database);
    let begin =
        |number: usize| stores[number % 2].begin_making(&new("same"), &PoolQuotas::default()).unwrap();
    let all: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> = (0..40).map(|number| scope.spawn(move || begin(number))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let (made, used): (Vec<_>, Vec<_>) =
        all.iter().partition(|asked| matches!(asked, NameReservation::New(_)));
    let [NameReservation::New(row)] = made.as_slice() else { panic!("{made:?}") };
    assert!(used.iter().all(|used| matches!(used, NameReservation::InUse(other) if other.id == row.id)));
}

fn a_quota_holds(database: &TestDatabase<'_>) {
    let stores = two(database);
    let quotas = PoolQuotas { max_sandboxes: Some(5), processes: Some(100), ..PoolQuotas::default() };
    let begin = |number: usize| {
        let limits = Limits { pids: Some(30), ..Limits::default() };
        let spec = SandboxSpec { limits, ..SandboxSpec::default() };
        stores[number % 2].begin_making(&NewSandbox { spec, ..new(&format!("n{number}")) }, &quotas)
    };
    let all: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> = (0..10).map(|number| scope.spawn(move || begin(number))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let refused: Vec<_> = all.iter().filter_map(|asked| asked.as_ref().err()).collect();
    assert_eq!(refused.len(), 7, "{all:?}");
    assert!(refused.iter().all(|error| error.kind() == ErrorKind::Quota));
    let used = stores[1].quota_use(&name("p")).unwrap();
    assert_eq!((used.sandboxes, used.processes), (3, 90));
}

fn a_row_has_everything(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let asked = new("dev");
    let NameReservation::New(row) = one.begin_making(&asked, &PoolQuotas::default()).unwrap() else {
        panic!("it is new")
    };
    let found = other.sandbox(&row.id).unwrap().unwrap();
    assert_eq!(found, *row);
    assert_eq!((found.image, found.deadline_ms, found.generation), (asked.image, Some(7), 1));
    // The largest number that a database has means the same: never.
    assert_eq!(found.sleep_after_ms, Some(i64::MAX as u64));
    let changed = one.finish_making(&row.id).unwrap();
    assert_eq!((changed.state, changed.owner), (RowState::Live, None));
    let changed =
        other.change_spec(&row.id, |spec| spec.labels = [("a".into(), "ä\"'".into())].into()).unwrap();
    assert_eq!(one.sandbox_named(&name("p"), &name("dev")).unwrap().unwrap().spec, changed.spec);
    assert!(other.mark_asleep(&row.id, true).unwrap() && !one.mark_asleep(&row.id, true).unwrap());
}

fn work_is_taken_over(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let (of_one, claim) = (making(&one, "dev"), one.claim(&SandboxId::generate()));
    assert!(other.abandoned().unwrap().is_empty());
    assert_eq!(other.begin_removing(&of_one.id).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!other.is_given_up(&of_one).unwrap());
    claim.finish();
    drop(one);
    assert!(other.is_given_up(&of_one).unwrap());
    let taken = other.abandoned().unwrap();
    assert_eq!(taken.iter().map(|row| &row.id).collect::<Vec<_>>(), [&of_one.id]);
    other.begin_removing(&of_one.id).unwrap();
    other.finish_removing(&of_one.id).unwrap();
    assert_eq!(other.sandbox(&of_one.id).unwrap(), None);
}

fn a_silent_server(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let row = making(&one, "dev");
    // One that has just come may not judge.
    database.sql("UPDATE servers SET seen_ms = seen_ms - 31000");
    assert!(database.store().abandoned().unwrap().is_empty());
    let third = database.store_that_outlived_the_others();
    let taken = third.abandoned().unwrap();
    assert_eq!(taken.iter().map(|row| &row.id).collect::<Vec<_>>(), [&row.id]);
    assert!(other.abandoned().unwrap().is_empty());
    // What the silent one still says is refused.
    assert_eq!(one.finish_making(&row.id).unwrap_err().kind(), ErrorKind::Conflict);
}

fn a_claim_in_async_code(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let row = tokio::task::spawn_blocking({
            let one = Arc::clone(&one);
            move || making(&one, "dev")
        });
        let row = row.await.unwrap();
        // A task may be dropped at any await: its claim goes where tasks run.
        drop(one.claim(&row.id));
        // Nobody waits for the database meanwhile.
        let mut changes = other.changes().unwrap().unwrap();
        loop {
            changes.mark_seen();
            let id = row.id.clone();
            let look = move |store: &Arc<Store>| store.is_given_up(&store.sandbox(&id)?.unwrap());
            if other.ask(look).await.unwrap() {
                break;
            }
            changes.changed().await.unwrap();
        }
        // So may the last handle on a store.
        drop(one);
    });
}

fn one_wakes(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let row = live(&one, "dev");
    let WakingTurn::Ours(claim) = one.begin_waking(&row.id).unwrap() else { panic!("nobody wakes it") };
    assert!(matches!(other.begin_waking(&row.id).unwrap(), WakingTurn::Theirs));
    assert!(other.abandoned_wakes().unwrap().is_empty());
    claim.finish();
    // The row still names the server, which ends.
    drop(one);
    let one = database.store();
    assert_eq!(other.abandoned_wakes().unwrap().len(), 1);
    let WakingTurn::TakenOver(claim) = other.begin_waking(&row.id).unwrap() else {
        panic!("it was given up")
    };
    other.finish_waking(&row.id).unwrap();
    claim.finish();
    assert!(matches!(one.begin_waking(&row.id).unwrap(), WakingTurn::Ours(_)));
}

fn keys(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let made = one.add_key("key_1", &name("me"), &[name("p")], [7; 32]).unwrap();
    assert_eq!(other.key_of_hash([7; 32]).unwrap(), Some(made.clone()));
    assert!(other.key_of_hash_at_once([7; 32]).is_none());
    let again = other.add_key("key_2", &name("me"), &[name("p")], [8; 32]).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert!(other.revoke_key("me").unwrap().revoked_ms.is_some());
    assert_eq!(one.key_of_hash([7; 32]).unwrap(), None);
    one.add_key("key_2", &name("me"), &[name("p"), name("q")], [8; 32]).unwrap();
    let all: Vec<_> = other.keys().unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(all, ["key_1", "key_2"]);
}

fn a_change_is_heard(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let mut changes = one.changes().unwrap().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // What was there before is told first.
        changes.changed().await.unwrap();
        changes.mark_seen();
        other.add_key("key_1", &name("me"), &[name("p")], [7; 32]).unwrap();
        changes.changed().await.unwrap();
    });
}

fn pools(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    for pool in ["b", "a-b", "a", "ab"] {
        one.put_pool(&name(pool), &serde_json::json!({ "n": pool })).unwrap();
    }
    let names = |store: &Store| {
        store.pools().unwrap().into_iter().map(|row| row.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&other), ["a", "a-b", "ab", "b", "p"]);
    let changed = other.put_pool(&name("a"), &serde_json::json!({ "n": 2 })).unwrap();
    assert_eq!(one.pool(&name("a")).unwrap(), Some(changed));
    let row = live(&one, "dev");
    assert_eq!(other.remove_pool(&name("p")).unwrap_err().kind(), ErrorKind::Conflict);
    other.begin_removing(&row.id).unwrap();
    other.finish_removing(&row.id).unwrap();
    other.remove_pool(&name("p")).unwrap();
    let missing = one.begin_making(&new("dev"), &PoolQuotas::default()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

fn generations(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    for expected in 1..=3 {
        let row = live(&one, "dev");
        assert_eq!(row.generation, expected);
        other.begin_removing(&row.id).unwrap();
        other.finish_removing(&row.id).unwrap();
    }
}

fn a_restart(_: &TestDatabase<'_>) {
    // The others' goes on.
    let server = Postgres::start().unwrap();
    let database = server.database();
    let [one, other] = two(&database);
    let row = live(&one, "dev");
    server.restart();
    assert_eq!(other.sandbox(&row.id).unwrap(), Some(row.clone()));
    one.begin_removing(&row.id).unwrap();
    one.finish_removing(&row.id).unwrap();
    assert_eq!(other.sandbox(&row.id).unwrap(), None);
}

fn other_sandboxes(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    one.require_sandboxes_of("key a").unwrap();
    other.require_sandboxes_of("key a").unwrap();
    let refused = other.require_sandboxes_of("key b").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    one.require_sandboxes_of("key a").unwrap();
}

fn turns(database: &TestDatabase<'_>) {
    let [one, other] = two(database);
    let minute = std::time::Duration::from_secs(60);
    assert!(one.take_turn("sweep", minute).unwrap());
    assert!(!other.take_turn("sweep", minute).unwrap() && !one.take_turn("sweep", minute).unwrap());
    assert!(other.take_turn("mend", minute).unwrap());
    database.sql("UPDATE turns SET until_ms = until_ms - 60000");
    assert!(other.take_turn("sweep", minute).unwrap() && !one.take_turn("sweep", minute).unwrap());
}

fn many_calls(database: &TestDatabase<'_>) {
    let store = database.store();
    thread::scope(|scope| {
        for number in 0..64 {
            let store = &store;
            scope.spawn(move || {
                store.put_pool(&name(&format!("p{number}")), &serde_json::json!({})).unwrap();
                store.pools().unwrap()
            });
        }
    });
    assert_eq!(store.pools().unwrap().len(), 64);
    database.sql(
        "DO $$ BEGIN IF (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) > 10 \
         THEN RAISE 'too many connections'; END IF; END $$",
    );
}

fn a_newer_version(database: &TestDatabase<'_>) {
    drop(database.store());
    database.sql("INSERT INTO eyot_version VALUES (1), (2)");
    let error = Store::in_database(&database.url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("with 2 more changes"), "{error}");
}

fn many_open(database: &TestDatabase<'_>) {
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| database.store().pools().unwrap());
        }
    });
    let absent = DatabaseUrl::parse("postgresql://eyot@%2Fnowhere/eyot").unwrap();
    assert_eq!(Store::in_database(&absent).unwrap_err().kind(), ErrorKind::Unavailable);
}
