//! `eyot doctor` itself.

use serde_json::{Value, json};

use crate::scene::Scene;

crate::tests! {
    here_sandboxes_can_be_made_and_nothing_is_left;
    the_report_has_the_facts_that_it_came_from;
    what_is_weaker_is_a_warning_and_no_error;
    the_apparmor_profile_names_this_program_or_another;
    facts_that_are_none_are_refused;
}

fn here_sandboxes_can_be_made_and_nothing_is_left() -> Result<(), String> {
    let scene = Scene::new();
    let ran = scene.eyot(&["doctor"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for line in ["ok     sandbox", "kernel", "user-namespaces", "state-folder", "Sandboxes can be made here."]
    {
        assert!(ran.stdout.contains(line), "{ran:?}");
    }
    assert_eq!(scene.eyot(&["ls", "-q"]).stdout, "");
    Ok(())
}

fn the_report_has_the_facts_that_it_came_from() -> Result<(), String> {
    let scene = Scene::new();
    let report: Value = serde_json::from_str(&scene.eyot(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(report["works"], true);
    assert!(
        report["findings"].as_array().unwrap().iter().all(|found| found["status"] != "error"),
        "{report}"
    );
    // A report is enough to see on another host what was seen here.
    let again = Scene::new().simulating(report["facts"].clone(), None).eyot(&["doctor", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["facts"]["kernel"], report["facts"]["kernel"]);
    Ok(())
}

fn what_is_weaker_is_a_warning_and_no_error() -> Result<(), String> {
    let facts = json!({
        "landlock_abi": 0, "open_files": 512, "sysctl": { "fs.inotify.max_user_instances": 16 }, "kernel": "5.19.0",
        "state": { "mode": 0o755, "noexec": true, "free_bytes": 100 << 20, "file_system": "tmpfs" },
    });
    let ran = Scene::new().simulating(facts, None).eyot(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    for cause in
        ["no-landlock", "low-limit", "missing-features", "open-to-others", "noexec", "nearly-full", "tmpfs"]
    {
        let found = report["findings"].as_array().unwrap().iter().find(|found| found["cause"] == cause);
        assert!(found.is_some_and(|found| found["status"] == "warn"), "{cause}: {found:?}");
    }
    Ok(())
}

fn the_apparmor_profile_names_this_program_or_another() -> Result<(), String> {
    let scene = Scene::new();
    let own = scene.eyot(&["doctor", "--apparmor-profile"]);
    assert!(own.stdout.contains("/eyot\" flags=(unconfined) {\n  userns,\n"), "{own:?}");
    let other = scene.eyot(&["doctor", "--apparmor-profile=/bin/sh"]);
    let shell = std::path::Path::new("/bin/sh").canonicalize().unwrap();
    assert!(other.stdout.contains(&format!("profile eyot \"{}\" flags", shell.display())), "{other:?}");
    assert!(!scene.path("state").exists(), "printing a profile makes no state folder");
    Ok(())
}

fn facts_that_are_none_are_refused() -> Result<(), String> {
    let ran = Scene::new().simulating(json!({ "moon": 1 }), None).eyot(&["run", "--", "true"]);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    Ok(())
}
