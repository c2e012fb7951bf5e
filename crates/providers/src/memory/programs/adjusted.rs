//! Changes to the arguments of the interpreter's programs, where these accept less than the real programs.

use bashkit::hooks::{HookAction, ToolEvent};

use super::sed_script;
use crate::memory::odd_names::encoded;
use crate::memory::same_file;
use crate::memory::scripts::{adapt, adapt_for_shell};

/// Changes the arguments of a program before it runs.
pub(super) fn adjust(mut event: ToolEvent) -> HookAction<ToolEvent> {
    match event.name.as_str() {
        "cd" => name_the_directory(&mut event.args),
        "jobs" => event.args = apart(&event.args),
        "cat" => event.args.iter_mut().for_each(encode),
        "test" | "[" => {
            encode_operands(&mut event.args);
            ask_for_the_same_file(&mut event.args);
        }
        "bash" | "sh" => adapt_for_shell(&mut event.args),
        "eval" => event.args.iter_mut().for_each(adapt),
        "printf" => resolve_letters(&mut event.args),
        "sed" => sed_script::adjust(&mut event.args),
        _ => {}
    }
    HookAction::Continue(event)
}

/// Replaces an empty name by `.`. With an empty name, the interpreter's `cd` would not record the previous directory.
fn name_the_directory(args: &mut [String]) {
    if let Some(last) = args.last_mut().filter(|last| last.is_empty()) {
        ".".clone_into(last);
    }
}

/// Splits combined short options.
fn apart(args: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for arg in args {
        match arg.strip_prefix('-') {
            Some(letters)
                if letters.len() > 1 && letters.bytes().all(|letter| b"lnprs".contains(&letter)) =>
            {
                all.extend(letters.chars().map(|letter| format!("-{letter}")));
            }
            _ => all.push(arg.clone()),
        }
    }
    all
}

/// Encodes a name that the interpreter would refuse.
fn encode(name: &mut String) {
    if name.contains(|letter: char| !letter.is_ascii_graphic()) {
        *name = encoded(name.as_bytes());
    }
}

/// Encodes the names of files in a test.
fn encode_operands(args: &mut [String]) {
    for at in 1..args.len() {
        let asks_file = args[at - 1].len() == 2
            && args[at - 1].starts_with('-')
            && args[at - 1].ends_with(|letter| "bcdefghkprsuwxGLNOS".contains(letter));
        if asks_file && args[at] != "]" {
            encode(&mut args[at]);
        }
    }
}

/// Replaces `LEFT -ef RIGHT` by a test for a path that only exists if both are the same file.
fn ask_for_the_same_file(args: &mut Vec<String>) {
    let mut at = 1;
    while at + 1 < args.len() {
        // `[ -n -ef ]` tests a text.
        let is_asked = args[at] == "-ef" && args[at + 1] != "]";
        if is_asked {
            let question = same_file::question(&args[at - 1], &args[at + 1]);
            args.splice(at - 1..=at + 1, ["-e".to_owned(), question]);
        }
        at += 1;
    }
}

/// Replaces `\u…` and `\U…` in a format of `printf` by the character. The interpreter only accepts them with exactly four
/// and eight digits.
fn resolve_letters(args: &mut [String]) {
    let format = match args {
        [first, _, format, ..] if first == "-v" => format,
        [first, format, ..] if first == "--" => format,
        [format, ..] => format,
        [] => return,
    };
    if format.contains("\\u") || format.contains("\\U") {
        *format = letters(format);
    }
}

fn letters(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out += &rest[..at];
        let escape = &rest[at..];
        let kind = escape[1..].chars().next();
        let most = match kind {
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let digits = escape.bytes().skip(2).take(most).take_while(u8::is_ascii_hexdigit).count();
        let letter = escape.get(2..2 + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let taken = match letter.and_then(char::from_u32) {
            Some(letter) if letter.is_ascii() => {
                out += &format!("\\x{:02x}", u32::from(letter));
                2 + digits
            }
            Some(letter) => {
                out.push(letter);
                2 + digits
            }
            None => {
                let taken = 1 + kind.map_or(0, char::len_utf8);
                out += &escape[..taken];
                taken
            }
        };
        rest = &escape[taken..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_jobs_may_stand_together() {
        let args = ["-rp", "%1", "-l", "-rx"].map(str::to_owned);
        assert_eq!(apart(&args), ["-r", "-p", "%1", "-l", "-rx"]);
    }

    #[test]
    fn an_empty_name_is_the_directory_itself() {
        let mut args = ["-P", ""].map(str::to_owned);
        name_the_directory(&mut args);
        assert_eq!(args, ["-P", "."]);
    }

    #[test]
    fn a_letter_in_a_format_has_as_many_digits_as_it_needs() {
        assert_eq!(letters(r"\U1F600 \u00e9!\u41 \\u41 \u \n\"), r"😀 é!\x41 \\u41 \u \n\");
        assert_eq!(letters(r"\u12345\U110000"), r"ሴ5\U110000");
    }

    #[test]
    fn the_same_file_is_asked_for_within_a_longer_test() {
        let mut args = ["!", "a", "-ef", "b", "-a", "c", "-ef", "d", "]"].map(str::to_owned).to_vec();
        ask_for_the_same_file(&mut args);
        assert_eq!(args.iter().filter(|arg| *arg == "-e").count(), 2);
        assert_eq!((args[0].as_str(), args.len()), ("!", 7));
        let mut text = ["-n", "-ef", "]"].map(str::to_owned).to_vec();
        ask_for_the_same_file(&mut text);
        assert_eq!(text, ["-n", "-ef", "]"]);
    }
}
