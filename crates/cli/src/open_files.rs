//! Shares the limit of open files between `eyot serve` and its clients: the server keeps the files
//! that it needs itself.

use std::fs;

use eyot::{Error, ErrorKind};
use eyot_server::api::ServeLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::errors::Failure;

/// Files for short use: by sandboxes that are being created, the store, the log and a health check.
const RESERVE: u64 = 64;
/// The fewest files for the clients of one listener.
const LEAST: u64 = 32;

/// The limit of open files of this process, and the number that are open.
#[derive(Debug, Clone, Copy)]
pub struct OpenFiles {
    most: u64,
    open: u64,
}

impl OpenFiles {
    /// Raises the limit as far as this process may, and counts the open files, which are taken to
    /// stay open.
    pub fn raise() -> Result<Self, Failure> {
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, limit = ?before.current, "the limit of open files stays as it is");
        }
        let open =
            fs::read_dir("/proc/self/fd").map_err(|error| Failure::host("count our open files", error))?;
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Ok(Self { most, open: open.count() as u64 })
    }

    /// Lowers these limits to what there are files for, with this many listeners. Fails if there
    /// are too few to serve any client.
    pub fn share(self, limits: ServeLimits, listeners: usize) -> Result<ServeLimits, Failure> {
        let listeners = listeners.max(1) as u64;
        let free = self.most.saturating_sub(self.open + RESERVE);
        if free < LEAST * listeners {
            return Err(self.too_few(listeners));
        }
        let count = |files: u64| usize::try_from(files).unwrap_or(usize::MAX);
        // A quarter is for sandboxes in use. A connection has its own file and, for a preview or a log, one more.
        let (sandboxes, connections) = (free / 4, free / 4 * 3 / 2 / listeners);
        let limits =
            ServeLimits { max_open_sandboxes: limits.max_open_sandboxes.min(count(sandboxes)), ..limits };
        let max_connections = count(connections);
        if limits.max_connections <= max_connections {
            return Ok(limits);
        }
        // One key alone does not take them all.
        let max_requests_per_key = limits.max_requests_per_key.min(max_connections / 4 * 3);
        Ok(ServeLimits { max_connections, max_requests_per_key, ..limits })
    }

    fn too_few(self, listeners: u64) -> Failure {
        let needed = self.open + RESERVE + LEAST * listeners;
        let message =
            format!("serve: at least {needed} open files are needed, and {} are allowed", self.most);
        let hint = format!("raise the limit: `ulimit -n {needed}`, or LimitNOFILE= of the systemd service");
        Failure::from(Error::new(ErrorKind::Unavailable, message)).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_is_left_and_never_more_than_the_limits_say() {
        let usual = ServeLimits::default();
        let plenty = OpenFiles { most: 1 << 20, open: 30 }.share(usual.clone(), 2).unwrap();
        assert_eq!(plenty, usual);
        for (most, listeners) in [(200, 1), (256, 1), (256, 2), (1024, 3), (u64::MAX, 1)] {
            let files = OpenFiles { most, open: 30 };
            let limits = files.share(usual.clone(), listeners).unwrap();
            let taken = limits.max_connections * 2 * listeners + limits.max_open_sandboxes;
            assert!(30 + RESERVE + taken as u64 <= most, "{most}: {limits:?}");
            assert!(limits.max_connections >= 8 && limits.max_requests_per_key < limits.max_connections);
        }
    }

    #[test]
    fn too_few_are_refused_with_the_number() {
        let least = OpenFiles { most: 30 + RESERVE + LEAST, open: 30 };
        assert!(least.share(ServeLimits::default(), 1).is_ok());
        let fewer = OpenFiles { most: least.most - 1, ..least };
        let refused = fewer.share(ServeLimits::default(), 1).unwrap_err();
        let Failure::Error { error, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(error.to_string(), "serve: at least 126 open files are needed, and 125 are allowed");
    }
}
