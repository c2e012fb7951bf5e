//! Rounds over a Docker Engine: each of a sandbox's operations, then the same by the Engine's own
//! API, then by the program `docker`, so that a noisy machine disturbs all three alike.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use eyot::{Command as Run, Error, ErrorKind, ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use eyot_providers::docker::Baseline;

use super::rounds::quietly;
use super::{Item, Items};
use crate::errors::Failure;

const API_EXEC: Item = Item::plain("Engine's API: exec, attached");
const API_CREATE: Item = Item::plain("Engine's API: create and start a container");
const API_REMOVE: Item = Item::plain("Engine's API: remove by force");
const EXEC: Item = Item::ratio("exec /bin/true", API_EXEC.name, 0.067);
const CREATE: Item = Item::beside("create → ready", API_CREATE.name);
const DESTROY: Item = Item::beside("destroy", API_REMOVE.name);
const CLI_EXEC: Item = Item::beside("docker exec", API_EXEC.name);
const CLI_CREATE: Item = Item::beside("docker run -d", API_CREATE.name);
const CLI_REMOVE: Item = Item::beside("docker rm -f", API_REMOVE.name);

/// A file of this size, written and read.
struct Size {
    bytes: usize,
    write: [Item; 3],
    read: [Item; 3],
}

const SMALL: Size = Size {
    bytes: 1 << 10,
    write: [
        Item::beside("write 1 KiB", "Engine's API: PUT archive of 1 KiB").within(2_000.0),
        Item::plain("Engine's API: PUT archive of 1 KiB"),
        Item::beside("docker cp of 1 KiB in", "Engine's API: PUT archive of 1 KiB"),
    ],
    read: [
        Item::beside("read 1 KiB", "Engine's API: GET archive of 1 KiB"),
        Item::plain("Engine's API: GET archive of 1 KiB"),
        Item::beside("docker cp of 1 KiB out", "Engine's API: GET archive of 1 KiB"),
    ],
};
const LARGE: Size = Size {
    bytes: 1 << 20,
    write: [
        Item::beside("write 1 MiB", "Engine's API: PUT archive of 1 MiB"),
        Item::plain("Engine's API: PUT archive of 1 MiB"),
        Item::beside("docker cp of 1 MiB in", "Engine's API: PUT archive of 1 MiB"),
    ],
    read: [
        Item::beside("read 1 MiB", "Engine's API: GET archive of 1 MiB"),
        Item::plain("Engine's API: GET archive of 1 MiB"),
        Item::beside("docker cp of 1 MiB out", "Engine's API: GET archive of 1 MiB"),
    ],
};

/// The folder for files in the Engine's own containers.
const DIRECTORY: &str = "/tmp";

/// The subjects of a round.
pub struct EngineRounds<'a> {
    /// The provider of the sandboxes.
    pub provider: &'a dyn SandboxProvider,
    /// The spec of each sandbox.
    pub spec: SandboxSpec,
    /// The sandbox that lives through all rounds.
    pub live: &'a Sandbox,
    /// The Engine's API, without Eyot.
    pub baseline: &'a Baseline,
    /// The name of a container that Eyot did not make, which lives through all rounds. The names of
    /// those of each round begin with it.
    pub container: String,
    /// The image.
    pub image: String,
    /// Set if there is a program `docker`.
    pub has_program: bool,
    /// A folder for the benchmark's files.
    pub folder: PathBuf,
}

impl EngineRounds<'_> {
    /// Runs one round.
    pub async fn round(&self, items: &mut Items) -> Result<(), Failure> {
        self.commands(items).await?;
        for size in [&SMALL, &LARGE] {
            self.files(items, size).await?;
        }
        self.fresh(items).await
    }

    async fn commands(&self, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        let result = self.live.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        items.note(EXEC, since);
        ensure_success("run /bin/true in the sandbox", result.success())?;
        let since = Instant::now();
        let code = self.baseline.exec(&self.container, &["/bin/true"]).await?;
        items.note(API_EXEC, since);
        ensure_success("run /bin/true in the container", code == 0)?;
        self.program(items, CLI_EXEC, &["exec", &self.container, "/bin/true"])
    }

    async fn files(&self, items: &mut Items, size: &Size) -> Result<(), Failure> {
        let content = vec![7; size.bytes];
        let since = Instant::now();
        self.live.write("file", content.clone()).await?;
        items.note(size.write[0], since);
        let since = Instant::now();
        self.baseline.write(&self.container, DIRECTORY, "file", &content).await?;
        items.note(size.write[1], since);
        let outside = self.folder.join("file");
        std::fs::write(&outside, &content).map_err(|error| Failure::host("write a file", error))?;
        let (outside, inside) =
            (outside.display().to_string(), format!("{}:{DIRECTORY}/file", self.container));
        self.program(items, size.write[2], &["cp", &outside, &inside])?;
        let since = Instant::now();
        let read = self.live.read("file").await?;
        items.note(size.read[0], since);
        ensure_success("read the whole file", read.len() == size.bytes)?;
        let since = Instant::now();
        let read = self.baseline.read(&self.container, &format!("{DIRECTORY}/file")).await?;
        items.note(size.read[1], since);
        ensure_success("read the whole archive", read > size.bytes)?;
        self.program(items, size.read[2], &["cp", &inside, &outside])
    }

    async fn fresh(&self, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        let sandbox = Sandbox::create(self.provider, self.spec.clone()).await?;
        items.note(CREATE, since);
        let [by_api, by_program] = self.fresh_names();
        let since = Instant::now();
        self.baseline.create(&by_api).await?;
        items.note(API_CREATE, since);
        let hardened = ["--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
        let labels = self.spec.labels.iter().map(|(key, value)| format!("--label={key}={value}"));
        let labels: Vec<String> = labels.collect();
        let named = ["run", "-d", "--pull", "never", "--name", &by_program, "--entrypoint", "sleep"];
        let run = named.into_iter().chain(hardened).chain(labels.iter().map(String::as_str));
        let run: Vec<&str> = run.chain([self.image.as_str(), "3600"]).collect();
        self.program(items, CLI_CREATE, &run)?;
        let since = Instant::now();
        sandbox.destroy().await?;
        items.note(DESTROY, since);
        let since = Instant::now();
        self.baseline.remove(&by_api).await?;
        items.note(API_REMOVE, since);
        self.program(items, CLI_REMOVE, &["rm", "-f", "-v", &by_program])
    }

    fn fresh_names(&self) -> [String; 2] {
        ["api", "program"].map(|who| format!("{}-{who}", self.container))
    }

    /// Runs `docker` once, if it exists.
    fn program(&self, items: &mut Items, item: Item, arguments: &[&str]) -> Result<(), Failure> {
        if !self.has_program {
            return Ok(());
        }
        let since = Instant::now();
        quietly(Command::new("docker").args(arguments))?;
        items.note(item, since);
        Ok(())
    }

    /// Removes the containers that are left and that Eyot did not make.
    pub async fn clear(&self) -> eyot::Result<()> {
        let [by_api, by_program] = self.fresh_names();
        for name in [&self.container, &by_api, &by_program] {
            self.baseline.remove(name).await?;
        }
        Ok(())
    }
}

fn ensure_success(what: &str, succeeded: bool) -> Result<(), Failure> {
    if succeeded { Ok(()) } else { Err(Error::new(ErrorKind::Internal, format!("{what}: failed")).into()) }
}
