//! The events of one sandbox.

use eyot::{Error, Result, SandboxId, SandboxName};

use super::Event;
use crate::name_in_pool::NameInPool;

/// Selects the events of one sandbox, of all that had its name if it is given by that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventFilter {
    /// The sandbox of this id.
    Id(SandboxId),
    /// The sandboxes of this name in a pool.
    Name {
        /// The pool.
        pool: SandboxName,
        /// The name in it.
        name: SandboxName,
    },
}

impl EventFilter {
    /// Parses NAME, POOL/NAME or an id. A name without a pool is one in `pool`.
    ///
    /// `invalid`: it is none of them.
    pub fn parse(named: &str, pool: &SandboxName) -> Result<Self> {
        if let Ok(id) = SandboxId::parse(named) {
            return Ok(Self::Id(id));
        }
        let wrong = |_| Error::invalid("sandbox", format!("must be NAME, POOL/NAME or an id, not `{named}`"));
        let NameInPool { pool: own, name } = NameInPool::parse(named).map_err(wrong)?;
        Ok(Self::Name { pool: own.unwrap_or_else(|| pool.clone()), name })
    }

    /// Tells whether an event is about the sandbox.
    pub fn takes(&self, event: &Event) -> bool {
        match self {
            Self::Id(id) => event.sandbox_id.as_deref() == Some(id.as_str()),
            Self::Name { pool, name } => {
                event.pool.as_deref() == Some(pool.as_str())
                    && event.sandbox.as_deref() == Some(name.as_str())
            }
        }
    }
}
