//! The toolsets that come with Eyot.

use eyot::{Error, ErrorKind, Result};

use super::anthropic;
use super::checkpoints;
use super::coding;
use super::pool;
use super::set::{Toolset, quoted};
use super::workspace;

type BuildToolset = fn() -> Result<Toolset>;

/// One line for each toolset.
const TOOLSETS: &[(&str, BuildToolset)] = &[
    ("pool", pool::toolset),
    ("coding", coding::coding),
    ("workspace", workspace::default_tools),
    ("anthropic", anthropic::default_tools),
    ("checkpoints", checkpoints::toolset),
];

/// The toolset of this name. `not_found`, with the names that there are.
pub fn toolset(name: &str) -> Result<Toolset> {
    let found = TOOLSETS.iter().find(|(known, _)| *known == name);
    let (_, make) = found.ok_or_else(|| {
        let hint = format!("there are: {}", quoted(&toolset_names()));
        Error::new(ErrorKind::NotFound, format!("there is no toolset `{name}`")).with_hint(hint)
    })?;
    make()
}

/// The names of the toolsets that come with Eyot.
pub fn toolset_names() -> Vec<&'static str> {
    TOOLSETS.iter().map(|(name, _)| *name).collect()
}
