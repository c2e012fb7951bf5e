//! A row of the table of providers: everything that programs ask about a provider without knowing it.
//!
//! A provider states its row as a constant beside its code, and [`crate::registry`] lists it. What a
//! row does not set is as for a provider without the feature in question.

mod adopter;
mod check;
mod options;
mod settings;

use std::sync::Arc;

use eyot::{Capabilities, Mount, Result, SandboxOperationUnsupported, SandboxProvider, SandboxSpec};

#[cfg(feature = "e2b")]
pub(crate) use adopter::no_such_machine;
pub use adopter::{Adopted, Foreign, ForeignKind, SandboxAdopter};
pub use check::{CheckFuture, ProviderCheck};
pub use options::{OptionKind, OptionSchema, OptionValue, ProviderOptions};
pub use settings::{Makes, ProviderSettings};

/// Opens a provider.
pub type OpenProvider = fn(&ProviderSettings, Makes) -> Result<Arc<dyn SandboxProvider>>;

/// Makes the part of a provider that adopts.
pub type OpenAdopter = fn(&ProviderSettings) -> Arc<dyn SandboxAdopter>;

/// A provider, as programs see it that know no provider.
#[derive(Clone, Copy)]
pub struct ProviderRow {
    /// The name, as `--provider` takes it and as `SandboxProvider::name` returns it.
    pub name: &'static str,
    /// One line of help: the noun of what makes the sandboxes.
    pub summary: &'static str,
    /// The options of its constructor.
    pub options: &'static [OptionSchema],
    /// Returns the capabilities of its sandboxes, without opening it.
    pub capabilities: fn() -> Capabilities,
    /// Opens it. This touches nothing.
    pub open: OpenProvider,
    /// Looks whether it can be used on this machine; `None`: it can be used on every machine.
    pub check: Option<fn(ProviderSettings) -> CheckFuture>,
    /// The sandboxes end with the process that made them, so no later command finds them.
    pub lives_with_its_process: bool,
    /// The sandboxes are on other machines: those of a vendor, who wants a key, or of a cluster.
    pub is_elsewhere: bool,
    /// Says whose the sandboxes are, where servers on several hosts can have the same ones. It reads a file, and asks nobody.
    pub shared_by: Option<fn(&ProviderSettings) -> Result<String>>,
    /// The provider takes the options of containers in a spec (`container`, network `bridge`).
    pub takes_container_options: bool,
    /// The sandboxes keep their files on the disk of the state folder.
    pub keeps_files_in_state_folder: bool,
    /// Makes the state folder, for a command that keeps something in it; refuses one that the
    /// sandboxes can't live in.
    pub make_state_folder: fn(&ProviderSettings) -> Result<()>,
    /// Returns what a sandbox can't do with what it mounts from this host, as a sentence with the
    /// reason, where that can be foreseen.
    pub why_not_usable: fn(&Mount) -> Option<String>,
    /// Refuses a mount that every create would refuse, as far as its path tells.
    pub refuse_mount: fn(&ProviderSettings, &Mount) -> Result<()>,
    /// The images that its sandboxes are made from.
    pub images: ImagesOfProvider,
    /// The persistent workspaces of its sandboxes.
    pub workspaces: WorkspacesOfProvider,
    /// Makes the part that lists and adopts what another state folder has made.
    pub adopter: Option<OpenAdopter>,
    /// The way to measure it.
    pub bench: BenchMethod,
    /// `eyot verify` tries the threats on it, and not the contract alone.
    pub tries_threats: bool,
    /// The sandboxes of its tests.
    pub tests: ProviderTests,
}

/// The place of a provider's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagesOfProvider {
    /// The state folder, where `eyot image` changes them.
    StateFolder,
    /// Another place: a note says where, and what lists and changes them.
    Elsewhere(&'static str),
}

/// The place of a provider's persistent workspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspacesOfProvider {
    /// There are none.
    None,
    /// The state folder, where `eyot workspace` lists and removes them.
    StateFolder,
    /// Another place.
    Elsewhere {
        /// The place, as a sentence.
        place: &'static str,
        /// The command that lists and removes them.
        hint: &'static str,
    },
}

/// The way to measure a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchMethod {
    /// The calls of the contract, each alone.
    Calls,
    /// The calls beside this host's own operations and other isolators.
    BesideHost,
    /// The calls beside the Engine's own operations.
    BesideEngine,
}

/// The sandboxes of a provider's tests.
#[derive(Clone, Copy)]
pub struct ProviderTests {
    /// Returns the spec of an ordinary sandbox, quick to make.
    pub spec: fn() -> SandboxSpec,
    /// The number of times that each client goes round in a case with many. A provider that takes seconds to put a
    /// sandbox to sleep has fewer.
    pub rounds: usize,
    /// One sandbox serves the cases that need no more than an empty workspace, since each takes long
    /// to make.
    pub reuses_sandboxes: bool,
    /// The rules of the contract that it can't keep although it has what they need, with the reasons.
    pub exceptions: &'static [(&'static str, &'static str)],
}

impl ProviderTests {
    /// Returns the tests of a provider that makes sandboxes quickly, of default specs.
    pub const fn quick() -> Self {
        Self { spec: SandboxSpec::default, rounds: 6, reuses_sandboxes: false, exceptions: &[] }
    }
}

impl ProviderRow {
    /// Makes the row of a provider that has no options and nothing beyond the contract, and that can
    /// be used everywhere. Others set further fields: `ProviderRow { options: …, ..ProviderRow::new(…) }`.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        capabilities: fn() -> Capabilities,
        open: OpenProvider,
    ) -> Self {
        Self {
            name,
            summary,
            options: &[],
            capabilities,
            open,
            check: None,
            lives_with_its_process: false,
            is_elsewhere: false,
            shared_by: None,
            takes_container_options: false,
            keeps_files_in_state_folder: false,
            make_state_folder: |_| Ok(()),
            why_not_usable: |_| None,
            refuse_mount: |_, _| Ok(()),
            images: ImagesOfProvider::Elsewhere("these are the images of native sandboxes"),
            workspaces: WorkspacesOfProvider::None,
            adopter: None,
            bench: BenchMethod::Calls,
            tries_threats: false,
            tests: ProviderTests::quick(),
        }
    }

    /// Refuses what is to be found by a later process, such as a create, if a sandbox ends with the
    /// process that makes it. `operation` is a verb.
    ///
    /// # Errors
    /// `unsupported`, with a hint.
    pub fn refuse_if_it_ends_with_us(&self, operation: &str) -> Result<()> {
        if !self.lives_with_its_process {
            return Ok(());
        }
        let error = SandboxOperationUnsupported::new(operation, self.name, &[]);
        let hint = "its sandboxes end with the process that makes them: `eyot run`, `eyot mcp` and `eyot serve` \
                    make sandboxes and use them in one process";
        Err(eyot::Error::from(error).with_hint(hint))
    }
}

impl std::fmt::Debug for ProviderRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ProviderRow").field(&self.name).finish()
    }
}

/// Rows of one name are the same: the table has each name once.
impl PartialEq for ProviderRow {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ProviderRow {}

#[cfg(test)]
mod tests {
    use eyot::{Error, ErrorKind};

    use super::*;

    const PLAIN: ProviderRow = ProviderRow::new("plain", "nothing", Capabilities::default, |_, _| {
        Err(Error::new(ErrorKind::Internal, "a test opens none"))
    });

    #[test]
    fn a_create_is_refused_where_the_sandbox_would_end_with_the_command() {
        let fleeting = ProviderRow { name: "fleeting", lives_with_its_process: true, ..PLAIN };
        assert!(PLAIN.refuse_if_it_ends_with_us("create").is_ok());
        let error = fleeting.refuse_if_it_ends_with_us("create").unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Unsupported, "fleeting does not support create")
        );
        let hint = error.hint().unwrap_or_default();
        assert!(["eyot run", "eyot mcp", "eyot serve"].iter().all(|way| hint.contains(way)), "{hint}");
    }
}
