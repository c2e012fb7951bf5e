//! Words of scripts, and the interpreter's errors about scripts.

/// The exit code and the words of what the interpreter refuses.
pub(super) fn failure(error: &bashkit::Error) -> (i32, String) {
    match error {
        bashkit::Error::Parse { message, line, .. } => {
            (2, format!("-c: line {line}: syntax error: {message}"))
        }
        other => (1, other.to_string()),
    }
}

/// A word as the shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Between the words of bash about a name that is no command, and the interpreter's advice.
const BEFORE_ADVICE: &[u8] = b": command not found";
const ADVICE: &[u8] = b". Did you mean: ";

/// Takes the interpreter's advice about unknown names out of what it says, which ends with a line as a rule.
pub(super) fn without_advice(said: Vec<u8>) -> Vec<u8> {
    if memchr::memmem::find(&said, ADVICE).is_none() {
        return said;
    }
    said.split_inclusive(|byte| *byte == b'\n').flat_map(line_without_advice).copied().collect()
}

fn line_without_advice(line: &[u8]) -> impl Iterator<Item = &u8> {
    let at = memchr::memmem::find(line, ADVICE)
        .filter(|at| line[..*at].ends_with(BEFORE_ADVICE) && line.ends_with(b"?\n"));
    let (words, end) = at.map_or((line, &[][..]), |at| (&line[..at], &line[line.len() - 1..]));
    words.iter().chain(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_about_unknown_names_is_not_passed_on() {
        let told = |said: &str| String::from_utf8(without_advice(said.into())).unwrap();
        let said = "bash: line 5: f: command not found. Did you mean: ., :, [?\nx\n";
        assert_eq!(told(said), "bash: line 5: f: command not found\nx\n");
        for kept in ["f: command not found\n", "no. Did you mean: x?\n", "", "Did you mean: ", "a\nb"] {
            assert_eq!(told(kept), kept);
        }
    }
}
