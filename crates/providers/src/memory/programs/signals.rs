//! The signals by their names and numbers.

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS",
];
pub(super) const KILL: i32 = 9;
pub(super) const TERM: i32 = 15;
const LAST: i32 = 64;

/// Reads a signal: its number, or its name with or without `SIG`.
pub(super) fn read_signal(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (0..=LAST).contains(&number).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let index = NAMES.iter().position(|known| *known == name)?;
    i32::try_from(index + 1).ok()
}

/// A signal as messages name it.
pub(super) fn signal_name(number: i32) -> String {
    let index = usize::try_from(number - 1).ok();
    let known = index.and_then(|index| NAMES.get(index));
    known.map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_a_name_and_a_number() {
        assert_eq!(read_signal("sigkill"), Some(9));
        assert_eq!(read_signal("TERM"), Some(15));
        assert_eq!(read_signal("2"), Some(2));
        assert_eq!(read_signal("NOSUCH"), None);
        assert_eq!(signal_name(15), "TERM");
    }
}
