//! The tasks, and the test of each: it is done on every provider at once, in a new sandbox. The
//! transcript must be the same everywhere, and the expected one.

use std::sync::Arc;
use std::time::Duration;

use eyot::{ErrorKind, IdentityMap, Sandbox, SandboxProvider, SandboxSpec, Security};
use futures_util::future::{LocalBoxFuture, join};
use libtest_mimic::{Completion, Failed, Trial};

use crate::ground::{Ground, NODE, block_on};
use crate::transcript::{Agent, Check};

/// A bound for waits that must not hang.
const HANG: Duration = Duration::from_secs(300);

/// One task of an agent.
#[derive(Clone, Copy)]
struct Task {
    name: &'static str,
    /// The user who does it; by default the image's user, who is not root.
    user: Option<&'static str>,
    /// Set if the task needs files or processes of other users. On native only a caller with a
    /// range of ids can give a sandbox more than one user.
    takes_others: bool,
    run: for<'a, 'b> fn(&'a mut Agent<'b>) -> LocalBoxFuture<'a, Check>,
    /// The expected transcript, from a file with the task's name.
    expected: &'static str,
}

macro_rules! tasks {
    ($($file:ident::$name:ident $(as $user:literal)? $(beside $other:literal)?;)*) => {
        [$(Task {
            name: stringify!($name),
            user: None$(.or(Some($user)))?,
            takes_others: false $(|| !$user.is_empty())? $(|| !$other.is_empty())?,
            run: |agent| Box::pin(crate::$file::$name(agent)),
            expected: include_str!(concat!("expected/", stringify!($name), ".txt")),
        }),*]
    };
}

fn tasks() -> [Task; 24] {
    tasks! {
        building::compile_a_c_program;
        building::run_pytest_mend_and_run_again;
        building::build_an_npm_workspace;
        building::clone_change_and_push_a_repository;
        packages::install_a_wheel_with_pip;
        packages::make_a_virtual_environment;
        packages::install_a_package_with_apt as "root";
        files::write_and_read_200_mb;
        files::use_names_of_all_scripts;
        files::move_a_tree_as_tar;
        files::search_a_tree;
        files::move_and_remove_files;
        files::meet_the_limits_of_a_user beside "root";
        servers::serve_the_web_and_be_reached;
        servers::run_in_the_background_with_logs;
        processes::end_by_codes_and_signals;
        processes::kill_a_tree_at_its_deadline;
        streams::read_standard_input;
        streams::use_a_terminal;
        processes::run_thirty_commands_at_once;
        streams::print_more_than_is_kept;
        settings::see_the_environment;
        settings::tell_the_time_of_a_place;
        settings::keep_data_in_sqlite;
    }
}

/// Makes a test for each task. If only native is there, its transcript is compared with the
/// expected one, and the comparison with Docker shows as ignored.
pub fn trials(ground: &Ground) -> Vec<Trial> {
    tasks().into_iter().flat_map(|task| of_task(ground, task)).collect()
}

fn of_task(ground: &Ground, task: Task) -> Vec<Trial> {
    let both = format!("native_and_docker::{}", task.name);
    let ground = ground.clone();
    match (ground.docker.clone(), ground.native_is_missing()) {
        (Ok(docker), _) => vec![Trial::ignorable_test(both, move || {
            let docker: Arc<dyn SandboxProvider> = docker;
            compare(task, &ground.native()?, &docker)
        })],
        (Err(reason), Some(_)) => vec![ignored(both, reason)],
        (Err(reason), None) => {
            let native = format!("native::{}", task.name);
            let alone = Trial::ignorable_test(native, move || alone(task, &ground.native()?));
            vec![ignored(both, reason), alone]
        }
    }
}

/// Makes a test that is ignored, with the reason.
pub fn ignored(name: String, reason: String) -> Trial {
    Trial::ignorable_test(name, || Ok(Completion::ignored_with(reason)))
}

fn compare(
    task: Task,
    native: &Arc<dyn SandboxProvider>,
    docker: &Arc<dyn SandboxProvider>,
) -> Result<Completion, Failed> {
    if task.takes_others && !is_root() {
        return block_on(has_no_others(task, native));
    }
    let (native, docker) =
        block_on(async { tokio::time::timeout(HANG, join(task.on(native), task.on(docker))).await })?;
    let (native, docker) = (native.map_err(of("native"))?, docker.map_err(of("docker"))?);
    same("docker", &docker, "native", &native)?;
    if std::env::var_os("EYOT_REWRITE_GOLDEN").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tasks/expected");
        std::fs::write(format!("{folder}/{}.txt", task.name), &native)?;
        return Ok(Completion::ignored_with("what is expected was written anew"));
    }
    same("both", &native, "expected", task.expected)?;
    Ok(Completion::Completed)
}

fn alone(task: Task, native: &Arc<dyn SandboxProvider>) -> Result<Completion, Failed> {
    if task.takes_others && !is_root() {
        return block_on(has_no_others(task, native));
    }
    let seen = block_on(async { tokio::time::timeout(HANG, task.on(native)).await })??;
    same("native", &seen, "expected", task.expected)?;
    Ok(Completion::Completed)
}

/// Asserts the reason why the task is not done: an ordinary user's sandbox has only one user, who
/// owns every file of the image.
async fn has_no_others(task: Task, native: &Arc<dyn SandboxProvider>) -> Result<Completion, Failed> {
    let sandbox = match Sandbox::create(&**native, task.spec(native.name())).await {
        Err(error) if error.kind() == ErrorKind::Invalid && task.user.is_some() => {
            return Ok(Completion::ignored_with(error.to_string()));
        }
        made => made?,
    };
    let map = sandbox.isolation().identity;
    sandbox.destroy().await?;
    match map {
        Some(IdentityMap::Single) => {
            Ok(Completion::ignored_with("an ordinary user's sandboxes have one user, whose is every file"))
        }
        map => Err(format!("an ordinary user has a sandbox with {map:?}").into()),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn of(provider: &'static str) -> impl Fn(Failed) -> Failed {
    move |failed| format!("on {provider}: {}", failed.message().unwrap_or_default()).into()
}

/// Fails with the first line that differs, and the whole transcript.
fn same(name: &str, seen: &str, other_name: &str, other: &str) -> Check {
    if seen == other {
        return Ok(());
    }
    let pairs = seen.lines().map(Some).chain(std::iter::repeat(None));
    let others = other.lines().map(Some).chain(std::iter::repeat(None));
    let differ = pairs.zip(others).enumerate().find(|(_, (one, two))| one != two);
    let (line, (one, two)) = differ.unwrap_or_default();
    let (one, two) = (one.unwrap_or("(the end)"), two.unwrap_or("(the end)"));
    let number = line + 1;
    Err(format!("line {number}\n  {name}: {one}\n  {other_name}: {two}\nall of {name}:\n{seen}").into())
}

impl Task {
    fn spec(self, provider: &str) -> SandboxSpec {
        let mut spec = SandboxSpec {
            image: Some(NODE.to_owned()),
            user: self.user.map(str::to_owned),
            ..SandboxSpec::default()
        };
        if provider == "docker" {
            spec.container.pull = eyot::PullPolicy::Never;
            if self.user == Some("root") {
                // Docker's root has only what it is left; native's has about as much in its own user namespace.
                spec.security = Security { drop_capabilities: Vec::new(), ..Security::default() };
            }
        }
        spec
    }

    /// Does the task in a new sandbox, which is destroyed whatever the result.
    async fn on(self, provider: &Arc<dyn SandboxProvider>) -> Check<String> {
        let sandbox = Sandbox::create(&**provider, self.spec(provider.name())).await?;
        let mut agent = Agent::new(&sandbox);
        let done = (self.run)(&mut agent).await;
        let told = agent.told();
        sandbox.destroy().await?;
        match done {
            Ok(()) => Ok(told),
            Err(failed) => Err(format!("{}\nso far:\n{told}", failed.message().unwrap_or_default()).into()),
        }
    }
}
