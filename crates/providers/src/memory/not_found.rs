//! The shell's words about a command that is not there. The interpreter guesses which one was meant;
//! the real shell does not. The guess is left out of what a command and its children give, so that a
//! caller does not see it even where the words come by `2>&1` or from a file; a script that compares them does.

const GUESS: &[u8] = b": command not found. Did you mean: ";
/// The part of them that stays.
const KEPT: usize = b": command not found".len();

/// Leaves the guesses out of what a shell says. Bytes that are no text stay as they are: an archive has
/// the sizes of its files in it.
pub(super) fn without_guess(said: Vec<u8>) -> Vec<u8> {
    if memchr::memmem::find(&said, GUESS).is_none() || !is_text(&said) {
        return said;
    }
    said.split_inclusive(|byte| *byte == b'\n').flat_map(plain).collect()
}

/// Tells whether bytes are text. A letter at their end may be cut.
fn is_text(bytes: &[u8]) -> bool {
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
    memchr::memchr(0, bytes).is_none() && std::str::from_utf8(bytes).map_or_else(is_cut, |_| true)
}

fn plain(line: &[u8]) -> Vec<u8> {
    let end =
        memchr::memmem::rfind(line, GUESS).filter(|at| line.ends_with(b"?\n") && names_line(&line[..*at]));
    match end {
        Some(at) => [&line[..at + KEPT], b"\n"].concat(),
        None => line.to_vec(),
    }
}

/// Tells whether a text begins with a place in a script: `bash: line 3: `.
fn names_line(text: &[u8]) -> bool {
    const LINE: &[u8] = b": line ";
    let Some(at) = memchr::memmem::find(text, LINE) else { return false };
    let number = &text[at + LINE.len()..];
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && number[digits..].starts_with(b": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_is_left_out_where_a_shell_makes_it() {
        for (said, plain) in [
            (
                "bash: line 5: f: command not found. Did you mean: ., :, [?\n",
                "bash: line 5: f: command not found\n",
            ),
            (
                "a\nx.sh: line 1: lss: command not found. Did you mean: ls?\nb",
                "a\nx.sh: line 1: lss: command not found\nb",
            ),
            ("say: command not found. Did you mean: ls?\n", "say: command not found. Did you mean: ls?\n"),
            ("bash: line 1: f: command not found\n", "bash: line 1: f: command not found\n"),
        ] {
            assert_eq!(String::from_utf8(without_guess(said.into())).unwrap(), plain);
        }
    }
}
