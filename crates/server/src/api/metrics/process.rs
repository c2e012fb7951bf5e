//! The server's own use of its host, read from `/proc/self` at each request for metrics.

use std::fs;
use std::io;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// The server's memory, file descriptors and threads.
#[derive(Default)]
pub(super) struct Gauges {
    resident_bytes: Gauge,
    open_fds: Gauge,
    threads: Gauge,
}

impl Gauges {
    pub fn register(&self, registry: &mut Registry) {
        let what = "Resident memory of the server";
        registry.register_with_unit(
            "process_resident_memory",
            what,
            Unit::Bytes,
            self.resident_bytes.clone(),
        );
        registry.register("process_open_fds", "Open file descriptors of the server", self.open_fds.clone());
        registry.register("process_threads", "Threads of the server", self.threads.clone());
    }

    pub fn read(&self) -> io::Result<()> {
        let status = fs::read_to_string("/proc/self/status")?;
        self.resident_bytes.set(number(&status, "VmRSS:").saturating_mul(1024));
        self.threads.set(number(&status, "Threads:"));
        // One of them is that of the reading.
        let open = fs::read_dir("/proc/self/fd")?.count().saturating_sub(1);
        self.open_fds.set(i64::try_from(open).unwrap_or(i64::MAX));
        Ok(())
    }
}

/// Returns the number in a line of `/proc/self/status`, or 0 if there is no such line.
fn number(status: &str, name: &str) -> i64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_descriptors_and_threads() {
        let gauges = Gauges::default();
        gauges.read().unwrap();
        assert!(
            gauges.resident_bytes.get() > 1 << 20 && gauges.open_fds.get() > 2 && gauges.threads.get() > 0
        );
        assert_eq!(number("VmRSS:\t  123 kB\n", "VmRSS:"), 123);
    }
}
