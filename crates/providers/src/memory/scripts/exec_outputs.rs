//! `exec > >(program)`, which sends the output of the rest of the script through a program. The interpreter loses that output.
//! It keeps the output of a group with the same redirection, so the rest of the script becomes such a group.

use std::borrow::Cow;

use bashkit::parser::{Command, ListOperator, RedirectKind, Script, SimpleCommand, WordPart};

use super::read;

const EXEC: &str = "exec";

/// Returns a script in which groups stand for such an `exec`.
pub(super) fn with_groups(script: &str) -> Cow<'_, str> {
    if !script.contains(EXEC) || !script.contains(">(") {
        return Cow::Borrowed(script);
    }
    let Some(places) = read(script).map(|read| places(&read)).filter(|places| !places.is_empty()) else {
        return Cow::Borrowed(script);
    };
    // The last one first, so that the places of the others stay.
    let grouped = places.iter().rev().try_fold(script.to_owned(), |text, place| grouped(&text, *place));
    match grouped.filter(|text| read(text).is_some()) {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(script),
    }
}

/// Makes a group of what follows the `exec` between two positions. `None`: it is not where it was thought to be.
fn grouped(script: &str, (start, end): (usize, usize)) -> Option<String> {
    // The interpreter counts what separates it from the next command as a part of it.
    let redirections = script.get(start..end)?.strip_prefix(EXEC)?.trim_end();
    let redirections = redirections.strip_suffix(';').unwrap_or(redirections);
    let behind = start + EXEC.len() + redirections.len();
    let rest = script[behind..].trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix(';').unwrap_or(rest).trim_start_matches([' ', '\t']);
    Some(format!("{}{{ {rest}\n}}{redirections}", &script[..start]))
}

/// Returns where such commands begin and end. Only those count that the whole rest of the script follows.
fn places(script: &Script) -> Vec<(usize, usize)> {
    let all = script.commands.iter().flat_map(|command| match command {
        Command::List(list) => {
            let mut before = ListOperator::Semicolon;
            let mut items = Vec::new();
            let mut item = &*list.first;
            for (operator, next) in &list.rest {
                items.push((before, item, *operator));
                (before, item) = (*operator, next);
            }
            items.push((before, item, ListOperator::Semicolon));
            items
        }
        command => vec![(ListOperator::Semicolon, command, ListOperator::Semicolon)],
    });
    let ends_alone = |operator| operator == ListOperator::Semicolon;
    let follows_alone = |operator| matches!(operator, ListOperator::Semicolon | ListOperator::Background);
    all.filter_map(|(before, command, after)| match command {
        Command::Simple(simple) if follows_alone(before) && ends_alone(after) && sends_through(simple) => {
            Some((simple.span.start.offset, simple.span.end.offset))
        }
        _ => None,
    })
    .collect()
}

/// Tells whether a command is an `exec` that only redirects, with a program at the end of a redirection.
fn sends_through(command: &SimpleCommand) -> bool {
    let is_exec = matches!(command.name.parts.as_slice(), [WordPart::Literal(name)] if name == EXEC);
    let to_program = |part: &WordPart| matches!(part, WordPart::ProcessSubstitution { is_input: false, .. });
    // The text of a here-document stands behind the line, and would become a part of the group.
    let is_document = |kind: RedirectKind| matches!(kind, RedirectKind::HereDoc | RedirectKind::HereDocStrip);
    is_exec
        && command.args.is_empty()
        && command.assignments.is_empty()
        && command.redirects.iter().all(|redirect| redirect.fd_var.is_none() && !is_document(redirect.kind))
        && command.redirects.iter().any(|redirect| redirect.target.parts.iter().any(to_program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_script_becomes_a_group() {
        for (script, grouped) in [
            ("exec > >(tee log) 2>&1; echo one", "{ echo one\n} > >(tee log) 2>&1"),
            (
                "set -e\nexec 2> >(cat)\n# c\necho a\nexit 3\n",
                "set -e\n{ \n# c\necho a\nexit 3\n\n} 2> >(cat)",
            ),
            ("a & exec > >(b); exec 2> >(c); d", "a & { { d\n} 2> >(c)\n} > >(b)"),
            ("exec > >(sed 's/;/x/'); { a; }", "{ { a; }\n} > >(sed 's/;/x/')"),
            ("exec > >(b) # c\na", "{ \na\n} > >(b) # c"),
        ] {
            assert_eq!(with_groups(script), grouped, "{script}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for script in [
            "exec >log; tee >(cat)",
            "exec > >(cat)",
            "true && exec > >(cat); echo a",
            "if true; then exec > >(cat); fi; echo a",
            "echo 'exec > >(cat); echo a'",
            "exec bash > >(cat); echo a",
            "exec > >(cat) & echo a",
            "exec < <(cat); if",
            "exec > >(cat >&2) <<E; cat\ntouch pwned\nE\nls",
            "exec 2> >(cat) <<-'E'; read l\necho RUN\nE\necho a",
        ] {
            assert_eq!(with_groups(script), script);
        }
    }
}
