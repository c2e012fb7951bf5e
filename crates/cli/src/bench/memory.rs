//! The memory that is used, as the kernel tells it.

use crate::errors::Failure;

/// Returns the host's `MemAvailable`, in KiB.
pub fn available_kib() -> Result<f64, Failure> {
    field("/proc/meminfo", "MemAvailable:")
}

/// Returns the resident memory of this process, in KiB.
pub fn resident_kib() -> Result<f64, Failure> {
    field("/proc/self/status", "VmRSS:")
}

fn field(file: &str, name: &str) -> Result<f64, Failure> {
    let failed = |error| Failure::host("read how much memory is used", error);
    let text = std::fs::read_to_string(file).map_err(failed)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))
}
