//! The files of `--files0-from`: a list of names, in which a zero byte ends each.

use super::lines::lines;
use super::quoting::quoted;
use super::run::Ending;

/// Refuses operands beside a list.
pub(super) fn refuse_operands(list: Option<&str>, operands: &[String]) -> Result<(), Ending> {
    match (list, operands.first()) {
        (Some(_), Some(extra)) => Err(Ending::usage(format!(
            "extra operand {}\nfile operands cannot be combined with --files0-from",
            quoted(extra)
        ))),
        _ => Ok(()),
    }
}

/// Returns the names in a list.
pub(super) fn names(list: &[u8]) -> Vec<String> {
    lines(list, 0).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
