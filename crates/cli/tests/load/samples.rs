//! Samples of the resources that the server uses.

use std::fmt;
use std::fs;

#[derive(Debug, Clone, Copy)]
pub struct Sample {
    resident_kib: u64,
    fds: u64,
    threads: u64,
}

impl Sample {
    pub fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
        Self { resident_kib: number("VmRSS:"), fds, threads: number("Threads:") }
    }

    /// Returns the largest of each figure.
    pub fn most(samples: &[Self]) -> Self {
        let most = |of: fn(&Self) -> u64| samples.iter().map(of).max().unwrap();
        Self {
            resident_kib: most(|sample| sample.resident_kib),
            fds: most(|sample| sample.fds),
            threads: most(|sample| sample.threads),
        }
    }

    /// Tells whether this sample is at most the other one, but for a busy moment: a tenth, and 4
    /// MiB, 16 descriptors, 8 threads.
    pub fn is_like(&self, before: &Self) -> bool {
        let at_most = |now: u64, before: u64, slack: u64| now <= before + before / 10 + slack;
        at_most(self.resident_kib, before.resident_kib, 4096)
            && at_most(self.fds, before.fds, 16)
            && at_most(self.threads, before.threads, 8)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.resident_kib as f64 / 1024.0;
        write!(f, "{mebibytes:.1} MiB, {} descriptors, {} threads", self.fds, self.threads)
    }
}
