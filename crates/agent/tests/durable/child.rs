//! The process that is killed.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use eyot_agent::{AgentStore, Agents, EngineStore};
use eyot_engine::store::Store;
use serde_json::json;

use crate::killing_store::KillingStore;
use crate::scenario;

/// The variables that give a process its role.
pub(crate) const CHILD: &str = "EYOT_TEST_DURABLE_ROLE";
pub(crate) const FOLDER: &str = "EYOT_TEST_DURABLE_FOLDER";
pub(crate) const KILL: &str = "EYOT_TEST_DURABLE_KILL";

/// The moment at which a process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

impl Moment {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// Plays a role, and prints the number of commits.
pub(crate) fn play(role: &str) {
    let folder = PathBuf::from(std::env::var(FOLDER).expect("a folder"));
    let kill = std::env::var(KILL).ok().map(|kill| {
        let (moment, number) = kill.split_once(' ').expect("a moment and a number");
        let moment = if moment == "before" { Moment::Before } else { Moment::After };
        (moment, number.parse().expect("a number"))
    });
    let store = EngineStore::new(Store::open(folder.join("eyot.db")).expect("a store"));
    let store = Arc::new(KillingStore::new(store, kill));
    let kept: Arc<dyn AgentStore> = store.clone();
    let agents = Agents::new(kept).with_notes_at_once(1);
    let (is_other, asks_another) = (role == "resume-other", role == "run-and-ask-another");
    agents
        .register("worker", move |context| {
            let folder = folder.clone();
            async move {
                if asks_another {
                    tokio::task::spawn_blocking(ask_another)
                        .await
                        .expect("the other process has found nothing");
                }
                scenario::work(context, folder, is_other).await
            }
        })
        .expect("a new agent");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        match role {
            "run" | "run-and-ask-another" => {
                let run = agents.run("worker", "instance", json!({"n": 1})).await.expect("a run");
                run.result().await.expect("a result");
            }
            "find-nothing" => assert!(agents.resume().await.expect("a look").is_empty()),
            _ => {
                for run in agents.resume().await.expect("runs to go on with") {
                    // The run of a handler that does something else fails.
                    run.result().await.ok();
                }
            }
        }
    });
    println!("{}", store.commits());
}

/// Lets another process look for runs to go on with, while this one has its run.
fn ask_another() {
    let other = Command::new(std::env::current_exe().expect("this program"))
        .env(CHILD, "find-nothing")
        .stdout(Stdio::null())
        .status()
        .expect("another process");
    assert!(other.success(), "the other process took the run over");
}
