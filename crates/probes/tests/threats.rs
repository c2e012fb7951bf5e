//! Every threat as a test, as root or as an ordinary user. `cargo xtask soak threats` runs them at
//! full size.

use std::process::ExitCode;
use std::sync::Arc;

use eyot_probes::{Case, Verdict, World};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

/// The threats that are tried smaller here than `cargo xtask soak threats` tries them: a GiB, a
/// million files, all rounds of a race.
const OF_FULL_SIZE: [&str; 6] = [
    "f01_a_link_that_is_swapped_during_calls_never_leads_out_of_the_workspace",
    "f01_a_folder_that_is_swapped_during_calls_never_leads_out_of_the_workspace",
    "f01_a_folder_that_is_swapped_while_it_is_watched_tells_nothing_of_where_the_link_leads",
    "e01_a_flood_on_both_streams_is_counted_and_kept_in_flat_memory",
    "e01_a_stream_hands_out_every_byte_of_a_flood",
    "k11_a_directory_of_very_many_files_is_listed_removed_and_goes_with_the_sandbox",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("probe") => eyot_probes::attack(&arguments[2..]),
        _ => run(),
    }
}

fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    // Asked for what is ignored, it is asked for the soak.
    if arguments.ignored {
        eyot_probes::want_slow();
    }
    let folder = std::env::temp_dir();
    let (Ok(runtime), Ok(world), Ok(of_slots)) =
        (Runtime::new(), World::new(&folder), World::of_slots(&folder))
    else {
        eprintln!("the tests can't be prepared");
        return ExitCode::FAILURE;
    };
    let (runtime, world, of_slots) = (Arc::new(runtime), Arc::new(world), Arc::new(of_slots));
    let trials =
        eyot_probes::cases().into_iter().map(|case| trial(case.name.to_owned(), case, &runtime, &world));
    let of_name = |name: &str| eyot_probes::cases().into_iter().find(|case| case.name == name);
    let full = OF_FULL_SIZE.map(|name| of_name(name).expect("a threat of that name")).into_iter();
    let full = full
        .map(|case| trial(format!("soak::{}", case.name), case, &runtime, &world).with_ignored_flag(true));
    // Only root has slots.
    let from_slots = eyot_probes::cases().into_iter().filter(|_| rustix::process::geteuid().is_root());
    let from_slots = from_slots.map(|case| trial(format!("slots::{}", case.name), case, &runtime, &of_slots));
    let conclusion = libtest_mimic::run(&arguments, trials.chain(full).chain(from_slots).collect());
    for world in [world, of_slots] {
        if let Err(error) = runtime.block_on(world.clear()) {
            eprintln!("a failed case's sandbox is left: {error}");
        }
    }
    conclusion.exit_code()
}

fn trial(name: String, case: Case, runtime: &Arc<Runtime>, world: &Arc<World>) -> Trial {
    let (runtime, world) = (runtime.clone(), world.clone());
    Trial::ignorable_test(name, move || completion(runtime.block_on(case.attempt(world))))
}

fn completion(came_to: Result<Verdict, String>) -> Result<Completion, Failed> {
    match came_to {
        Ok(Verdict::Holds) => Ok(Completion::Completed),
        Ok(Verdict::NotHere(reason) | Verdict::NotEnforced(reason)) => Ok(Completion::ignored_with(reason)),
        Ok(Verdict::NotTried(broken)) | Err(broken) => Err(broken.into()),
    }
}
