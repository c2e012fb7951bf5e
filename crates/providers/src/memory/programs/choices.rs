//! Values of options, which may be cut short while they stay clear.

use super::quoting::curly;
use super::run::Ending;

/// Finds what the value of an option stands for.
pub(super) fn choose<T: Copy + PartialEq>(
    table: &[(&str, T)],
    given: &str,
    option: &str,
) -> Result<T, Ending> {
    if let Some((_, choice)) = table.iter().find(|(name, _)| *name == given) {
        return Ok(*choice);
    }
    let mut found = table.iter().filter(|(name, _)| name.starts_with(given)).map(|(_, choice)| *choice);
    let first = found.next();
    match first {
        Some(choice) if found.all(|other| other == choice) => Ok(choice),
        _ => {
            let kind = if first.is_some() { "ambiguous" } else { "invalid" };
            let (given, option) = (curly(given), curly(option));
            Err(Ending::Refused {
                reason: format!("{kind} argument {given} for {option}\n{}", listed(table)),
                // That of `ls` too, which has another one for all else.
                status: Some(1),
                has_hint: true,
            })
        }
    }
}

/// Lists the values. Those that mean the same stand together.
fn listed<T: Copy + PartialEq>(table: &[(&str, T)]) -> String {
    let lines: Vec<String> = table
        .chunk_by(|(_, one), (_, other)| one == other)
        .map(|same| {
            let names: Vec<String> = same.iter().map(|(name, _)| curly(name)).collect();
            format!("  - {}", names.join(", "))
        })
        .collect();
    format!("Valid arguments are:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T: std::fmt::Debug>(result: Result<T, Ending>) -> String {
        match result {
            Err(Ending::Refused { reason, .. }) => reason,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_value_that_is_none_is_answered_with_those_there_are() {
        let table = [("always", 1), ("yes", 1), ("never", 2)];
        assert_eq!(choose(&table, "ye", "--color").unwrap(), 1);
        let said = said(choose(&table, "x", "--color"));
        assert_eq!(
            said,
            "invalid argument ‘x’ for ‘--color’\nValid arguments are:\n  - ‘always’, ‘yes’\n  - ‘never’"
        );
    }
}
