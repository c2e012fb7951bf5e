//! Quoted words such as `'{print}'` before a redirection. The interpreter takes them for the name of a
//! variable that gets the descriptor (`{name}>file`), which only a word without quotes is in the real shell.
//!
//! An expansion to nothing in front of its text keeps it a word. The interpreter's own reading tells
//! where this is so: there is one such name less then. In here-documents, comments and other quotes
//! there is not.

use std::borrow::Cow;

use bashkit::parser::Parser;
use serde_json::Value;

/// It expands to nothing, whatever options are set.
const NOTHING: &str = "${__eyot_nothing-}";
/// So many words are tried: the script is read for each.
const MAX_WORDS: usize = 16;
/// A longer script runs as it is.
const MAX_SCRIPT_BYTES: usize = 64 * 1024;
/// The depth and the steps of one reading.
const MAX_DEPTH: usize = 100;
const MAX_STEPS: usize = 500_000;

/// Returns a script in which quoted words are no names of descriptors.
pub(super) fn with_kept_words(script: &str) -> Cow<'_, str> {
    let places = suspects(script);
    if places.is_empty() || places.len() > MAX_WORDS || script.len() > MAX_SCRIPT_BYTES {
        return Cow::Borrowed(script);
    }
    let Some(mut names) = descriptor_names(script) else { return Cow::Borrowed(script) };
    let mut kept = Cow::Borrowed(script);
    // From the last one on, so that the places of the others stay.
    for at in places.into_iter().rev() {
        if names == 0 {
            break;
        }
        let tried = [&kept[..at], NOTHING, &kept[at..]].concat();
        if descriptor_names(&tried).is_some_and(|left| left + 1 == names) {
            names -= 1;
            kept = Cow::Owned(tried);
        }
    }
    kept
}

/// Keeps the words in the script of a shell that is called with one.
pub(super) fn keep_words_of_shell(argv: &mut [String]) {
    if let [shell, options, script, ..] = argv
        && matches!(shell.rsplit('/').next(), Some("bash" | "sh"))
        && options.starts_with('-')
        && options.ends_with('c')
        && let Cow::Owned(kept) = with_kept_words(script)
    {
        *script = kept;
    }
}

/// The places of quoted words that look like a name in braces, with a redirection behind them.
fn suspects(script: &str) -> Vec<usize> {
    memchr::memchr_iter(b'{', script.as_bytes()).filter_map(|brace| suspect(script, brace)).collect()
}

/// The place in the word whose brace is here where nothing may be added, if it is such a word.
fn suspect(script: &str, brace: usize) -> Option<usize> {
    let (before, rest) = (&script[..brace], &script[brace + 1..]);
    let quote = before.chars().next_back().filter(|quote| matches!(quote, '\'' | '"'))?;
    // Brackets would be a pattern beside an expansion that is not quoted.
    let is_name = |letter: char| {
        letter.is_alphanumeric() || letter == '_' || (quote == '"' && matches!(letter, '[' | ']'))
    };
    let behind = rest.trim_start_matches(is_name).strip_prefix('}')?.strip_prefix(quote)?;
    let behind = behind.trim_start_matches([' ', '\t', '\\', '\n']);
    if !["<", ">", "&>"].iter().any(|sign| behind.starts_with(sign)) {
        return None;
    }
    if quote == '"' {
        return Some(brace);
    }
    let word = before.strip_suffix(quote)?;
    // In `''{a}''` the quote ends here.
    if word.ends_with(quote) {
        return None;
    }
    // `$'…'` is one word.
    Some(word.strip_suffix('$').unwrap_or(word).len())
}

/// Counts the descriptors with a name in a script. `None`: it can't be read.
fn descriptor_names(script: &str) -> Option<usize> {
    let read = Parser::with_limits(script, MAX_DEPTH, MAX_STEPS).parse().ok()?;
    serde_json::to_value(read).ok().map(|read| count_names(&read))
}

fn count_names(part: &Value) -> usize {
    match part {
        Value::Array(parts) => parts.iter().map(count_names).sum(),
        Value::Object(parts) => {
            let own = parts.get("fd_var").is_some_and(Value::is_string);
            usize::from(own) + parts.values().map(count_names).sum::<usize>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use bashkit::Bash;

    use super::*;

    #[test]
    fn a_quoted_word_before_a_redirection_is_kept() {
        for (script, kept) in [
            ("awk '{print}' <f", "awk N'{print}' <f"),
            ("echo \"{name}\">>f; echo '{a}' \\\n > g", "echo \"N{name}\">>f; echo N'{a}' \\\n > g"),
            ("x=\"$(awk '{print}' < f | sort)\"", "x=\"$(awk N'{print}' < f | sort)\""),
            ("f() { if cat '{ä}' &>>g; then :; fi; }", "f() { if cat N'{ä}' &>>g; then :; fi; }"),
            (
                "cat $'{a}' <f; cat \\$'{a}' <f; cat $'{b}' <f",
                "cat N$'{a}' <f; cat \\$'{a}' <f; cat N$'{b}' <f",
            ),
            ("echo `cat '{a}' <f`", "echo `cat N'{a}' <f`"),
            ("while read x; do echo '{x}' >&2; done <f", "while read x; do echo N'{x}' >&2; done <f"),
            (
                "cat <<E # '{a}' <f\n'{a}' <f $(cat '{b}' <f)\nE\necho '{a}' >f",
                "cat <<E # '{a}' <f\n'{a}' <f $(cat N'{b}' <f)\nE\necho N'{a}' >f",
            ),
        ] {
            assert_eq!(with_kept_words(script), kept.replace('N', NOTHING), "{script}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for script in [
            "exec {fd}>f; echo x >&$fd",
            "exec {fd}>f; echo \"say '{a}' <f\"",
            "cat <<'E'\n'{a}' <f\nE\nexec {fd}<f",
            "cat <<'{E}' >f\nx\n{E}",
            "exec {fd}<f # '{a}' <f",
            "x='{a}' >f; echo x'{a}' >f",
            "[[ '{a}' < b ]]; awk '{ print }' <f; echo '{a}' 2>f",
            "echo ''{a}'' <f; echo $''{a}'' >f",
            "cat '{a[1]}' <f; echo '{a}' x >f",
            "echo '{a}' <f; if",
            "echo '{' '}' '{a",
        ] {
            assert_eq!(with_kept_words(script), script);
        }
    }

    #[test]
    fn the_script_of_a_called_shell_keeps_its_words() {
        let mut argv = ["/bin/sh", "-ec", "echo '{a}' >f", "'{a}' >f"].map(str::to_owned);
        keep_words_of_shell(&mut argv);
        assert_eq!(argv[2..], [format!("echo {NOTHING}'{{a}}' >f"), "'{a}' >f".to_owned()]);
    }

    #[tokio::test]
    async fn a_word_that_is_kept_has_its_text() {
        let script = "set -eu; cd /tmp; touch '{a1}' '{a_b}'; IFS=_; echo '{a_b}' >f; echo \"{a[1]}\" >>f; cat f; echo \"$(cat '{a1}' <f)\"";
        let printed = Bash::builder().build().exec(&with_kept_words(script)).await.unwrap();
        assert_eq!([printed.stdout.to_string(), printed.stderr.to_string()], ["{a_b}\n{a[1]}\n\n", ""]);
    }
}
