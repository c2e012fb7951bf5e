//! Quoted words such as `'{print}'` before a redirection. The interpreter mistakes them for the name of a
//! variable that receives the descriptor (`{name}>file`). In the real shell, only an unquoted word is such a name.
//!
//! An empty expansion in front of the word prevents this. The interpreter's parser shows whether a word needs it: with the
//! expansion, the script has one descriptor name less. In here-documents, comments and other quotes the number stays.

use std::borrow::Cow;

use super::{read_tree, visit};

/// An expansion that is empty under all shell options.
const NOTHING: &str = "${__eyot_nothing-}";
/// The most readings of a script.
const MAX_READINGS: usize = 32;
/// Returns a script in which no quoted word is taken for the name of a descriptor.
pub(super) fn with_kept_words(script: &str) -> Cow<'_, str> {
    let places = suspects(script);
    if places.is_empty() {
        return Cow::Borrowed(script);
    }
    let Some(names) = descriptor_names(script) else { return Cow::Borrowed(script) };
    let mut repair = WordRepair { kept: Cow::Borrowed(script), names, readings: MAX_READINGS };
    repair.keep(&places);
    repair.kept
}

/// A script whose words are kept one after the other, from the last one on, so that the places of those
/// before stay.
struct WordRepair<'a> {
    kept: Cow<'a, str>,
    /// The descriptors with a name that are left.
    names: usize,
    /// The readings that are left.
    readings: usize,
}

impl WordRepair<'_> {
    /// Keeps those of these words that are lost. Only if some are, each half is looked at.
    fn keep(&mut self, places: &[usize]) {
        if places.is_empty() || self.names == 0 || self.readings == 0 {
            return;
        }
        self.readings -= 1;
        let mut tried = String::with_capacity(self.kept.len() + places.len() * NOTHING.len());
        let mut from = 0;
        for at in places {
            tried.extend([&self.kept[from..*at], NOTHING]);
            from = *at;
        }
        tried += &self.kept[from..];
        let left = descriptor_names(&tried);
        if left.is_some_and(|left| left + places.len() == self.names) {
            self.names -= places.len();
            self.kept = Cow::Owned(tried);
        } else if left != Some(self.names) && places.len() > 1 {
            let (first, last) = places.split_at(places.len() / 2);
            self.keep(last);
            self.keep(first);
        }
    }
}

/// Returns the positions of quoted words that look like a name in braces before a redirection.
fn suspects(script: &str) -> Vec<usize> {
    memchr::memchr_iter(b'{', script.as_bytes()).filter_map(|brace| suspect(script, brace)).collect()
}

/// Returns the position for the empty expansion, if the word with the brace at `brace` is such a word.
fn suspect(script: &str, brace: usize) -> Option<usize> {
    let (before, rest) = (&script[..brace], &script[brace + 1..]);
    let quote = before.chars().next_back().filter(|quote| matches!(quote, '\'' | '"'))?;
    // Next to an unquoted expansion, brackets would be a pattern.
    let is_name = |letter: char| {
        letter.is_alphanumeric() || letter == '_' || (quote == '"' && matches!(letter, '[' | ']'))
    };
    if !rest.starts_with(|first: char| first.is_alphabetic() || first == '_') {
        return None;
    }
    let behind = rest.trim_start_matches(is_name).strip_prefix('}')?.strip_prefix(quote)?;
    let behind = behind.trim_start_matches([' ', '\t', '\\', '\n']);
    if !["<", ">", "&>"].iter().any(|sign| behind.starts_with(sign)) {
        return None;
    }
    if quote == '"' {
        return Some(brace);
    }
    let word = before.strip_suffix(quote)?;
    // In `''{a}''` the braces are outside of the quotes.
    if word.ends_with(quote) {
        return None;
    }
    // `$'…'` is one word.
    Some(word.strip_suffix('$').unwrap_or(word).len())
}

/// Counts the named descriptors in a script. `None`: the script can't be parsed.
fn descriptor_names(script: &str) -> Option<usize> {
    let mut names = 0;
    let is_named = |part: &serde_json::Value| part.get("fd_var").is_some_and(serde_json::Value::is_string);
    visit(&read_tree(script)?, &mut |part| names += usize::from(is_named(part)));
    Some(names)
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
    fn one_of_many_words_is_kept() {
        let lines = |many: &str| {
            "echo '{}' >f; echo \"say '{a}' <f\"\n".repeat(40) + many + &"cat '{b}' <f\n".repeat(40)
        };
        let script = lines("awk '{print}' <f\n");
        let kept = script.replace(" '{b", &format!(" {NOTHING}'{{b"));
        assert_eq!(with_kept_words(&script), kept.replace(" '{p", &format!(" {NOTHING}'{{p")));
    }

    #[tokio::test]
    async fn a_word_that_is_kept_has_its_text() {
        let script = "set -eu; cd /tmp; touch '{a1}' '{a_b}'; IFS=_; echo '{a_b}' >f; echo \"{a[1]}\" >>f; cat f; echo \"$(cat '{a1}' <f)\"";
        let printed = Bash::builder().build().exec(&with_kept_words(script)).await.unwrap();
        assert_eq!([printed.stdout.to_string(), printed.stderr.to_string()], ["{a_b}\n{a[1]}\n\n", ""]);
    }
}
