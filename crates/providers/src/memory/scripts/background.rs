//! Programs in the background, such as `server &`. The interpreter passes their output on when they have ended. Behind a pipe
//! into a program of ours, it comes as they go.

use std::borrow::Cow;

use bashkit::parser::{Command, ListOperator};

use super::{PASS_ON, read};

/// Words of scripts that ask about what runs in the background, which the pipe would change.
const JOB_CONTROL: [&str; 9] = ["$!", "%", "bg", "disown", "fg", "jobs", "kill", "trap", "wait"];

/// Returns a script in which the output of such programs is passed on. Only programs of the script itself are looked at, not
/// those of its functions, loops and groups.
pub(super) fn with_passed_output(script: &str) -> Cow<'_, str> {
    if !script.contains('&') || JOB_CONTROL.iter().any(|word| script.contains(word)) {
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
            if stands_alone && *operator == ListOperator::Background {
                match item {
                    Command::Simple(simple) => ends.push(simple.span.end.offset),
                    Command::Pipeline(pipeline) => ends.push(pipeline.span.end.offset),
                    _ => {}
                }
            }
            (before, item) = (*operator, next);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_background_gets_a_pipe() {
        for (script, passed) in [
            ("yes & yes >&2", "yes PIPE & yes >&2"),
            ("a; b x 2>&1 &\nc | d & e", "a; b x 2>&1 PIPE &\nc | d PIPE & e"),
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
            "a && b &",
            "a & wait",
            "a & kill $!",
            "f() { a & }; f",
            "for i in 1 2; do a & done",
            "x=$(a & b)",
            "(a) & b",
            "echo 'a & b' 2>&1 && c",
            "a & if",
        ] {
            assert_eq!(with_passed_output(script), script);
        }
    }
}
