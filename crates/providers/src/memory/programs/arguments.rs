//! The arguments of the interpreter's own builtins, put as they read them.

use bashkit::hooks::{HookAction, ToolEvent};

/// The options of `jobs`, which may stand together.
const JOBS_LETTERS: &str = "lnprs";

/// Puts the arguments of a builtin as it reads them.
pub(super) fn adapt(mut call: ToolEvent) -> HookAction<ToolEvent> {
    match call.name.as_str() {
        "cd" => name_the_directory(&mut call.args),
        "jobs" => call.args = letters_apart(&call.args),
        _ => {}
    }
    HookAction::Continue(call)
}

/// An empty name is the directory itself. The interpreter's `cd` would not remember that it was there.
fn name_the_directory(args: &mut [String]) {
    if let Some(last) = args.last_mut().filter(|last| last.is_empty()) {
        ".".clone_into(last);
    }
}

fn letters_apart(args: &[String]) -> Vec<String> {
    let apart = |arg: &String| match arg.strip_prefix('-') {
        Some(letters) if letters.len() > 1 && letters.chars().all(|one| JOBS_LETTERS.contains(one)) => {
            letters.chars().map(|letter| format!("-{letter}")).collect()
        }
        _ => vec![arg.clone()],
    };
    args.iter().flat_map(apart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_jobs_are_read_apart_and_cd_gets_a_name() {
        let args = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(letters_apart(&args("-rp -l %1 -x")), args("-r -p -l %1 -x"));
        assert_eq!(letters_apart(&args("-rx")), args("-rx"));
        let mut words = args("-P ");
        name_the_directory(&mut words);
        assert_eq!(words, args("-P ."));
    }
}
