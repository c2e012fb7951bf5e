//! `yes &`: a program that writes without end in the background. The interpreter passes the output of such a program on when it has
//! ended, so it would come never. Behind a pipe into a program of ours, it comes as it goes.

use std::borrow::Cow;

use bashkit::parser::{Command, ListOperator, SimpleCommand, WordPart};

use super::{PASS_ON, read};

/// The program that ends by no end of its work.
const ENDLESS: &str = "yes";
/// Words of scripts that ask about what runs in the background, which the pipe would change, or that lead all output elsewhere.
const UNTOUCHED: [&str; 11] =
    ["$!", "%", "bg", "disown", "exec", "fg", "jobs", "kill", "set", "trap", "wait"];

/// Returns a script in which the output of such programs is passed on. Only programs of the script itself are looked at, not
/// those of its functions, loops and groups.
pub(super) fn with_passed_output(script: &str) -> Cow<'_, str> {
    if !script.contains(ENDLESS)
        || !script.contains('&')
        || UNTOUCHED.iter().any(|word| script.contains(word))
    {
        return Cow::Borrowed(script);
    }
    let Some(ends) = read(script).map(|read| ends(&read.commands)).filter(|ends| !ends.is_empty()) else {
        return Cow::Borrowed(script);
    };
    let mut changed = script.to_owned();
    // The last one first, so that the places of the others stay.
    for end in ends.iter().rev() {
        // The interpreter counts what separates a command from the next one as a part of it.
        let Some(command) = script.get(..*end).and_then(|text| text.trim_end().strip_suffix('&')) else {
            return Cow::Borrowed(script);
        };
        changed.insert_str(command.trim_end().len(), &format!(" | {PASS_ON}"));
    }
    if read(&changed).is_some() { Cow::Owned(changed) } else { Cow::Borrowed(script) }
}

/// Returns where the programs end that are started in the background.
fn ends(commands: &[Command]) -> Vec<usize> {
    let mut ends = Vec::new();
    for command in commands {
        let Command::List(list) = command else { continue };
        let mut before = ListOperator::Semicolon;
        let mut item = &*list.first;
        for (operator, next) in &list.rest {
            let stands_alone = matches!(before, ListOperator::Semicolon | ListOperator::Background);
            if stands_alone
                && *operator == ListOperator::Background
                && let Command::Simple(simple) = item
                && is_endless(simple)
            {
                ends.push(simple.span.end.offset);
            }
            (before, item) = (*operator, next);
        }
    }
    ends
}

fn is_endless(command: &SimpleCommand) -> bool {
    let has_name = matches!(command.name.parts.as_slice(), [WordPart::Literal(name)] if name == ENDLESS);
    has_name && command.redirects.is_empty() && command.assignments.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_program_in_the_background_gets_a_pipe() {
        for (script, passed) in [
            ("yes & yes >&2", "yes PIPE & yes >&2"),
            ("a; yes x &\nc & yes & e", "a; yes x PIPE &\nc & yes PIPE & e"),
        ] {
            assert_eq!(
                with_passed_output(script),
                passed.replace("PIPE", &format!("| {PASS_ON}")),
                "{script}"
            );
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for script in [
            "a & b",
            "yes >f & b",
            "a && yes &",
            "yes | head & b",
            "yes & wait",
            "exec >f; yes & b",
            "set -x; yes & b",
            "f() { yes & }; f",
            "for i in 1 2; do yes & done",
            "x=$(yes & b)",
            "(yes) & b",
            "echo 'yes & b' 2>&1 && c",
            "yes & if",
        ] {
            assert_eq!(with_passed_output(script), script);
        }
    }
}
