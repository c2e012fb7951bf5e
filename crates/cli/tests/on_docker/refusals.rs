//! Refusals without an Engine: there is none, or the request is impossible.

use crate::Case;
use crate::machine::{Machine, Ran};

pub fn trials() -> Vec<Case> {
    vec![
        ("an_engine_that_does_not_answer_is_one_sentence_and_what_to_start", absent),
        ("an_address_that_is_none_is_refused_by_its_variable", no_address),
        ("doctor_fails_when_docker_is_asked_for_and_none_answers", doctor),
        ("what_only_an_engine_can_do_is_refused_natively_and_makes_nothing", natively),
    ]
}

fn without_engine(machine: &Machine, address: &str, arguments: &[&str]) -> Ran {
    let mut command = machine.command(arguments);
    command.env("EYOT_PROVIDER", "docker").env("DOCKER_HOST", address);
    Ran::from(command.output().unwrap())
}

fn absent() {
    let machine = Machine::new();
    let nowhere = format!("unix://{}", machine.path_text("none.sock"));
    for arguments in
        [&["ls"][..], &["create"], &["run", "--", "true"], &["exec", "x", "--", "true"], &["rm", "x"]]
    {
        let ran = without_engine(&machine, &nowhere, arguments);
        let said = ran.failure(125);
        assert!(
            said.contains("no Docker Engine answers")
                && said.contains("start it")
                && said.contains("EYOT_PROVIDER=native"),
            "{arguments:?}: {said}"
        );
    }
}

fn no_address() {
    let machine = Machine::new();
    let ran = without_engine(&machine, "nonsense", &["ls"]);
    assert!(ran.failure(125).contains("`DOCKER_HOST`"), "{ran:?}");
}

fn doctor() {
    let machine = Machine::new();
    let nowhere = format!("unix://{}", machine.path_text("none.sock"));
    let ran = without_engine(&machine, &nowhere, &["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.text().contains("no Docker Engine answers"), "{ran:?}");
    assert!(!ran.text().contains("EYOT_PROVIDER=native"), "{ran:?}");
}

fn natively() {
    let machine = Machine::new();
    for (flag, value) in [("--net", "bridge"), ("--runtime", "runsc"), ("--add-host", "db:10.0.0.7")] {
        let ran = machine.run(&["create", flag, value]);
        let said = ran.failure(2);
        assert!(said.contains(flag) && said.contains("needs --provider docker"), "{ran:?}");
    }
    machine.assert_empty();
}
