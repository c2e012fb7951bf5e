//! Where the cases play: one provider over a state folder of its own, the attacker's program, and sandboxes
//! that have it inside.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{
    Command, Error, ErrorKind, ExecOptions, ExecResult, IdentityMap, Limits, Mount, Sandbox, SandboxPath,
    SandboxProvider, SandboxSpec,
};
use eyot_native::{NativeOptions, NativeProvider};
use tempfile::TempDir;

use crate::check::{Check, ensure, ensure_eq, not_here};
use crate::facts::Facts;

/// Where the attacker's program is inside.
const ATTACKER: &str = "/attack/threats";
/// What all cases share.
pub struct World {
    provider: Arc<NativeProvider>,
    folder: TempDir,
}

impl World {
    /// Prepares a state folder, and a copy of this program to attack with, in a new folder inside `parent`. It is
    /// removed when the last user drops the world.
    ///
    /// # Errors
    /// The folder can't be made or written to, or native sandboxes can't live in it.
    pub fn new(parent: &Path) -> eyot::Result<Self> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Setup, "prepare a folder for the probes: failed").with_source(error)
        };
        let folder = tempfile::Builder::new().prefix("eyot-threats-").tempdir_in(parent).map_err(failed)?;
        let attack = folder.path().join("attack");
        std::fs::create_dir(&attack).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        std::fs::copy(program, attack.join("threats")).map_err(failed)?;
        let state = folder.path().join("state");
        let provider = NativeProvider::new(NativeOptions { state, ..NativeOptions::default() })?;
        Ok(Self { provider, folder })
    }

    /// Destroys what failed and abandoned cases left.
    ///
    /// # Errors
    /// The first sandbox that can't be removed; the others are.
    pub async fn clear(&self) -> eyot::Result<()> {
        let mut result = Ok(());
        for info in self.provider.list().await? {
            let removed = self.provider.remove(info.id.as_str()).await;
            if let Err(error) = removed
                && !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed)
            {
                result = result.and(Err(error));
            }
        }
        result
    }

    /// A folder for what cases put on the host; it goes with the world.
    pub(crate) fn scratch(&self) -> &Path {
        self.folder.path()
    }

    /// The provider.
    pub(crate) fn provider(&self) -> &NativeProvider {
        &self.provider
    }

    /// The provider's state folder.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A spec for a sandbox that has the attacker's program inside.
    pub(crate) fn spec(&self) -> SandboxSpec {
        let target = SandboxPath::parse("/attack").into_iter();
        let source = self.folder.path().join("attack");
        let mounts = target.map(|target| Mount { source: source.clone(), target, writable: false }).collect();
        SandboxSpec { mounts, ..SandboxSpec::default() }
    }

    /// The same with this many processes at the most.
    pub(crate) fn spec_with_pids(&self, pids: u64) -> SandboxSpec {
        SandboxSpec { limits: Limits { pids: Some(pids), ..Limits::default() }, ..self.spec() }
    }

    /// A sandbox with the attacker's program inside.
    pub(crate) async fn stage(&self) -> Check<Stage> {
        self.stage_of(self.spec()).await
    }

    /// A sandbox of this spec.
    pub(crate) async fn stage_of(&self, spec: SandboxSpec) -> Check<Stage> {
        let sandbox = Sandbox::create(&*self.provider, spec).await?;
        Ok(Stage { directory: self.state().join("sandboxes").join(sandbox.id().as_str()), sandbox })
    }

    /// Tries a case on a stage that is gone afterwards. (A case that fails leaves its stage to
    /// [`World::clear`].)
    pub(crate) async fn on_a_stage<F: Future<Output = Check>>(
        self: Arc<Self>,
        case: impl FnOnce(Stage) -> F,
    ) -> Check {
        let stage = self.stage().await?;
        case(stage.clone()).await?;
        stage.end().await
    }
}

/// One sandbox with an attacker in it.
#[derive(Clone)]
pub struct Stage {
    /// Its handle.
    pub sandbox: Sandbox,
    directory: PathBuf,
}

impl Stage {
    /// Whether it has a range of ids, and so a root of its own.
    pub fn has_root(&self) -> bool {
        self.sandbox.isolation().identity == Some(IdentityMap::Range)
    }

    /// Everybody who may attack here.
    pub fn everybody(&self) -> &'static [&'static str] {
        if self.has_root() { &["user", "root"] } else { &["user"] }
    }

    /// Its directory in the state folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs a shell line to its end.
    pub async fn sh(&self, line: &str) -> Check<ExecResult> {
        Ok(self.sandbox.exec(line, ExecOptions::default()).await?)
    }

    /// The same as somebody else.
    pub async fn sh_as(&self, user: &str, line: &str) -> Check<ExecResult> {
        Ok(self.sandbox.exec(line, self.options_of(user)).await?)
    }

    /// Runs a shell line that must succeed, and returns what it printed, without the last line end.
    pub async fn output(&self, line: &str) -> Check<String> {
        let result = self.sh(line).await?;
        ensure!(result.success(), "`{line}` ended with {:?}: {}", result.outcome, result.stderr_text());
        Ok(result.stdout_text().trim_end_matches('\n').to_owned())
    }

    /// How somebody runs a command.
    pub fn options_of(&self, user: &str) -> ExecOptions {
        let user = (user != "user").then(|| user.to_owned());
        ExecOptions { user, ..ExecOptions::default() }
    }

    /// The attacker's command line.
    pub fn attack(arguments: &[&str]) -> Command {
        Command::argv([ATTACKER, "probe"].into_iter().chain(arguments.iter().copied()))
    }

    /// Runs a probe as the sandbox's user.
    pub async fn probe(&self, arguments: &[&str]) -> Check<Facts> {
        self.probe_as("user", arguments).await
    }

    /// Runs a probe as somebody.
    pub async fn probe_as(&self, user: &str, arguments: &[&str]) -> Check<Facts> {
        self.probe_with(self.options_of(user), arguments).await
    }

    /// Runs a probe in some way.
    pub async fn probe_with(&self, options: ExecOptions, arguments: &[&str]) -> Check<Facts> {
        let result = self.sandbox.exec(Self::attack(arguments), options).await?;
        let (outcome, said) = (result.outcome, result.stderr_text());
        ensure!(
            result.success(),
            "probe {arguments:?} ended with {outcome:?}: {said}{}",
            result.stdout_text()
        );
        Ok(Facts::parse(&result.stdout_text().replace('\r', "")))
    }

    /// Fails unless the guest still answers, and still runs commands.
    pub async fn still_works(&self) -> Check {
        let said = crate::check::promptly("a command", self.output("echo alive")).await??;
        ensure_eq!(said, "alive");
        Ok(())
    }

    /// Goes no further where a program is missing inside.
    pub async fn need_program(&self, program: &str) -> Check {
        match self.sh(&format!("command -v {program}")).await?.success() {
            true => Ok(()),
            false => not_here(format!("there is no `{program}` in the sandbox")),
        }
    }

    /// Destroys the sandbox; fails if anything of it is left.
    pub async fn end(&self) -> Check {
        crate::check::promptly("the destroy", self.sandbox.destroy()).await??;
        let id = self.sandbox.id().as_str();
        let state = self.directory.ancestors().nth(2).unwrap_or(&self.directory);
        for folder in ["sandboxes", "trash"] {
            ensure!(!state.join(folder).join(id).exists(), "the sandbox is still in `{folder}`");
        }
        for folder in ["names", "blocks"] {
            for claim in std::fs::read_dir(state.join(folder))? {
                let holder = std::fs::read_link(claim?.path());
                ensure!(
                    !holder.is_ok_and(|holder| holder == Path::new(id)),
                    "the sandbox still has a claim in `{folder}`"
                );
            }
        }
        Ok(())
    }
}
