//! The provider of sandboxes in memory. They live as long as the process.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use eyot::{
    Capabilities, Capability, Created, DiskEnforcement, Error, ErrorKind, ImageName, Isolation,
    LimitsEnforced, NetworkMode, PullPolicy, Result, SandboxImages, SandboxInfo, SandboxNamer,
    SandboxOperationUnsupported, SandboxProvider, SandboxSnapshots, ValidSpec, WorkspaceSpec,
};

use super::NAME;
use super::clock::DeadlineClock;
use super::driver::MemoryDriver;
use super::files::{DEFAULT_MAX_BYTES, MemoryFiles};
use super::frozen::FrozenFiles;
use super::image_table::MemoryImage;
use super::images::MemoryImages;
use super::known_programs::KnownPrograms;
use super::life::{LifeEnd, SandboxLife};
use super::prepared::PreparedShells;
use super::programs;
use super::sandbox::{MemorySandbox, SandboxCondition};
use super::shell_factory::ShellFactory;
use super::snapshot_table::KeptFiles;
use super::snapshots::MemorySnapshots;
use super::workspaces::Workspaces;
use super::world::{MemoryWorld, with_directory};

/// Makes sandboxes of an interpreter and files in memory. Clones have the same sandboxes.
#[derive(Clone)]
pub struct MemoryProvider {
    shared: Arc<MemoryWorld>,
    capabilities: Capabilities,
}

/// Returns the capabilities of a sandbox in memory.
pub fn capabilities() -> Capabilities {
    Capabilities::new([
        Capability::Shell,
        Capability::Argv,
        Capability::KillTree,
        Capability::Processes,
        Capability::LiveProcesses,
        Capability::Beneath,
        Capability::RangedRead,
        Capability::Append,
        Capability::AtomicWrite,
        Capability::Symlinks,
        Capability::Glob,
        Capability::Grep,
        Capability::Tar,
        Capability::Watch,
        Capability::Usage,
        Capability::PersistentWorkspace,
        Capability::Deadlines,
        Capability::ChangeDeadlines,
        Capability::Sleep,
        Capability::Snapshots,
        Capability::Commit,
    ])
}

impl Default for MemoryProvider {
    /// Makes a provider whose commands run in a bash without extras. An interpreter of it serves again after a line that left
    /// no trace in it.
    fn default() -> Self {
        let factory: ShellFactory = Arc::new(bashkit::Bash::builder);
        Self::with(PreparedShells::serving_again(factory.clone()), factory, None)
    }
}

impl MemoryProvider {
    /// Makes a provider whose commands run in what the factory makes, each in an interpreter of its own.
    pub fn new(factory: ShellFactory) -> Self {
        Self::with(PreparedShells::new(factory.clone()), factory, None)
    }

    /// Makes a provider whose sandboxes all have these files. They stay when the sandboxes have
    /// gone.
    pub fn sharing(factory: ShellFactory, files: MemoryFiles) -> Self {
        Self::with(PreparedShells::new(factory.clone()), factory, Some(files))
    }

    fn with(prepared: PreparedShells, factory: ShellFactory, files: Option<MemoryFiles>) -> Self {
        let programs = Arc::new(KnownPrograms::new(factory.clone(), programs::names_of_ours()));
        let shared = MemoryWorld {
            prepared: Arc::new(prepared),
            factory,
            files,
            live: Mutex::default(),
            snapshots: Mutex::default(),
            images: Mutex::default(),
            workspaces: Workspaces::default(),
            clock: DeadlineClock::default(),
            programs,
        };
        // One of several who have all files in common can't go back alone.
        let of_branches = [Capability::Snapshots, Capability::Commit];
        let has = |capability: &Capability| shared.files.is_none() || !of_branches.contains(capability);
        let capabilities = Capabilities::new(capabilities().iter().filter(has));
        Self { shared: Arc::new(shared), capabilities }
    }

    fn find(&self, id_or_name: &str) -> Result<Arc<MemorySandbox>> {
        self.shared.find(id_or_name)
    }

    /// Finds the snapshot or the image that a sandbox begins with.
    fn begin(&self, spec: &ValidSpec) -> Result<Beginning> {
        if let Some(id) = &spec.spec().snapshot {
            self.capabilities.require(Capability::Snapshots, NAME, "create", &["snapshot"])?;
            let kept = self.shared.snapshots().find(id)?;
            return Ok(Beginning { image: kept.image.clone(), snapshot: Some(kept) });
        }
        let Some(name) = spec.spec().image.as_deref() else { return Ok(Beginning::default()) };
        self.capabilities.require(Capability::Commit, NAME, "create", &["image"])?;
        let image = self.shared.images().find(&ImageName::parse(name)?);
        // There are only those that were committed.
        let missing = || Error::from(SandboxOperationUnsupported::new("create", NAME, &["image"]));
        Ok(Beginning { image: Some(image.ok_or_else(missing)?), snapshot: None })
    }

    /// Makes the files of a sandbox, its working directory among them.
    fn files(&self, spec: &ValidSpec, begin: Option<&FrozenFiles>) -> Result<MemoryFiles> {
        let max_bytes = spec.spec().limits.disk_mib.map(|mib| mib.saturating_mul(1 << 20));
        let max_bytes = max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
        let files = match (&self.shared.files, &spec.spec().workspace) {
            (Some(_), WorkspaceSpec::Persistent { .. }) => {
                let refused = SandboxOperationUnsupported::new("create", NAME, &["workspace"]);
                return Err(
                    Error::from(refused).with_hint("the sandboxes of this provider have all files in common")
                );
            }
            (None, WorkspaceSpec::Persistent { id, .. }) => {
                return self.shared.workspaces.files_with(id, spec.workdir(), max_bytes, begin);
            }
            (Some(files), _) => files.clone(),
            (None, _) => MemoryFiles::with_max_bytes(max_bytes),
        };
        begin.map_or(Ok(()), |begin| files.fill(begin))?;
        with_directory(&files, spec.workdir())?;
        Ok(files)
    }
}

/// The files that a sandbox begins with: those of a snapshot, or else those of an image. A sandbox of neither has none.
#[derive(Default)]
struct Beginning {
    snapshot: Option<Arc<KeptFiles>>,
    /// The image, or the one below the snapshot.
    image: Option<Arc<MemoryImage>>,
}

impl Beginning {
    fn files(&self) -> Option<&FrozenFiles> {
        let of_image = || self.image.as_ref().map(|image| &image.files);
        self.snapshot.as_ref().map(|kept| &kept.files).or_else(of_image)
    }
}

/// A sandbox with one of its lives, for a handle.
fn created(sandbox: &Arc<MemorySandbox>, (info, life): (SandboxInfo, Arc<SandboxLife>)) -> Result<Created> {
    let driver = Arc::new(MemoryDriver { sandbox: sandbox.clone(), life });
    Ok(Created { info, driver, keeper: None })
}

/// The fields of a spec that a sandbox in memory honours. Limits that are not enforced are reported
/// so, and refused where they are required.
const HONOURED: [&str; 10] = [
    "container.pull",
    "hostname",
    "image",
    "lifecycle",
    "limits",
    "require",
    "security.drop_capabilities",
    "snapshot",
    "user",
    "workspace",
];

/// Refuses a spec that asks for anything else.
fn check(spec: &ValidSpec) -> Result<()> {
    spec.refuse_all_but(NAME, &HONOURED)?;
    if spec.spec().container.pull == PullPolicy::Always {
        return Err(SandboxOperationUnsupported::new("create", NAME, &["container.pull: always"]).into());
    }
    match spec.spec().user.as_deref() {
        None | Some("user" | "1000") => Ok(()),
        Some(_) => Err(SandboxOperationUnsupported::new("create", NAME, &["user"]).into()),
    }
}

/// Returns what is in force. Scripts make no system calls, but what keeps them from it is this
/// process alone, so no kernel of their own is claimed.
fn isolation() -> Isolation {
    let none = Isolation::none(NAME);
    Isolation {
        no_new_privileges: true,
        network: NetworkMode::None,
        limits: LimitsEnforced { disk: DiskEnforcement::Quota, ..none.limits },
        guest_out_of_reach: true,
        ..none
    }
}

#[async_trait]
impl SandboxProvider for MemoryProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn lives_with_its_process(&self) -> bool {
        true
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(isolation())
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        check(spec)?;
        let isolation = isolation();
        if let Some(missing) = spec.spec().require.iter().find(|required| !isolation.holds(**required)) {
            let name = serde_json::to_string(missing).unwrap_or_default();
            let reason = format!("`require` asks for {name}, which sandboxes in memory do not have");
            let hint = "leave it out of --require (`require`), or take another provider";
            return Err(Error::new(ErrorKind::Setup, reason).with_hint(hint));
        }
        let is_taken =
            |sandbox: &Arc<MemorySandbox>| sandbox.info.id == *spec.id() || sandbox.info.name == *spec.name();
        let taken =
            || Error::new(ErrorKind::AlreadyExists, format!("there is a sandbox `{}` already", spec.name()));
        if self.shared.live().values().any(is_taken) {
            return Err(taken());
        }
        let has_workspace = match &spec.spec().workspace {
            WorkspaceSpec::Persistent { id, .. } => self.shared.workspaces.has(id),
            WorkspaceSpec::Ephemeral => false,
        };
        let begin = self.begin(spec)?;
        let files = self.files(spec, begin.files())?;
        let condition = SandboxCondition::new(spec.spec().lifecycle.clone(), &self.shared.clock);
        let mut info = SandboxInfo::running(spec, isolation.clone());
        info.life = condition.life.token.clone();
        // The limit is told even if nobody asked for one.
        if self.shared.files.is_none() {
            info.spec.limits.disk_mib.get_or_insert(DEFAULT_MAX_BYTES >> 20);
        }
        let sandbox = Arc::new(MemorySandbox {
            info,
            env: spec.env(),
            host_name: spec.hostname().as_str().to_owned(),
            files,
            factory: self.shared.factory.clone(),
            capabilities: self.capabilities.clone(),
            isolation,
            clock: self.shared.clock.clone(),
            programs: self.shared.programs.clone(),
            prepared: self.shared.prepared.clone(),
            forget: self.shared.forgetting(),
            condition: Mutex::new(condition),
            has_made_workspace: !has_workspace,
            keeps_workspace: AtomicBool::new(false),
            image: begin.image,
            base: Mutex::new(begin.snapshot),
        });
        {
            let mut live = self.shared.live();
            if live.values().any(is_taken) {
                drop(live);
                if matches!(spec.spec().workspace, WorkspaceSpec::Persistent { .. }) {
                    sandbox.files.release();
                }
                return Err(taken());
            }
            live.insert(sandbox.info.id.as_str().to_owned(), sandbox.clone());
        }
        sandbox.watch_deadlines().inspect_err(|_| sandbox.destroy(LifeEnd::Destroy))?;
        created(&sandbox, sandbox.open()?)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let sandbox = self.find(id_or_name)?;
        created(&sandbox, sandbox.open()?)
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        Ok(self.shared.live().values().map(|sandbox| sandbox.info()).collect())
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        Ok(self.find(id_or_name)?.info())
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.find(id_or_name)?.destroy(LifeEnd::Destroy);
        Ok(())
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        self.find(id_or_name)?.sleep();
        Ok(())
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let sandbox = self.find(id_or_name)?;
        created(&sandbox, sandbox.wake()?)
    }

    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        self.capabilities.require(Capability::Snapshots, NAME, "snapshots", &[])?;
        Ok(Arc::new(MemorySnapshots(self.shared.clone())))
    }

    fn images(&self, names: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        self.capabilities.require(Capability::Commit, NAME, "images", &[])?;
        Ok(Arc::new(MemoryImages { world: self.shared.clone(), names }))
    }

    async fn has_workspace(&self, id: &str) -> Result<bool> {
        Ok(self.shared.workspaces.has(id))
    }
}

#[cfg(test)]
mod tests {
    use eyot::{Command, ExecOptions, Requirement, Sandbox, SandboxSpec, StartOptions};

    use super::*;

    #[tokio::test]
    async fn a_create_that_asks_for_more_than_there_is_makes_nothing() {
        let provider = MemoryProvider::default();
        for (spec, kind) in [
            (r#"{"require":["own_kernel"]}"#, ErrorKind::Setup),
            (r#"{"require":["memory"]}"#, ErrorKind::Setup),
            (r#"{"image":"node:22"}"#, ErrorKind::Unsupported),
            (r#"{"container":{"pull":"always"}}"#, ErrorKind::Unsupported),
            (r#"{"user":"root"}"#, ErrorKind::Unsupported),
            (r#"{"container":{"runtime":"runsc"}}"#, ErrorKind::Unsupported),
        ] {
            let spec: SandboxSpec = serde_json::from_str(spec).unwrap();
            let refused = Sandbox::create(&provider, spec.clone()).await.err();
            assert_eq!(refused.map(|error| error.kind()), Some(kind), "{spec:?}");
        }
        assert!(provider.list().await.unwrap().is_empty());
        assert!(!isolation().holds(Requirement::OwnKernel));
    }

    async fn printed(sandbox: &Sandbox, line: &str, options: ExecOptions) -> String {
        let ended = sandbox.exec(line, options).await.unwrap();
        format!("{}{}", ended.stdout_text(), ended.stderr_text())
    }

    #[tokio::test]
    async fn a_command_sees_nothing_of_the_sandbox_that_its_interpreter_served_before() {
        let provider = MemoryProvider::default();
        let other = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
        let first = r#"{"name":"first","env":{"SECRET":"hidden"}}"#;
        let first = Sandbox::create(&provider, serde_json::from_str(first).unwrap()).await.unwrap();
        printed(&first, "mkdir /tmp/hidden", ExecOptions::default()).await;
        for _ in 0..10 {
            let mut options = ExecOptions { cwd: Some("/tmp/hidden".to_owned()), ..ExecOptions::default() };
            options.env.insert("HOME".to_owned(), "/tmp/hidden".to_owned());
            let line = "pwd; echo $HOME >hidden; cat hidden missing | grep -c hidden";
            let told = printed(&first, line, options).await;
            assert_eq!(told, "/tmp/hidden\n1\ncat: missing: No such file or directory\n");
            let line = "pwd; echo $HOME $?; ls /tmp; cat /tmp/hidden/hidden; cat /etc/hostname";
            let told = printed(&other, line, ExecOptions::default()).await;
            assert!(told.starts_with("/workspace\n/home/user 0\n"), "{told}");
            assert!(told.ends_with("No such file or directory\n") && !told.contains("first"), "{told}");
            for line in ["set; env; hash; jobs; pwd; echo $OLDPWD", "history; declare -p; ps"] {
                let told = printed(&other, line, ExecOptions::default()).await;
                assert!(!told.contains("hidden") && !told.contains("first"), "{line}: {told}");
            }
        }
    }

    #[tokio::test]
    async fn the_end_of_a_sandbox_ends_no_command_whose_interpreter_it_had_before() {
        let provider = MemoryProvider::default();
        let other = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
        for _ in 0..20 {
            let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
            let started = sandbox.start("echo", StartOptions::default()).await.unwrap();
            sandbox.wait(started.id).await.unwrap();
            let line = "seq 3000 | sort -n | tail -n 1";
            let (told, destroyed) =
                tokio::join!(printed(&other, line, ExecOptions::default()), sandbox.destroy());
            destroyed.unwrap();
            assert_eq!(told, "3000\n");
        }
    }

    #[tokio::test]
    async fn a_sandbox_has_its_own_name_whatever_ran_before() {
        let provider = MemoryProvider::default();
        for name in ["one", "another", "third"] {
            let spec: SandboxSpec = serde_json::from_str(&format!(r#"{{"name":"{name}"}}"#)).unwrap();
            let sandbox = Sandbox::create(&provider, spec).await.unwrap();
            let lines = [
                "echo $HOSTNAME; cat /etc/hostname /proc/sys/kernel/hostname; stat -c %s /etc/hostname",
                "hostname; uname -n; cat /etc/hostname; stat -c %s /etc/hostname",
            ];
            for line in lines {
                let printed = sandbox.exec(line, ExecOptions::default()).await.unwrap();
                let expected = format!("{name}\n{name}\n{name}\n{}\n", name.len() + 1);
                assert_eq!(printed.stdout_text(), expected, "{line}");
            }
            let refused = sandbox.exec("echo x >/etc/hostname", ExecOptions::default()).await.unwrap();
            assert_ne!(refused.outcome.exit_code(), 0);
            let listed = "ls /etc | grep -cx host.*; cd /usr/bin && ls | grep -x env; ls | grep -c eyot";
            let listed = sandbox.exec(listed, ExecOptions::default()).await.unwrap();
            assert_eq!(listed.stdout_text(), "2\nenv\n0\n");
        }
    }

    #[tokio::test]
    async fn a_program_that_runs_is_one_process_and_pgrep_finds_it() {
        let provider = MemoryProvider::default();
        let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
        sandbox.start(Command::argv(["sleep", "4321"]), StartOptions::default()).await.unwrap();
        assert_eq!(sandbox.usage().await.unwrap().processes, Some(1));
        let found = sandbox.exec("pgrep -fx 'sleep 4321' | wc -l", ExecOptions::default()).await.unwrap();
        assert_eq!(found.stdout_text().trim(), "1");
    }

    #[tokio::test]
    async fn quoted_words_are_kept_and_unknown_names_are_not_guessed_at() {
        let provider = MemoryProvider::default();
        let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
        let shell = |line: &str| Command::argv(["bash", "-c", line]);
        let line = "echo '{a}' >f; awk '{print}' <f; lss 2>&1; timeout 9 sh -c 'lss; echo \"{b}\" >&2' 2>&1";
        for command in [Command::from(line), Command::from(format!("{line}; true & wait")), shell(line)] {
            let printed = sandbox.exec(command, ExecOptions::default()).await.unwrap();
            let expected =
                "{a}\nbash: line 1: lss: command not found\nsh: line 1: lss: command not found\n{b}\n";
            assert_eq!(printed.stdout_text(), expected);
        }
    }
}
