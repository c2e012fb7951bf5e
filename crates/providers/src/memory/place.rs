//! A place in a tree: what a path leads to.

use eyot::Result;

use super::names::{FileName, joined};
use super::node::{NodeId, not_found};

/// A path whose links were followed.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The names from the root.
    pub names: Vec<FileName>,
    /// The directories on the way, the root first: one for each name.
    pub chain: Vec<NodeId>,
    /// The directory that holds it; the root holds itself.
    pub parent: NodeId,
    /// The node there, if there is one.
    pub node: Option<NodeId>,
}

impl Place {
    pub(super) fn name(&self) -> &[u8] {
        self.names.last().map_or(b"", Vec::as_slice)
    }

    /// The path from the root.
    pub(super) fn path(&self) -> Vec<u8> {
        [b"/".as_slice(), &joined(&self.names)].concat()
    }

    pub(super) fn found(&self) -> Result<NodeId> {
        self.node.ok_or_else(not_found)
    }
}
