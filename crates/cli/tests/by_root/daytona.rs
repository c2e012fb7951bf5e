//! `eyot --provider daytona` against a stand-in of Daytona's API and toolboxes, with native sandboxes.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;

use crate::Case;
use crate::daytona_stand_in::{KEY, StandIn};
use crate::machine::{Machine, Ran};
use crate::vendor_rules::{a_file_goes_in_and_out, a_tree_goes_there_and_back, adopted, are_refused, names};

pub fn trials() -> Vec<Case> {
    vec![
        (
            "a_sandbox_of_daytona_is_made_used_found_by_later_commands_and_removed",
            a_sandbox_of_daytona_is_made_used_found_by_later_commands_and_removed,
        ),
        (
            "a_sandbox_of_daytona_sleeps_and_the_next_command_wakes_it",
            a_sandbox_of_daytona_sleeps_and_the_next_command_wakes_it,
        ),
        (
            "what_daytona_does_not_have_is_refused_with_the_reason",
            what_daytona_does_not_have_is_refused_with_the_reason,
        ),
        (
            "without_a_key_of_daytona_the_error_says_where_it_belongs",
            without_a_key_of_daytona_the_error_says_where_it_belongs,
        ),
        (
            "a_sandbox_of_daytona_of_somebody_else_is_adopted_and_its_removal_leaves_it",
            a_sandbox_of_daytona_of_somebody_else_is_adopted_and_its_removal_leaves_it,
        ),
        ("a_tree_goes_from_native_to_daytona_and_back", a_tree_goes_from_native_to_daytona_and_back),
    ]
}

/// A machine, and the vendor elsewhere.
struct Vendor {
    machine: Machine,
    stand_in: StandIn,
    runtime: Runtime,
}

impl Vendor {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let stand_in = runtime.block_on(StandIn::start(0));
        Self { machine: Machine::new(), stand_in, runtime }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command(&[&["--provider", "daytona"], arguments].concat());
        command.env("DAYTONA_API_URL", &self.stand_in.url).env("DAYTONA_API_KEY", KEY);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Returns the names of the sandboxes that `eyot ls` shows.
    fn names(&self) -> Vec<String> {
        names(|arguments| self.run(arguments))
    }

    /// Makes a sandbox as another program does.
    fn foreign(&self) -> String {
        self.runtime.block_on(async {
            let Ok(machine) = self.stand_in.machines.create(&json!({ "name": "theirs" })) else {
                panic!("it can't be made")
            };
            while !machine.is("started") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            machine.id.clone()
        })
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.runtime.block_on(self.stand_in.end());
    }
}

fn a_sandbox_of_daytona_is_made_used_found_by_later_commands_and_removed() {
    let vendor = Vendor::new();
    assert_eq!(vendor.run(&["create", "--name", "job", "-e", "WORD=kept"]).success(), "job\n");
    let ran = vendor.run(&["exec", "job", "--", "sh", "-c", "echo $WORD; pwd; echo bad >&2; exit 3"]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(3), &b"kept\n/workspace\n"[..]), "{ran:?}");
    assert!(ran.stderr.starts_with("bad\n"), "{ran:?}");
    a_file_goes_in_and_out(&vendor.machine, |arguments| vendor.run(arguments));
    assert_eq!(vendor.names(), ["job"]);
    let shown = vendor.run(&["inspect", "job"]).success();
    assert!(shown.contains("daytona") && shown.contains("kept"), "{shown}");
    vendor.run(&["rm", "job"]).success();
    assert!(vendor.names().is_empty());
    assert!(vendor.stand_in.machines.all().is_empty());
    let gone = vendor.run(&["exec", "job", "true"]);
    assert!(gone.failure(125).contains("job"), "{gone:?}");
}

fn a_sandbox_of_daytona_sleeps_and_the_next_command_wakes_it() {
    let vendor = Vendor::new();
    vendor.run(&["create", "--name", "job"]).success();
    vendor.run(&["exec", "job", "--", "sh", "-c", "echo kept >file"]).success();
    vendor.run(&["sleep", "job"]).success();
    let listed = vendor.run(&["ls"]).success();
    assert!(listed.contains("sleeping"), "{listed}");
    assert!(vendor.stand_in.machines.find("job").unwrap().is("stopped"));
    vendor.run(&["wake", "job"]).success();
    assert_eq!(vendor.run(&["exec", "job", "--", "cat", "file"]).success(), "kept\n");
    vendor.run(&["sleep", "job"]).success();
    vendor.run(&["rm", "job"]).success();
    assert!(vendor.stand_in.machines.all().is_empty());
}

fn what_daytona_does_not_have_is_refused_with_the_reason() {
    let vendor = Vendor::new();
    vendor.run(&["create", "--name", "job"]).success();
    let refused = [
        (&["create", "--ttl", "1h"][..], "with --ttl"),
        (&["create", "--net", "host"], "--net"),
        (&["create", "--user", "root"], "--user"),
        (&["create", "--require", "memory", "--memory", "1g"], "require"),
        (&["snapshot", "job"], "daytona does not support"),
    ];
    are_refused(&refused, |arguments| vendor.run(arguments));
    assert_eq!(vendor.names(), ["job"]);
}

fn without_a_key_of_daytona_the_error_says_where_it_belongs() {
    let vendor = Vendor::new();
    let ran = Ran::from(vendor.command(&["ls"]).env_remove("DAYTONA_API_KEY").output().unwrap());
    assert!(ran.stderr.contains("Daytona needs a key") && ran.stderr.contains("DAYTONA_API_KEY"), "{ran:?}");
    let wrong = Ran::from(vendor.command(&["ls"]).env("DAYTONA_API_KEY", "dtn_wrong").output().unwrap());
    assert!(
        wrong.stderr.contains("Daytona refused the key") && !wrong.stderr.contains("dtn_wrong"),
        "{wrong:?}"
    );
    let open =
        Ran::from(vendor.command(&["ls"]).env("DAYTONA_API_URL", "http://a.lab/api").output().unwrap());
    assert!(open.stderr.contains("https"), "{open:?}");
}

fn a_sandbox_of_daytona_of_somebody_else_is_adopted_and_its_removal_leaves_it() {
    let vendor = Vendor::new();
    let id = vendor.foreign();
    let own = adopted(&id, |arguments| vendor.run(arguments));
    let ran = vendor.run(&["exec", &own, "--", "sh", "-c", "echo here; pwd"]).success();
    assert_eq!(ran, "here\n/tmp\n");
    vendor.run(&["rm", &own]).success();
    assert_eq!(vendor.run(&["ls", "-q"]).stdout, b"");
    assert!(vendor.stand_in.machines.find(&id).unwrap().is("started"));
    let unknown = vendor.run(&["adopt", "sb-0"]);
    assert!(unknown.stderr.contains("Daytona has no sandbox `sb-0`"), "{unknown:?}");
}

fn a_tree_goes_from_native_to_daytona_and_back() {
    let vendor = Vendor::new();
    a_tree_goes_there_and_back(&vendor.machine, "daytona", |arguments| vendor.run(arguments));
}
