//! The shell's message about an unknown command. The interpreter adds a guess, and the real shell does not. The guess is
//! removed from the output of a command and its children, so that the caller does not see it, even with `2>&1` or from a
//! file. A script that reads the message itself still sees the guess.

const GUESS: &[u8] = b": command not found. Did you mean: ";
/// The length of the part of the message that stays.
const KEPT: usize = b": command not found".len();

/// Removes the guesses from the output of a shell. Bytes that are no text stay as they are: an archive has
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

/// Returns whether a text begins with a position in a script, such as `bash: line 3: `.
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
