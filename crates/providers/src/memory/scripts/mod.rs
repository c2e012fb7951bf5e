//! Changes to a script before the interpreter reads it, where it would do something else than a real shell. Each change is made
//! only if the interpreter's own parser shows that the changed script means what the old one meant.

mod background_outputs;
mod braced_words;
mod byte_names;
mod exec_outputs;
mod open_outputs;

use std::borrow::Cow;

use bashkit::parser::{Parser, Script};
use serde_json::Value;

pub(super) use background_outputs::{PASS, adapt_background};
pub(super) use open_outputs::lets_go_of_outputs;

/// The longest script that is changed. A longer one runs unchanged.
const MAX_SCRIPT_BYTES: usize = 64 * 1024;
/// The limits of one parse.
const MAX_DEPTH: usize = 100;
const MAX_STEPS: usize = 500_000;

/// Tells whether a script may have a name of bytes, which is adapted.
pub(super) fn may_name_bytes(script: &str) -> bool {
    script.contains(byte_names::BEGIN)
}

/// Adapts a script to the interpreter.
pub(super) fn adapt(script: &mut String) {
    for change in [exec_outputs::with_groups, byte_names::with_byte_names, braced_words::with_kept_words] {
        if script.len() > MAX_SCRIPT_BYTES {
            return;
        }
        if let Cow::Owned(changed) = change(script) {
            *script = changed;
        }
    }
}

/// Adapts the script that a shell is called with, if it is.
pub(super) fn adapt_for_shell(args: &mut [String]) {
    if let Some(script) = script_of_shell(args) {
        adapt(script);
    }
}

/// Returns the script among the arguments of a shell.
pub(super) fn script_of_shell(args: &mut [String]) -> Option<&mut String> {
    let mut has_script = false;
    let mut args = args.iter_mut();
    while let Some(arg) = args.next() {
        if arg == "--" || arg.len() < 2 || !arg.starts_with(['-', '+']) {
            let script = if arg == "--" { args.next() } else { Some(arg) };
            return script.filter(|_| has_script);
        }
        if arg.starts_with("--") {
            continue;
        }
        has_script |= arg.starts_with('-') && arg.contains('c');
        if arg.ends_with(['o', 'O']) {
            args.next();
        }
    }
    None
}

/// Reads a script. `None`: it can't be parsed.
fn read(script: &str) -> Option<Script> {
    Parser::with_limits(script, MAX_DEPTH, MAX_STEPS).parse().ok()
}

/// Reads a script as a tree, whose parts can be visited alike.
fn read_tree(script: &str) -> Option<Value> {
    serde_json::to_value(read(script)?).ok()
}

/// Calls a function for each part of a tree.
fn visit<'a>(part: &'a Value, look: &mut impl FnMut(&'a Value)) {
    look(part);
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| visit(part, look)),
        Value::Object(parts) => parts.values().for_each(|part| visit(part, look)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_a_called_shell_is_adapted() {
        const KEPT: &str = "echo ${__eyot_nothing-}'{a}' >f";
        for line in ["-ec S 'x", "-e -c S", "-c -o pipefail -- S S2", "--norc +e -c S"] {
            let mut args: Vec<String> = line
                .split(' ')
                .map(|arg| if arg == "S" { "echo '{a}' >f" } else { arg }.to_owned())
                .collect();
            adapt_for_shell(&mut args);
            assert!(args.iter().any(|arg| arg == KEPT), "{args:?}");
        }
        let mut args = ["-x", "file", "-c", "echo '{a}' >f"].map(str::to_owned);
        adapt_for_shell(&mut args);
        assert_eq!(args[3], "echo '{a}' >f");
    }

    #[test]
    fn any_text_is_a_script() {
        let scripts = [
            "exec > >(tee é) 2>&1; x=\"$(printf 'ë\\377')\" # ö\na é & (exec >ü 2>&1) & awk '{é}' <f",
            "exec 2> >(sed 's/;/é/');\ny ö | b & \"$(printf \"\\xE9%s\" 'ä')\" & cat <<E\né\nE\n",
        ];
        for script in scripts {
            for (at, letter) in script.char_indices() {
                for other in ["", "'", "\"", "\\", ";", "&", ")", "$(printf '", "é", "\n"] {
                    let mut changed = [&script[..at], other, &script[at + letter.len_utf8()..]].concat();
                    lets_go_of_outputs(&changed);
                    adapt(&mut changed);
                    adapt_background(&mut changed);
                }
            }
        }
    }
}
