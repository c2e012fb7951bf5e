//! The vendor's own bridge, from npm, in workerd: the provider's contract over it, and over the containers of the stand-in.
//! And the client of the bridge that OpenAI's SDK has, from PyPI, over both the vendor's bridge and the stand-in of it. Where
//! packages can't be had the tests show as ignored, with the reason.

#[path = "../../../agent/tests/npm/mod.rs"]
mod npm;
#[path = "../../../server/tests/e2b_sdks/pip.rs"]
mod pip;
#[path = "../cloudflare/stand_in/mod.rs"]
#[allow(dead_code, reason = "shared with the other tests of the provider")]
mod stand_in;
mod vendor_bridge;

use std::process::Command;
use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::{Case, Fixture, Verdict, cases};
use eyot_providers::cloudflare::EXCEPTIONS;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use npm::{Missing, NpmPackages};
use pip::PipPackages;
use vendor_bridge::{KEY, StandInServer, VendorBridge, block_on};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cloudflare_bridge/clients");
const BRIDGE: [&str; 3] = ["serve.mjs", "worker.mjs", "container.mjs"];
const PYTHON: &str = "client.py";

/// The cases of `client.py`.
const PYTHON_CASES: [&str; 3] = [
    "a_command_runs_and_files_are_written_and_read",
    "a_workspace_is_packed_and_unpacked",
    "a_terminal_is_typed_into",
];

/// The rules that are tried where not all are wanted: at least one of each kind of call.
const CORE: &[&str] = &[
    "a_tree_comes_back_from_its_tar_stream_alike",
    "a_started_process_runs_on_and_its_end_is_waited_for",
    "a_terminal_has_the_size_that_was_asked_for",
    "a_signal_reaches_a_terminals_foreground",
    "a_port_is_waited_for_until_something_listens",
    "a_destroyed_sandbox_is_gone_and_its_name_is_free",
    "another_handle_notices_that_its_sandbox_was_destroyed",
    "a_provider_removes_a_sandbox_by_its_name",
    "destroying_twice_is_fine_at_once_or_one_after_the_other",
    "dropping_a_stream_kills_the_tree",
    "a_stream_hands_out_output_while_the_command_runs",
    "floods_on_both_streams_are_drained_and_counted",
    "bytes_that_are_no_text_come_back_untouched",
    "a_calls_variables_arrive_verbatim",
    "arguments_reach_a_program_as_they_are",
    "a_program_s_exit_code_and_its_two_streams_come_back",
    "what_one_command_wrote_the_next_one_reads",
    "a_deadline_ends_a_command_with_its_output_so_far",
    "an_append_makes_the_file_and_adds_to_its_end",
    "f7_ten_large_appends_at_once_stay_whole",
    "a_write_through_a_link_replaces_the_target_and_leaves_the_link",
    "glob_two_stars_cross_segments",
    "grep_finds_lines_with_file_and_number",
    "a_manifests_files_and_directories_are_there_at_the_start",
    "a_process_survives_the_handle_that_started_it",
    "a_kept_terminal_is_found_again_as_it_was",
    "everything_that_runs_is_listed_whoever_started_it",
    "the_port_of_one_sandbox_is_not_the_port_of_another",
];
/// The variable that asks for every rule.
const WHOLE: &str = "EYOT_TEST_WHOLE_BRIDGE";

struct OverBridge(Arc<VendorBridge>);

impl Fixture for OverBridge {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.0.provider()
    }

    fn exceptions(&self) -> &'static [(&'static str, &'static str)] {
        EXCEPTIONS
    }

    fn rounds(&self) -> usize {
        1
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let npm = NpmPackages::install(&arguments, "cloudflare-bridge", SOURCES, &BRIDGE);
    let pip = PipPackages::install(&arguments, "cloudflare-python", SOURCES, &[PYTHON]);
    let bridge = npm.and_then(|npm| VendorBridge::start(&npm).map(Arc::new).map_err(Missing::Broken));
    let mut trials: Vec<Trial> = wanted().into_iter().map(|case| conformance(case, &bridge)).collect();
    trials.extend(PYTHON_CASES.iter().map(|case| {
        npm::trial(&format!("stand_in::python_{case}"), &pip, move |pip| {
            let server = StandInServer::start();
            run(pip.command(PYTHON).args([case, server.url.as_str()]))
        })
    }));
    let done = libtest_mimic::run(&arguments, trials);
    if let Ok(bridge) = bridge {
        bridge.end();
    }
    done.exit();
}

/// Returns the rules that are tried: every one takes ten minutes.
fn wanted() -> Vec<Case> {
    let all = cases();
    if std::env::var_os(WHOLE).is_some() {
        return all;
    }
    let core: Vec<Case> = all.into_iter().filter(|case| CORE.contains(&case.name)).collect();
    assert_eq!(core.len(), CORE.len(), "a rule has another name by now");
    core
}

fn conformance(case: Case, bridge: &Result<Arc<VendorBridge>, Missing>) -> Trial {
    let name = format!("bridge::{}", case.name);
    let bridge = match bridge {
        Ok(bridge) => Arc::clone(bridge),
        Err(Missing::NotHere(reason)) => {
            return Trial::test(name, || Ok(())).with_kind(reason.clone()).with_ignored_flag(true);
        }
        Err(Missing::Broken(reason)) => {
            let reason = reason.clone();
            return Trial::test(name, move || Err(reason.into()));
        }
    };
    Trial::ignorable_test(name, move || match block_on(case.attempt(Arc::new(OverBridge(bridge)))) {
        Ok(Verdict::Holds) => Ok(Completion::Completed),
        Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
        Err(broken) => Err(broken.into()),
    })
}

/// Runs a program of the client.
fn run(command: &mut Command) -> Result<(), Failed> {
    let output = command.env("CLOUDFLARE_SANDBOX_API_KEY", KEY).output()?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{}\n{out}\n{err}", output.status).into())
}
