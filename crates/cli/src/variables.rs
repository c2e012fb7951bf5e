//! The names of Eyot's variables. One that is misspelt would be passed over in silence, and with it
//! the limit that it was to set.

use eyot::internal::nearest;

use crate::errors::Failure;

/// The beginning of every variable of Eyot's.
const PREFIX: &str = "EYOT_";

/// The rest of the names of variables that the program, its clients and its servers read.
const KNOWN: [&str; 28] = [
    "API_KEY",
    "BIN",
    "CA_CERT",
    "CONFIG",
    "CPUS",
    "DATABASE",
    "DISK_MIB",
    "DOCKER_ENGINE",
    "IDLE_TIMEOUT",
    "IMAGE",
    "LOG",
    "MAX_FILE_BYTES",
    "MAX_OUTPUT_BYTES",
    "MCP_TOKEN",
    "MEMORY_MIB",
    "NET",
    "PIDS",
    "POOL_DISK_MIB",
    "POOL_MAX_SANDBOXES",
    "POOL_MEMORY_MIB",
    "POOL_PROCESSES",
    "PROVIDER",
    "PULL",
    "SERVER",
    "STATE",
    "TIMEOUT",
    "TTL",
    "USER",
];

/// Refuses the first of these names that is nearly one of ours, and was probably meant to be. Any
/// other name that begins as ours do may belong to another program.
pub fn refuse_misspelt(names: impl Iterator<Item = String>) -> Result<(), Failure> {
    for name in names {
        if let Some(meant) = name.strip_prefix(PREFIX).and_then(meant) {
            return Err(Failure::usage(format!("the variable `{name}` is not one of Eyot's"))
                .hint(format!("{PREFIX}{meant} is; docs/configuration.md has them all")));
        }
    }
    Ok(())
}

/// Ends of names that say once more what the value is.
const ADDED: [&str; 6] = ["_DIR", "_FOLDER", "_MS", "_PATH", "_SECONDS", "_URL"];

/// Returns the name that this one was meant to be. A unit may be missing (`EYOT_MEMORY`), and a word
/// may be added (`EYOT_STATE_DIR`).
fn meant(name: &str) -> Option<String> {
    if KNOWN.contains(&name) {
        return None;
    }
    let short = ADDED.iter().find_map(|end| name.strip_suffix(end)).filter(|short| KNOWN.contains(short));
    if let Some(short) = short {
        return Some(short.to_owned());
    }
    let with_unit =
        KNOWN.iter().find(|known| known.strip_prefix(name).is_some_and(|unit| unit.starts_with('_')));
    with_unit.map(|known| (*known).to_owned()).or_else(|| nearest(name, &KNOWN).into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_its_unit_or_with_a_wrong_letter_is_recognised() {
        for (typed, ours) in [
            ("MEMORY", "MEMORY_MIB"),
            ("DISK", "DISK_MIB"),
            ("MEMROY_MIB", "MEMORY_MIB"),
            ("IDLE_TIMEOUTS", "IDLE_TIMEOUT"),
            ("POOL_MEMORY", "POOL_MEMORY_MIB"),
            ("STATES", "STATE"),
            ("STATE_DIR", "STATE"),
            ("SERVER_URL", "SERVER"),
            ("TIMEOUT_MS", "TIMEOUT"),
        ] {
            assert_eq!(meant(typed).as_deref(), Some(ours), "{typed}");
        }
    }

    #[test]
    fn our_own_names_and_those_of_others_are_let_pass() {
        let of_others = ["UPDATE", "EMBED", "SLOWNESS", "SIMULATED", "CONFIG", "WEB_DIST", "X"];
        for name in KNOWN.iter().chain(&of_others) {
            assert_eq!(meant(name), None, "{name}");
        }
    }
}
