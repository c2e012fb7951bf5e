//! The Docker Engine: its address, its abilities, and the meaning of its failures.

use std::collections::HashSet;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{ContainerInspectResponse, SystemInfo};
use bollard::query_parameters::InspectContainerOptionsBuilder;
use eyot::{Error, ErrorKind, Result};
use tokio::sync::OnceCell;

/// The longest wait for the answer to a request, in seconds. Starting a container on a busy host
/// takes many.
const PATIENCE_S: u64 = 120;
/// The longest wait for the first answer.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// The address of an Engine when none is named.
const DEFAULT_ADDRESS: &str = "unix:///var/run/docker.sock";

/// No Docker Engine answers. It is the source of an [`Error`] of kind [`ErrorKind::Unavailable`].
#[derive(Debug)]
#[doc(alias = "SandboxDockerUnavailableError")]
pub struct SandboxDockerUnavailable {
    /// The address that was tried, such as `unix:///var/run/docker.sock`.
    pub address: String,
    source: Box<dyn StdError + Send + Sync>,
}

impl fmt::Display for SandboxDockerUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no Docker Engine answers at {}", self.address)
    }
}

impl StdError for SandboxDockerUnavailable {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

/// An Engine. The first use connects.
#[derive(Debug)]
pub(crate) struct Engine {
    address: String,
    client: OnceCell<Docker>,
    facts: OnceCell<EngineFacts>,
    /// It is to make sandboxes, which native makes without one.
    makes_sandboxes: bool,
}

/// The abilities of an Engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EngineFacts {
    /// The protections of containers, such as `seccomp`, `userns`.
    pub protections: HashSet<String>,
    /// Memory can be limited.
    pub limits_memory: bool,
    /// Processor time can be limited.
    pub limits_cpus: bool,
    /// Processes can be limited.
    pub limits_pids: bool,
    /// The runtime of containers that name none.
    pub default_runtime: String,
    /// The runtimes that it knows.
    pub runtimes: HashSet<String>,
    /// The kernel release of the Engine's host.
    pub kernel: String,
    /// The number of processors of the Engine's host.
    pub processors: i64,
}

impl Engine {
    /// Takes the Engine at an address; `None`: at the one that `DOCKER_HOST` names, else at the
    /// usual socket. Touches nothing.
    pub(crate) fn new(address: Option<String>) -> Self {
        let named = std::env::var("DOCKER_HOST").ok().filter(|address| !address.is_empty());
        let address = address.or(named).unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        Self { address, client: OnceCell::new(), facts: OnceCell::new(), makes_sandboxes: false }
    }

    /// Takes the Engine at an address as [`Engine::new`] does, to make sandboxes.
    pub(crate) fn for_sandboxes(address: Option<String>) -> Self {
        Self { makes_sandboxes: true, ..Self::new(address) }
    }

    /// Asks for the Engine's version, and so whether it answers.
    pub(crate) async fn version(&self) -> Result<String> {
        let version = self.client().await?.version().await;
        let version = version.map_err(|error| self.failed("ask the Engine for its version", error))?;
        Ok(version.version.unwrap_or_default())
    }

    /// Returns the address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Connects to the Engine, in the newest version of the API that both sides know.
    pub(crate) async fn client(&self) -> Result<&Docker> {
        self.client.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Docker> {
        let docker = Docker::connect_with_host(&self.address).map_err(|error| match error {
            EngineError::SocketNotFoundError(_) => self.unavailable(error),
            _ => Error::invalid("DOCKER_HOST", format!("is not the address of an Engine: {error}")),
        })?;
        let docker = docker.with_timeout(Duration::from_secs(PATIENCE_S));
        match tokio::time::timeout(FIRST_PATIENCE, docker.negotiate_version()).await {
            Ok(Ok(docker)) => Ok(docker),
            Ok(Err(error)) => Err(self.unavailable(error)),
            Err(late) => Err(self.unavailable(late)),
        }
    }

    /// Returns the Engine's abilities, which are asked for once.
    pub(crate) async fn facts(&self) -> Result<&EngineFacts> {
        let ask = || async {
            let info = self.client().await?.info().await;
            Ok(EngineFacts::of(info.map_err(|error| self.failed("ask the Engine what it can do", error))?))
        };
        self.facts.get_or_try_init(ask).await
    }

    /// Looks at a container, by id or name; `None` if there is none.
    pub(crate) async fn inspected(&self, container: &str) -> Result<Option<ContainerInspectResponse>> {
        self.look(container, false).await
    }

    /// Looks at a container, and at the bytes that it has written: the sizes of its files, holes included.
    pub(crate) async fn inspected_with_size(
        &self,
        container: &str,
    ) -> Result<Option<ContainerInspectResponse>> {
        self.look(container, true).await
    }

    async fn look(&self, container: &str, size: bool) -> Result<Option<ContainerInspectResponse>> {
        let options = InspectContainerOptionsBuilder::default().size(size).build();
        match self.client().await?.inspect_container(container, Some(options)).await {
            Ok(inspected) => Ok(Some(inspected)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.failed("look at a sandbox", error)),
        }
    }

    /// Makes an error of a failed request. `what` is verb and object.
    pub(crate) fn failed(&self, what: &str, error: EngineError) -> Error {
        let (kind, reason) = match &error {
            EngineError::DockerResponseServerError { status_code, message } => {
                (kind_of(*status_code, message), sentence(message))
            }
            EngineError::DockerStreamError { error: message } => (kind_of(500, message), sentence(message)),
            EngineError::RequestTimeoutError => {
                (ErrorKind::Unavailable, format!("the Engine did not answer within {PATIENCE_S} s"))
            }
            EngineError::JsonDataError { .. } | EngineError::JsonSerdeError { .. } => {
                (ErrorKind::Internal, "the Engine's answer can't be read".to_owned())
            }
            _ => return self.unavailable(error).context(what),
        };
        let failed = Error::new(kind, format!("{what}: {reason}"));
        let failed = match kind {
            ErrorKind::Quota => {
                failed.with_hint("free space on the Engine's disk: docker system df; docker system prune")
            }
            _ => failed,
        };
        failed.with_source(error)
    }

    fn unavailable(&self, source: impl StdError + Send + Sync + 'static) -> Error {
        let refused = is_refused(&source);
        let unavailable =
            SandboxDockerUnavailable { address: self.address.clone(), source: Box::new(source) };
        let hint = if refused {
            "you may not use its socket: join the group `docker`, or run a rootless Engine and set DOCKER_HOST"
        } else {
            "start it (`dockerd`, or `systemctl start docker` where systemd runs), or set DOCKER_HOST to where one listens"
        };
        let native =
            if self.makes_sandboxes { "; EYOT_PROVIDER=native makes sandboxes without one" } else { "" };
        let hint = format!("{hint}{native}");
        Error::new(ErrorKind::Unavailable, "no Docker Engine answers")
            .with_hint(hint)
            .with_source(unavailable)
    }
}

/// Tells whether an answer says that a thing does not exist.
pub(crate) fn is_absent(error: &EngineError) -> bool {
    matches!(error, EngineError::DockerResponseServerError { status_code: 404, .. })
}

/// Tells whether an answer says that the thing's state is in the way: a name in use, a removal in
/// progress. Podman has no status for a name in use, only words.
pub(crate) fn is_conflict(error: &EngineError) -> bool {
    match error {
        EngineError::DockerResponseServerError { status_code: 409, .. } => true,
        EngineError::DockerResponseServerError { status_code: 500, message } => {
            message.contains("name is already in use")
        }
        _ => false,
    }
}

/// Tells whether an answer says that a container lies above as many layers as the Engine takes.
pub(crate) fn is_too_deep(error: &EngineError) -> bool {
    matches!(error, EngineError::DockerResponseServerError { message, .. } if message.contains("max depth exceeded"))
}

fn kind_of(status: u16, message: &str) -> ErrorKind {
    let text = message.to_lowercase();
    match status {
        _ if text.contains("no space left on device") || text.contains("disk quota exceeded") => {
            ErrorKind::Quota
        }
        400 => ErrorKind::Invalid,
        401 | 403 => ErrorKind::Permission,
        404 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        _ => ErrorKind::Setup,
    }
}

/// Writes the Engine's message on one line, as the end of a sentence.
fn sentence(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = line.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Tells whether an error comes from a missing permission on this host, not from a missing Engine.
fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        if error.downcast_ref::<io::Error>().is_some_and(refused) {
            return true;
        }
        next = error.source();
    }
    false
}

impl EngineFacts {
    fn of(info: SystemInfo) -> Self {
        let protections = info.security_options.unwrap_or_default();
        let name = |option: String| {
            let name = option.split(',').find_map(|part| part.strip_prefix("name=").map(str::to_owned));
            name.unwrap_or(option)
        };
        Self {
            protections: protections.into_iter().map(name).collect(),
            limits_memory: info.memory_limit.unwrap_or(false),
            limits_cpus: info.cpu_cfs_quota.unwrap_or(false),
            limits_pids: info.pids_limit.unwrap_or(false),
            default_runtime: info.default_runtime.unwrap_or_default(),
            runtimes: info.runtimes.unwrap_or_default().into_keys().collect(),
            kernel: info.kernel_version.unwrap_or_default(),
            processors: info.ncpu.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status_code: u16, message: &str) -> Error {
        let engine = Engine::new(Some("unix:///nowhere".to_owned()));
        let error = EngineError::DockerResponseServerError { status_code, message: message.to_owned() };
        engine.failed("make a container", error)
    }

    #[test]
    fn a_name_in_use_is_a_conflict_by_dockers_status_and_by_podmans_words() {
        let answer = |status_code, message: &str| {
            is_conflict(&EngineError::DockerResponseServerError { status_code, message: message.to_owned() })
        };
        assert!(answer(409, "Conflict"));
        assert!(answer(500, "the container name \"a\" is already in use by b: that name is already in use"));
        assert!(!answer(500, "address already in use"));
    }

    #[test]
    fn an_answer_becomes_a_typed_error_with_the_engines_reason() {
        let error = answered(409, "Conflict. The name is\n in use.");
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Conflict, "make a container: conflict. The name is in use")
        );
        let full = answered(500, "write /x: no space left on device");
        assert_eq!(full.kind(), ErrorKind::Quota);
        assert!(full.hint().unwrap().contains("docker system prune"));
        assert_eq!(answered(500, "oops").kind(), ErrorKind::Setup);
    }

    #[tokio::test]
    async fn an_engine_that_is_absent_is_unavailable_and_the_hint_says_what_to_start() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("unix://{}/none.sock", folder.path().display());
        let error = Engine::new(Some(address.clone())).client().await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.to_string(), "no Docker Engine answers");
        assert!(error.hint().unwrap().contains("start it"));
        let source = StdError::source(&error).unwrap().downcast_ref::<SandboxDockerUnavailable>().unwrap();
        assert_eq!(source.to_string(), format!("no Docker Engine answers at {address}"));
    }
}
