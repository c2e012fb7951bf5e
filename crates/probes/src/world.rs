//! The setting of the cases: one provider, the attacker's program, and sandboxes that have it
//! inside. Native sandboxes live in a state folder of the world's own; those of a container engine
//! are the engine's.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{
    Command, Error, ErrorKind, ExecOptions, ExecResult, IdentityMap, Limits, Mount, Sandbox, SandboxName,
    SandboxPath, SandboxProvider, SandboxSpec,
};
use eyot_native::{NativeOptions, NativeProvider};
use tempfile::TempDir;

use crate::check::{Check, Failure, ensure, ensure_eq, not_enforced, not_here};
use crate::facts::Facts;

/// The path of the attacker's program inside.
const ATTACKER: &str = "/attack/threats";
/// The label on every sandbox of a world of containers.
const LABEL: &str = "eyot-threats";

/// The state that all cases share.
pub struct World {
    provider: Arc<dyn SandboxProvider>,
    folder: TempDir,
    /// The specification of all sandboxes.
    base: SandboxSpec,
    /// Kills a container; `None` if sandboxes are native.
    kill: Option<Kill>,
}

/// Kills the container of a sandbox, as an operator of the host would.
type Kill = fn(&SandboxName) -> std::io::Result<()>;

impl World {
    /// Native sandboxes. Prepares a state folder, and a copy of this program to attack with, in a
    /// new folder inside `parent`. It is removed when the last user drops the world.
    ///
    /// # Errors
    /// The folder can't be made or written to, or native sandboxes can't live in it.
    pub fn new(parent: &Path) -> eyot::Result<Self> {
        Self::of_native(parent, NativeOptions::default())
    }

    /// The same with sandboxes from slots. Only root has these.
    ///
    /// # Errors
    /// Those of [`World::new`].
    pub fn of_slots(parent: &Path) -> eyot::Result<Self> {
        Self::of_native(parent, NativeOptions { always_from_slots: true, ..NativeOptions::default() })
    }

    fn of_native(parent: &Path, options: NativeOptions) -> eyot::Result<Self> {
        let folder = own_folder(parent)?;
        let attack = folder.path().join("attack");
        std::fs::create_dir(&attack).map_err(unprepared)?;
        let program = std::env::current_exe().map_err(unprepared)?;
        std::fs::copy(program, attack.join("threats")).map_err(unprepared)?;
        let state = folder.path().join("state");
        let provider = NativeProvider::new(NativeOptions { state, ..options })?;
        let target = SandboxPath::parse("/attack")?;
        let mounts = vec![Mount { source: attack, target, writable: false, cow: false }];
        let base = SandboxSpec { mounts, ..SandboxSpec::default() };
        Ok(Self { provider, folder, base, kill: None })
    }

    /// Returns a world of a container engine's sandboxes, made from this spec. The image has this
    /// program as `/attack/threats`, a shell and the user `root`; its user is 1000. `kill` kills
    /// the container of a sandbox, as an operator of the host would.
    ///
    /// # Errors
    /// The folder inside `parent` for the cases' files on the host can't be made.
    pub fn of_containers(
        provider: Arc<dyn SandboxProvider>,
        spec: SandboxSpec,
        kill: fn(&SandboxName) -> std::io::Result<()>,
        parent: &Path,
    ) -> eyot::Result<Self> {
        let mut base = spec;
        base.labels.insert(LABEL.to_owned(), std::process::id().to_string());
        Ok(Self { provider, folder: own_folder(parent)?, base, kill: Some(kill) })
    }

    /// Destroys what failed and abandoned cases left.
    ///
    /// # Errors
    /// The first sandbox that can't be removed; the others are.
    pub async fn clear(&self) -> eyot::Result<()> {
        let mut result = Ok(());
        let label = self.base.labels.get(LABEL);
        let all = self.provider.list().await?;
        for info in all.into_iter().filter(|info| info.spec.labels.get(LABEL) == label) {
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
    pub(crate) fn provider(&self) -> &dyn SandboxProvider {
        &*self.provider
    }

    /// Tells whether sandboxes are native ones, and not containers.
    pub(crate) fn is_native(&self) -> bool {
        self.kill.is_none()
    }

    /// Goes no further where sandboxes are not native ones, and says what they lack.
    pub(crate) fn need_native(&self, lacks: &str) -> Check {
        if self.is_native() { Ok(()) } else { not_here(lacks) }
    }

    /// The provider's state folder.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A spec for a sandbox that has the attacker's program inside.
    pub(crate) fn spec(&self) -> SandboxSpec {
        self.base.clone()
    }

    /// The same without what is mounted of the host.
    pub(crate) fn plain_spec(&self) -> SandboxSpec {
        SandboxSpec { mounts: Vec::new(), ..self.spec() }
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
        let not_made = |error: Error| Failure::NotTried(error.to_string());
        let sandbox = Sandbox::create(&*self.provider, spec).await.map_err(not_made)?;
        let directory = self.is_native().then(|| self.state().join("sandboxes").join(sandbox.id().as_str()));
        Ok(Stage { directory, sandbox, kill: self.kill })
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

fn own_folder(parent: &Path) -> eyot::Result<TempDir> {
    tempfile::Builder::new().prefix("eyot-threats-").tempdir_in(parent).map_err(unprepared)
}

fn unprepared(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Setup, "prepare a folder for the probes: failed").with_source(error)
}

/// One sandbox with an attacker in it.
#[derive(Clone)]
pub struct Stage {
    /// The sandbox's handle.
    pub sandbox: Sandbox,
    /// `None`: a container's.
    directory: Option<PathBuf>,
    kill: Option<Kill>,
}

impl Stage {
    /// Tells whether the sandbox has a root of its own: a range of ids, or a container.
    pub fn has_root(&self) -> bool {
        !self.is_native() || self.sandbox.isolation().identity == Some(IdentityMap::Range)
    }

    /// Tells whether it is a native sandbox, and not a container.
    pub fn is_native(&self) -> bool {
        self.directory.is_some()
    }

    /// The errors that a call is refused with: in a native sandbox these and no other. A container
    /// engine chooses others; what counts is that the call was refused, and not that its arguments
    /// made no sense.
    pub fn refusals(&self, native: &'static [&'static str]) -> &'static [&'static str] {
        if self.is_native() {
            native
        } else {
            &["EPERM", "EACCES", "ENOSYS", "EROFS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"]
        }
    }

    /// Everybody who may attack here.
    pub fn everybody(&self) -> &'static [&'static str] {
        if self.has_root() { &["user", "root"] } else { &["user"] }
    }

    /// Returns the directory in the state folder; ends the case for a container.
    pub fn directory(&self) -> Check<&Path> {
        match &self.directory {
            Some(directory) => Ok(directory),
            None => not_here("a container has no directory in a state folder"),
        }
    }

    /// Kills the guest from the host, as the kernel would when memory is short.
    pub fn kill_guest(&self) -> Check {
        if let Some(kill) = self.kill {
            return Ok(kill(self.sandbox.name())?);
        }
        let ready = std::fs::read_link(self.directory()?.join("ready"))?.to_string_lossy().into_owned();
        let number =
            ready.split(|letter: char| !letter.is_ascii_digit()).find_map(|text| text.parse::<i32>().ok());
        let pid = number.and_then(rustix::process::Pid::from_raw);
        let Some(pid) = pid else { return Err(Failure::Broken(format!("no process number in `{ready}`"))) };
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).map_err(std::io::Error::from)?;
        Ok(())
    }

    /// Runs a shell line to its end.
    pub async fn sh(&self, line: &str) -> Check<ExecResult> {
        Ok(self.sandbox.exec(line, ExecOptions::default()).await?)
    }

    /// Runs a shell line as this user.
    pub async fn sh_as(&self, user: &str, line: &str) -> Check<ExecResult> {
        Ok(self.sandbox.exec(line, self.options_of(user)).await?)
    }

    /// Runs a shell line that must succeed, and returns what it printed, without the last line end.
    pub async fn output(&self, line: &str) -> Check<String> {
        let result = self.sh(line).await?;
        ensure!(result.success(), "`{line}` ended with {:?}: {}", result.outcome, result.stderr_text());
        Ok(result.stdout_text().trim_end_matches('\n').to_owned())
    }

    /// Returns the options for running a command as this user.
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

    /// Runs a probe as this user.
    pub async fn probe_as(&self, user: &str, arguments: &[&str]) -> Check<Facts> {
        self.probe_with(self.options_of(user), arguments).await
    }

    /// As [`Self::ensure_is`] where what is refused is a matter of the error.
    pub async fn ensure_refused(
        &self,
        of: (&str, &str),
        native: &'static [&'static str],
        gaps: &[&str],
    ) -> Check {
        self.ensure_is(of, self.refusals(native), gaps).await
    }

    /// Fails unless everybody is refused what the probe tries under this prefix, by coming to one
    /// of these. In a container what begins with one of `gaps` may get through, because engines are
    /// known to leave it open: then that is said, and the case is not enforced.
    pub async fn ensure_is(&self, (probe, prefix): (&str, &str), refused: &[&str], gaps: &[&str]) -> Check {
        let mut open = BTreeSet::new();
        for who in self.everybody() {
            for (name, value) in self.probe_as(who, &[probe]).await?.others(prefix, refused)? {
                ensure!(
                    !self.is_native() && gaps.iter().any(|gap| name.starts_with(gap)),
                    "{who}: `{prefix}{name}` came to {value}, not one of {refused:?}"
                );
                open.insert(name);
            }
        }
        let open: Vec<String> = open.into_iter().collect();
        if open.is_empty() {
            Ok(())
        } else {
            not_enforced(format!("this engine leaves open: {}", open.join(", ")))
        }
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
        if self.sh(&format!("command -v {program}")).await?.success() {
            Ok(())
        } else {
            not_here(format!("there is no `{program}` in the sandbox"))
        }
    }

    /// Destroys the sandbox; fails if anything of it is left.
    pub async fn end(&self) -> Check {
        crate::check::promptly("the destroy", self.sandbox.destroy()).await??;
        let Some(directory) = &self.directory else { return Ok(()) };
        let id = self.sandbox.id().as_str();
        let state = directory.ancestors().nth(2).unwrap_or(directory);
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
