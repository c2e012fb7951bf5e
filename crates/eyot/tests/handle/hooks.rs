use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    DestroyEvent, Error, ErrorKind, ExecEndEvent, ExecOptions, ExecStartEvent, FileWriteEvent, Manifest,
    Observer, OrphanSettlement, Result, Sandbox, SandboxEvent, SandboxSpec, WorkspaceExec,
};

use crate::scripted::{Log, Provider, Scripted, error};

/// Writes down what it is told, and refuses what the test wants refused.
#[derive(Default)]
pub struct Recorder {
    log: Log,
    told: tokio::sync::Notify,
    pub refuses: Option<&'static str>,
}

impl Recorder {
    pub fn lines(&self) -> Vec<String> {
        self.log.lines()
    }

    pub async fn until(&self, beginning: &str) {
        while self.log.count(beginning) == 0 {
            self.told.notified().await;
        }
    }

    fn hear(&self, line: String) -> Result<()> {
        let refused = self.refuses.is_some_and(|refused| line.starts_with(refused));
        self.log.add(line);
        self.told.notify_one();
        if refused { Err(Error::new(ErrorKind::Conflict, "the observer refuses")) } else { Ok(()) }
    }
}

#[async_trait]
impl Observer for Recorder {
    async fn sandbox_created(&self, _event: &SandboxEvent) -> Result<()> {
        self.hear("created".into())
    }
    async fn exec_started(&self, event: &ExecStartEvent) -> Result<()> {
        self.hear(format!("started {}", event.command))
    }
    async fn exec_ended(&self, event: &ExecEndEvent) -> Result<()> {
        self.hear(format!("ended {:?}", event.result.outcome))
    }
    async fn file_written(&self, event: &FileWriteEvent) -> Result<()> {
        self.hear(format!("written {} {}", event.path, event.size))
    }
    async fn destroyed(&self, _event: &DestroyEvent) -> Result<()> {
        self.hear("destroyed".into())
    }
    async fn orphan_settled(&self, settlement: OrphanSettlement) {
        let line = match settlement.result {
            Ok(result) => format!("orphan {:?} {}", result.outcome, result.stdout_text()),
            Err(error) => format!("orphan {}", error.kind()),
        };
        self.hear(line).unwrap();
    }
}

fn furnished() -> SandboxSpec {
    let files = BTreeMap::from([("b\\c.txt".to_owned(), Bytes::from("abc")), ("a".to_owned(), Bytes::new())]);
    let manifest = Manifest { files, directories: vec!["d/e".into()], env: BTreeMap::new() };
    SandboxSpec { manifest, ..SandboxSpec::default() }
}

#[tokio::test]
async fn hooks_come_in_the_seeds_order_and_the_manifest_runs_no_exec_hooks() {
    let driver = Scripted::new(&[]);
    let recorder = Arc::new(Recorder::default());
    let sandbox =
        Sandbox::create_observed(&Provider::of(&driver), furnished(), recorder.clone()).await.unwrap();
    let mut commands = driver.commands();
    let (result, ()) = tokio::join!(sandbox.exec("x", ExecOptions::default()), async {
        commands.recv().await.unwrap().exit(1);
    });
    result.unwrap();
    sandbox.write("f/../g", "12").await.unwrap();
    sandbox.workspace().write_text_file("h\\i", "ä").await.unwrap();
    sandbox.destroy().await.unwrap();
    sandbox.clone().destroy().await.unwrap();
    let heard = [
        "written a 0",
        "written b/c.txt 3",
        "created",
        "started x",
        "ended Exited(1)",
        "written /workspace/g 2",
        "written h/i 2",
        "destroyed",
    ];
    assert_eq!(recorder.lines(), heard);
    assert_eq!(driver.log.lines()[1], "mkdir /workspace/d/e recursive=true");
    assert_eq!(driver.log.count("destroy"), 1);
}

#[tokio::test]
async fn a_create_that_fails_after_the_backend_made_something_destroys_it_and_tells_the_first_error() {
    for refuses in ["created", "written"] {
        let driver = Scripted::new(&[]);
        let recorder = Arc::new(Recorder { refuses: Some(refuses), ..Recorder::default() });
        let created = Sandbox::create_observed(&Provider::of(&driver), furnished(), recorder.clone()).await;
        assert_eq!(created.unwrap_err().to_string(), "the observer refuses");
        assert_eq!(driver.log.count("destroy"), 1);
        assert!(!recorder.lines().contains(&"destroyed".to_owned()));
    }
}

#[tokio::test]
async fn a_create_that_is_given_up_halfway_destroys_what_was_made() {
    struct Stuck;
    #[async_trait]
    impl Observer for Stuck {
        async fn sandbox_created(&self, _event: &SandboxEvent) -> Result<()> {
            std::future::pending().await
        }
    }
    let driver = Scripted::new(&[]);
    let provider = Provider::of(&driver);
    let create = Sandbox::create_observed(&provider, SandboxSpec::default(), Arc::new(Stuck));
    assert!(futures_util::FutureExt::now_or_never(create).is_none());
    while driver.log.count("destroy") == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_that_could_not_be_started_has_no_end() {
    let driver = Scripted::new(&[]);
    driver.refusals.lock().unwrap().push_back(error(ErrorKind::NotFound));
    let recorder = Arc::new(Recorder::default());
    let sandbox = Sandbox::create_observed(&Provider::of(&driver), SandboxSpec::default(), recorder.clone())
        .await
        .unwrap();
    let exec = WorkspaceExec { command: "nope".into(), ..WorkspaceExec::default() };
    assert_eq!(sandbox.workspace().exec(exec).await.unwrap().exit_code, 127);
    assert_eq!(recorder.lines(), ["created", "started nope"]);
}

#[tokio::test]
async fn an_observer_that_refuses_a_command_keeps_it_from_starting() {
    let driver = Scripted::new(&[]);
    let recorder = Arc::new(Recorder { refuses: Some("started"), ..Recorder::default() });
    let sandbox =
        Sandbox::create_observed(&Provider::of(&driver), SandboxSpec::default(), recorder).await.unwrap();
    assert_eq!(sandbox.exec("x", ExecOptions::default()).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(driver.log.count("exec"), 0);
}
