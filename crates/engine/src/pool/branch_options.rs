//! Options of snapshots, forks, commits, rollbacks and comparisons, and their results.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use eyot::{Error, ImageInfo, SandboxId, SandboxName, SandboxSpec, SnapshotId, SnapshotInfo};
use serde::{Deserialize, Serialize};

use crate::store::SandboxRow;

/// Options of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotOptions {
    /// The name, unique among the snapshots and sandboxes of the pool.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub name: Option<SandboxName>,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// Ends the commands that run, as sleep does. Otherwise a sandbox that works is refused.
    pub stop: bool,
    /// Refuses a sandbox that runs, even one without work, instead of putting it to sleep for it.
    pub asleep_only: bool,
    /// The id. By default one is generated.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub id: Option<SnapshotId>,
    /// It is only there to make forks from: it is not listed, and is gone once nothing lies above it.
    pub for_forks: bool,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnapshotTaken {
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: SnapshotInfo,
    /// The commands that were ended for it. Services, which start again, are not among them.
    pub stopped: Vec<String>,
}

/// Options of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RollbackOptions {
    /// The snapshot of the pool, by name or id.
    pub snapshot: String,
    /// As for a snapshot.
    #[serde(default)]
    pub stop: bool,
    /// As for a snapshot.
    #[serde(default)]
    pub asleep_only: bool,
}

/// The result of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RollbackDone {
    /// The commands that were ended for it. Services, which start again, are not among them.
    pub stopped: Vec<String>,
}

/// Options of forks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ForkOptions {
    /// A snapshot of the pool or, if there is none of that name, a sandbox; each by name or id.
    pub from: String,
    /// The number of sandboxes to make, from 1 to 64.
    #[serde(default = "one")]
    pub count: usize,
    /// The name of the fork; of several, the beginning of their names. By default the name of what is forked.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub name: Option<SandboxName>,
    /// As for a snapshot.
    #[serde(default)]
    pub stop: bool,
}

fn one() -> usize {
    1
}

impl ForkOptions {
    /// The most forks that are made at once.
    pub const MAX: usize = 64;
}

/// The sandboxes that were made of something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forks {
    /// Their names.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub names: Vec<SandboxName>,
    /// The commands that were ended for it.
    pub stopped: Vec<String>,
}

/// Options of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CommitOptions {
    /// A snapshot of the pool or, if there is none of that name, a sandbox; each by name or id.
    pub from: String,
    /// The name of the image, such as `app:1`. An image that has it loses it.
    pub reference: String,
    /// As for a snapshot.
    #[serde(default)]
    pub stop: bool,
}

/// An image that was made of a snapshot or a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImageCommitted {
    /// The image.
    #[serde(flatten)]
    pub image: ImageInfo,
    /// The commands that were ended for it.
    pub stopped: Vec<String>,
}

/// A snapshot or a sandbox that forks, or an image, are made of.
#[derive(Debug, Clone)]
pub struct ForkSource(pub(super) ForkedFiles);

#[derive(Debug, Clone)]
pub(super) enum ForkedFiles {
    Snapshot(Box<SnapshotInfo>),
    Sandbox(Box<SandboxRow>),
}

impl ForkSource {
    /// Returns the id of the sandbox whose present files are forked; `None`: it is a snapshot.
    pub fn sandbox(&self) -> Option<&SandboxId> {
        match &self.0 {
            ForkedFiles::Snapshot(_) => None,
            ForkedFiles::Sandbox(row) => Some(&row.id),
        }
    }

    /// Returns the name that the sandbox has, or had.
    pub(super) fn name(&self) -> &SandboxName {
        match &self.0 {
            ForkedFiles::Snapshot(snapshot) => &snapshot.sandbox_name,
            ForkedFiles::Sandbox(row) => &row.name,
        }
    }

    /// Returns the spec that the forks have. It names no image: their files are those of the source.
    pub fn spec(&self) -> SandboxSpec {
        let spec = match &self.0 {
            ForkedFiles::Snapshot(snapshot) => &snapshot.spec,
            ForkedFiles::Sandbox(row) => &row.spec,
        };
        SandboxSpec { image: None, ..spec.clone() }
    }
}

/// One side of a comparison, by the names of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparedPoint {
    /// A snapshot or, if there is none of that name, the present files of a sandbox.
    Named(String),
    /// The present files of this sandbox.
    Sandbox(String),
    /// The files below the present changes of this sandbox: see [`eyot::BranchPoint::Base`].
    BaseOf(String),
}

/// The text before the name of a sandbox whose base is meant. No name has a colon.
const BASE: &str = "base:";

impl FromStr for ComparedPoint {
    type Err = Error;

    /// Parses a name or an id, or `base:` and that of a sandbox.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text.strip_prefix(BASE) {
            _ if text.is_empty() || text == BASE => {
                Err(Error::invalid("point", "must name a snapshot or a sandbox"))
            }
            Some(sandbox) => Ok(Self::BaseOf(sandbox.to_owned())),
            None => Ok(Self::Named(text.to_owned())),
        }
    }
}

impl fmt::Display for ComparedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) | Self::Sandbox(name) => f.write_str(name),
            Self::BaseOf(name) => write!(f, "{BASE}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_of_a_comparison_is_a_name_or_the_base_of_a_sandbox() {
        for (text, point) in [
            ("good", ComparedPoint::Named("good".to_owned())),
            ("base:dev", ComparedPoint::BaseOf("dev".to_owned())),
        ] {
            assert_eq!(text.parse::<ComparedPoint>().unwrap(), point);
            assert_eq!(point.to_string(), text);
        }
        for wrong in ["", "base:"] {
            assert!(wrong.parse::<ComparedPoint>().is_err(), "{wrong}");
        }
    }
}
