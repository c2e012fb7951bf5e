//! The output of commands in the background. The interpreter keeps it until they end, so a program of ours at the end of a pipe
//! passes it on as it comes.

use std::sync::OnceLock;

use serde_json::Value;

use super::read_tree;
use crate::memory::plain::has_background;

/// The program that passes on what it reads.
pub(in crate::memory) const PASS: &str = "__eyot_pass";

/// A longer script keeps the output of such commands until they end.
const MAX_BYTES: usize = 16 << 10;
/// The most readings of a script that are tried. Each command in the background takes one or two.
const MAX_READINGS: usize = 24;
/// Commands that write what they have at once, and end. They keep their place in the order of the output.
const QUICK: [&str; 5] = ["echo", "printf", "true", "false", ":"];
/// Words of scripts in which a pipe would be seen, or in which the outputs lead elsewhere.
const SEEN_BY: [&str; 4] = ["exec", "jobs", "xtrace", "PIPESTATUS"];

/// Lets a program pass on what the commands in the background write, where they write to the script's own output.
pub(in crate::memory) fn adapt_background(script: &mut String) {
    if script.len() > MAX_BYTES || !has_background(script) || sees_pipes(script) {
        return;
    }
    let Some(original) = plain_tree(script) else { return };
    let (mut passed, mut readings) = (0, 0);
    let ends: Vec<usize> = single_ampersands(script).collect();
    // The last one first, so that the places of the others stay.
    for end in ends.into_iter().rev() {
        for start in starts(script, end) {
            if readings == MAX_READINGS {
                return;
            }
            readings += 1;
            let tried = passing(script, start, end);
            let Some(mut tree) = plain_tree(&tried) else { continue };
            let mut found = 0;
            unwrap(&mut tree, true, &mut found);
            if found == passed + 1 && tree == original {
                passed += 1;
                *script = tried;
                break;
            }
        }
    }
}

fn sees_pipes(script: &str) -> bool {
    let mut options = script.match_indices("set -").map(|(at, set)| &script[at + set.len()..]);
    let traces =
        |options: &str| options.chars().take_while(char::is_ascii_alphabetic).any(|option| option == 'x');
    SEEN_BY.iter().any(|word| script.contains(word)) || options.any(traces)
}

/// Returns the places of each `&` that stands alone, whatever it means there.
fn single_ampersands(script: &str) -> impl Iterator<Item = usize> {
    let bytes = script.as_bytes();
    let beside = |at: usize| [at.checked_sub(1), Some(at + 1)].map(|at| at.and_then(|at| bytes.get(at)));
    let is_alone = move |at: &usize| {
        !matches!(beside(*at), [Some(b'&' | b'>' | b'<' | b'|'), _] | [_, Some(b'&' | b'>')])
    };
    script.match_indices('&').map(|(at, _)| at).filter(is_alone)
}

/// Returns the places where the command before an `&` may begin, the nearest first.
fn starts(script: &str, end: usize) -> Vec<usize> {
    let before = &script[..end];
    let behind_sign = before.match_indices([';', '&', '\n', '(']).map(|(at, sign)| at + sign.len());
    let behind_word = ["do ", "then ", "else ", "{ "]
        .iter()
        .flat_map(|word| before.match_indices(word).map(|(at, word)| at + word.len()));
    let mut starts: Vec<usize> = std::iter::once(0).chain(behind_sign).chain(behind_word).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|start| is_balanced(&before[*start..]));
    starts.reverse();
    starts
}

/// Tells whether a text may be a whole command.
fn is_balanced(text: &str) -> bool {
    let count = |sign: char| text.matches(sign).count();
    let words = || text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let count_words = |sought: &str| words().filter(|word| *word == sought).count();
    !text.trim().is_empty()
        && count('(') == count(')')
        && count('{') == count('}')
        && count_words("do") == count_words("done")
        && count_words("if") == count_words("fi")
}

/// Returns a script in which the command between two places passes on its output.
fn passing(script: &str, start: usize, end: usize) -> String {
    let (before, command, behind) = (&script[..start], script[start..end].trim(), &script[end..]);
    format!("{before} {} {behind}", wrapped(command))
}

fn wrapped(command: &str) -> String {
    format!("( {{ {command}; }} | {PASS}; exit ${{PIPESTATUS[0]}} )")
}

/// Reads a script as a tree without the places of its parts.
fn plain_tree(script: &str) -> Option<Value> {
    let mut tree = read_tree(script)?;
    remove_places(&mut tree);
    Some(tree)
}

fn remove_places(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(remove_places),
        Value::Object(parts) => {
            parts.remove("span");
            parts.values_mut().for_each(remove_places);
        }
        _ => {}
    }
}

/// Puts the commands themselves in place of those that pass on their output, and counts them. `is_open`: what is written here is
/// the script's own output.
fn unwrap(part: &mut Value, is_open: bool, count: &mut usize) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(|part| unwrap(part, is_open, count)),
        Value::Object(parts) => {
            if is_open && parts.contains_key("first") {
                for command in left_in(part) {
                    if let Some(inner) = inner(command) {
                        *command = inner;
                        *count += 1;
                    }
                }
            }
            let Value::Object(parts) = part else { return };
            for (name, part) in parts {
                let stays_open = match name.as_str() {
                    "Compound" => part[1].as_array().is_some_and(Vec::is_empty),
                    "Pipeline" | "Function" | "Coproc" | "Time" | "Simple" | "parts" => false,
                    _ => true,
                };
                unwrap(part, is_open && stays_open, count);
            }
        }
        _ => {}
    }
}

/// Returns the commands that a list starts in the background.
fn left_in(list: &mut Value) -> Vec<&mut Value> {
    let Some(parts) = list.as_object_mut() else { return Vec::new() };
    let (mut first, mut rest) = (None, None);
    for (name, part) in parts {
        match name.as_str() {
            "first" => first = Some(part),
            "rest" => rest = part.as_array_mut(),
            _ => {}
        }
    }
    let (Some(first), Some(rest)) = (first, rest) else { return Vec::new() };
    let is_left: Vec<bool> = rest.iter().map(|item| item[0] == "Background").collect();
    let items = std::iter::once(first).chain(rest.iter_mut().map(|item| &mut item[1]));
    items.zip(is_left).filter_map(|(item, is_left)| is_left.then_some(item)).collect()
}

/// Returns the command that passes on its output here, if it may take a while.
fn inner(command: &Value) -> Option<Value> {
    static EMPTY: OnceLock<Option<Value>> = OnceLock::new();
    const INNER: &str = "/Compound/0/Subshell/0/List/first/Pipeline/commands/0/Compound/0/BraceGroup";
    let empty = EMPTY.get_or_init(|| {
        let tree = plain_tree(&format!("{} & true", wrapped("true")))?;
        let mut command = tree.pointer("/commands/0/List/first")?.clone();
        command.pointer_mut(INNER)?.take();
        Some(command)
    });
    let mut command = command.clone();
    let commands = command.pointer_mut(INNER)?.take();
    if Some(&command) != empty.as_ref() {
        return None;
    }
    let [command] = commands.as_array()?.as_slice() else { return None };
    let name = command["Simple"]["name"]["parts"][0]["Literal"].as_str();
    let is_quick = name.is_some_and(|name| name.is_empty() || QUICK.contains(&name));
    (!is_quick).then(|| command.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(script: &str) -> String {
        let mut adapted = script.to_owned();
        adapt_background(&mut adapted);
        // Spaces mean nothing in these.
        adapted.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_may_take_a_while_passes_on_its_output() {
        for (before, command, behind) in [
            ("", "yes", "& yes >&2"),
            ("echo a;", "(while true; do echo a; sleep 1; done)", "& echo '&' b"),
            ("for i in 1 2; do", "(sleep $i; echo $i)", "& done; wait"),
            ("if true; then", "while :; do a; done", "& fi"),
            ("", "{ sleep 1; echo b; }", "& wait $!"),
            ("(", "tail -f log | grep a", "& sleep 1 )"),
            ("a && b; ", "c", "& # d"),
            ("f() { yes & };", "f", "& sleep 1"),
        ] {
            let script = format!("{before} {command} {behind}");
            let expected = format!("{before} {} {behind}", wrapped(command));
            assert_eq!(
                adapted(&script),
                expected.split_whitespace().collect::<Vec<_>>().join(" "),
                "{script}"
            );
        }
        assert_eq!(adapted("cat <<E & a\nE\nb"), format!("{} & a E b", wrapped("cat <<E")));
        assert_eq!(adapted("a & b & c"), format!("{} & {} & c", wrapped("a"), wrapped("b")));
    }

    #[test]
    fn where_the_output_leads_elsewhere_or_a_pipe_would_be_seen_nothing_changes() {
        for script in [
            "echo a & printf b & echo c",
            "x=$(yes & sleep 1); echo $x",
            "{ yes & sleep 1; } >log",
            "for i in 1; do yes & done | head",
            "f() { yes & }; f >log",
            "exec >log; yes & sleep 1",
            "yes & jobs",
            "set -ex; yes & sleep 1",
            "echo 'yes & no' \"a & b\"",
            "a && b",
            "a >&2 2>&1",
            "yes & if",
        ] {
            assert_eq!(adapted(script), script);
        }
    }
}
