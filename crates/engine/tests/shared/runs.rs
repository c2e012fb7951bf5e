//! Runs of agents on several servers.

use eyot::ErrorKind;
use eyot_engine::store::{
    AgentChange, AgentRunFilter, AgentRunRow, AgentRunStatus, MAX_ENDED_RUNS_PER_INSTANCE,
};

use crate::Case;
use crate::postgres::TestDatabase;

pub const CASES: &[(&str, Case)] = &[
    ("runs::a_run_of_a_server_that_ended_is_taken_over_once", taken_over),
    ("runs::events_steps_and_conversations_are_kept_in_order", in_order),
    ("runs::runs_are_found_by_what_is_wanted", found),
    ("runs::an_instance_keeps_its_last_runs", last_runs),
];

fn run(id: &str) -> AgentRunRow {
    AgentRunRow {
        id: id.to_owned(),
        pool: None,
        instance: "i".into(),
        agent: "a".into(),
        sandbox: None,
        status: AgentRunStatus::Active,
        payload: "{}".into(),
        options: None,
        result: None,
        error: None,
        started_ms: 1,
        ended_ms: None,
    }
}

fn event(number: u64) -> AgentChange {
    AgentChange::Event { number, kind: "log".into(), event: format!("{{\"n\":{number}}}") }
}

fn end() -> AgentChange {
    AgentChange::End { status: AgentRunStatus::Completed, result: Some("7".into()), error: None }
}

fn taken_over(database: &TestDatabase<'_>) {
    let [one, other] = [database.store(), database.store()];
    let lease = one.begin_agent_run(&run("r")).unwrap();
    assert!(other.take_agent_run("r").unwrap().is_none() && other.abandoned_agent_runs().unwrap().is_empty());
    assert_eq!(other.begin_agent_run(&run("r")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let third = database.store_that_outlived_the_others();
    assert_eq!(third.abandoned_agent_runs().unwrap(), ["r"]);
    let taken = third.take_agent_run("r").unwrap().unwrap();
    assert_eq!(one.write_agents(Some(&lease), &[event(0)]).unwrap_err().kind(), ErrorKind::Conflict);
    third.write_agents(Some(&taken), &[event(0), end()]).unwrap();
    assert!(other.take_agent_run("r").unwrap().is_none());
    let row = other.agent_run("r").unwrap().unwrap();
    assert_eq!((row.status, row.result.as_deref()), (AgentRunStatus::Completed, Some("7")));
}

fn in_order(database: &TestDatabase<'_>) {
    let [one, other] = [database.store(), database.store()];
    let lease = one.begin_agent_run(&run("r")).unwrap();
    let step = |step: &str| AgentChange::Step { session: "s".into(), number: 0, step: step.into() };
    let append = |entry: &str| AgentChange::Append { key: "k".into(), entry: entry.into() };
    let begin = AgentChange::Begin { key: "k".into() };
    one.write_agents(Some(&lease), &[begin.clone(), append("1"), append("2"), event(0), event(1), step("a")])
        .unwrap();
    one.write_agents(Some(&lease), &[step("b")]).unwrap();
    // All or nothing: there is an event with this number.
    one.write_agents(Some(&lease), &[append("3"), event(1)]).unwrap_err();
    assert_eq!(other.agent_conversation("k").unwrap().unwrap(), ["1", "2"]);
    assert_eq!(other.agent_events("r", 1, 9).unwrap(), ["{\"n\":1}"]);
    assert_eq!(other.agent_steps("r").unwrap(), [("s".to_owned(), 0, "b".to_owned())]);
    let second = other.begin_agent_run(&run("q")).unwrap();
    assert_eq!(
        other.write_agents(Some(&second), std::slice::from_ref(&begin)).unwrap_err().kind(),
        ErrorKind::Conflict
    );
    one.write_agents(Some(&lease), &[end()]).unwrap();
    other.write_agents(Some(&second), &[begin, AgentChange::Delete { key: "k".into() }]).unwrap();
    assert_eq!(one.agent_conversation("k").unwrap(), None);
}

fn found(database: &TestDatabase<'_>) {
    let store = database.store();
    let rows = [("r1", Some("p"), "x", 1), ("r2", Some("q"), "y", 2), ("r3", None, "z", 3)];
    let leases = rows.map(|(id, pool, instance, started_ms)| {
        let pool = pool.map(str::to_owned);
        store
            .begin_agent_run(&AgentRunRow { pool, instance: instance.into(), started_ms, ..run(id) })
            .unwrap()
    });
    let ids = |filter: AgentRunFilter| {
        store.agent_runs(&filter).unwrap().into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    let all = AgentRunFilter { limit: 10, ..AgentRunFilter::default() };
    let of = |pools: &[&str]| Some(pools.iter().map(|pool| (*pool).to_owned()).collect::<Vec<_>>());
    assert_eq!(ids(all.clone()), ["r3", "r2", "r1"]);
    assert_eq!(ids(AgentRunFilter { pools: of(&["p", "q"]), limit: 1, ..all.clone() }), ["r2"]);
    assert!(ids(AgentRunFilter { pools: of(&[]), ..all.clone() }).is_empty());
    assert_eq!(ids(AgentRunFilter { before: Some((2, "r2".into())), is_brief: true, ..all.clone() }), ["r1"]);
    assert!(ids(AgentRunFilter { status: Some(AgentRunStatus::Errored), ..all }).is_empty());
    assert_eq!(store.agent_instances("a", of(&["p", "q"]).as_deref(), "", 10).unwrap(), ["x", "y"]);
    assert_eq!(store.agent_instances("a", None, "x", 1).unwrap(), ["y"]);
    drop(leases);
}

fn last_runs(database: &TestDatabase<'_>) {
    let store = database.store();
    for number in 0..=MAX_ENDED_RUNS_PER_INSTANCE {
        let started_ms = i64::try_from(number).unwrap();
        let lease = store.begin_agent_run(&AgentRunRow { started_ms, ..run(&format!("r{number}")) }).unwrap();
        store.write_agents(Some(&lease), &[event(0), end()]).unwrap();
    }
    assert_eq!(store.agent_run("r0").unwrap(), None);
    assert_eq!(store.agent_events("r1", 0, 1).unwrap().len(), 1);
}
