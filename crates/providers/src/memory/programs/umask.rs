//! `umask`: the bits that new files do not get.
//!
//! The interpreter keeps a mask of its own, which it shows to no program. Ours is in the
//! environment, so that subshells, shells below and programs have it.

use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand};

/// The variable of the mask. The interpreter leaves names that begin so out of its lists.
pub(super) const VARIABLE: &str = "_TTY_UMASK";
/// The mask of a new shell.
pub(super) const USUAL: u32 = 0o022;

/// Reads the mask from its variable.
pub(super) fn mask_of(variable: Option<&String>) -> u32 {
    variable.and_then(|mask| u32::from_str_radix(mask, 8).ok()).unwrap_or(USUAL)
}

/// The task of a call of `umask`.
#[derive(Debug, PartialEq, Eq)]
enum UmaskCall {
    Set(u32),
    Show(String),
    Refused(String, i32),
}

pub(super) struct Umask;

#[async_trait]
impl Builtin for Umask {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(match asked(context.args, mask_of(context.env.get(VARIABLE))) {
            UmaskCall::Show(line) => ExecResult::ok(line + "\n"),
            UmaskCall::Refused(reason, status) => ExecResult::err(format!("bash: umask: {reason}\n"), status),
            UmaskCall::Set(_) => ExecResult::ok(""),
        })
    }

    async fn execution_plan(&self, context: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let UmaskCall::Set(mask) = asked(context.args, mask_of(context.env.get(VARIABLE))) else {
            return Ok(None);
        };
        let args = vec![format!("{VARIABLE}={mask:04o}")];
        let export = SubCommand { name: "export".to_owned(), args, stdin: None, assignments: Vec::new() };
        Ok(Some(ExecutionPlan::Batch { commands: vec![export] }))
    }
}

fn asked(args: &[String], mask: u32) -> UmaskCall {
    let (mut is_symbolic, mut is_reusable) = (false, false);
    let mut args = args.iter().map(String::as_str).peekable();
    while let Some(arg) = args.next_if(|arg| arg.len() > 1 && arg.starts_with('-')) {
        match arg {
            "--" => break,
            "-S" => is_symbolic = true,
            "-p" => is_reusable = true,
            "-pS" | "-Sp" => (is_symbolic, is_reusable) = (true, true),
            _ => {
                let usage = format!("{arg}: invalid option\numask: usage: umask [-p] [-S] [mode]");
                return UmaskCall::Refused(usage, 2);
            }
        }
    }
    let Some(mode) = args.next() else {
        let shown = if is_symbolic { symbolic(mask) } else { format!("{mask:04o}") };
        let front = match (is_reusable, is_symbolic) {
            (true, true) => "umask -S ",
            (true, false) => "umask ",
            (false, _) => "",
        };
        return UmaskCall::Show(format!("{front}{shown}"));
    };
    if mode.starts_with(|digit: char| digit.is_ascii_digit()) {
        return match u32::from_str_radix(mode, 8) {
            Ok(mask) => UmaskCall::Set(mask & 0o777),
            Err(_) => UmaskCall::Refused(format!("{mode}: octal number out of range"), 1),
        };
    }
    match changed(mode, mask) {
        Ok(mask) => UmaskCall::Set(mask),
        Err(reason) => UmaskCall::Refused(reason, 1),
    }
}

fn symbolic(mask: u32) -> String {
    let class = |(name, shift): (char, u32)| {
        let bits = [(4, 'r'), (2, 'w'), (1, 'x')];
        let free: String =
            bits.iter().filter(|(bit, _)| mask >> shift & bit == 0).map(|(_, letter)| *letter).collect();
        format!("{name}={free}")
    };
    [('u', 6), ('g', 3), ('o', 0)].map(class).join(",")
}

/// Changes the mask by a mode like `u=rwx,g-w`, which is about the bits that stay free.
fn changed(mode: &str, mask: u32) -> Result<u32, String> {
    let mut free = !mask & 0o777;
    for clause in mode.split(',') {
        let end = clause.find(|letter| !"ugoa".contains(letter)).unwrap_or(clause.len());
        let (who, change) = clause.split_at(end);
        let mut classes = if who.is_empty() { 0o777 } else { 0 };
        for letter in who.chars() {
            classes |= match letter {
                'u' => 0o700,
                'g' => 0o070,
                'o' => 0o007,
                _ => 0o777,
            };
        }
        let sign = change.chars().next().filter(|sign| "+-=".contains(*sign));
        let sign = sign.ok_or_else(|| {
            let wrong = change.chars().next().map_or_else(String::new, String::from);
            format!("`{wrong}': invalid symbolic mode operator")
        })?;
        let mut bits = 0;
        for letter in change[1..].chars() {
            bits |= match letter {
                'r' => 0o444,
                'w' => 0o222,
                'x' | 'X' => 0o111,
                'u' => (free >> 6 & 7) * 0o111,
                'g' => (free >> 3 & 7) * 0o111,
                'o' => (free & 7) * 0o111,
                other => return Err(format!("`{other}': invalid symbolic mode character")),
            };
        }
        free = match sign {
            '+' => free | bits & classes,
            '-' => free & !(bits & classes),
            _ => free & !classes | bits & classes,
        };
    }
    Ok(!free & 0o777)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str, mask: u32) -> UmaskCall {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        asked(&args, mask)
    }

    #[test]
    fn a_mask_is_set_by_its_bits_or_by_those_that_stay_free() {
        for (line, mask) in [
            ("077", 0o077),
            ("-- 22", 0o022),
            ("01777", 0o777),
            ("u=rwx,g=,o=", 0o077),
            ("g-w", 0o022),
            ("a=", 0o777),
            ("+w", 0o000),
            ("o=u", 0o020),
        ] {
            assert_eq!(ask(line, 0o022), UmaskCall::Set(mask), "{line}");
        }
        for line in ["9", "x", "u", "u=q", "-x"] {
            assert!(matches!(ask(line, 0o022), UmaskCall::Refused(..)), "{line}");
        }
    }

    #[test]
    fn a_mask_is_shown_as_bash_shows_it() {
        for (line, shown) in
            [("", "0027"), ("-S", "u=rwx,g=rx,o="), ("-p", "umask 0027"), ("-p -S", "umask -S u=rwx,g=rx,o=")]
        {
            assert_eq!(ask(line, 0o027), UmaskCall::Show(shown.to_owned()));
        }
    }
}
