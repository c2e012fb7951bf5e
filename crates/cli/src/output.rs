//! Output on stdout and stderr, in the form that the user asked for: text for people, JSON for
//! programs.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;

use crate::args::GlobalArgs;
use crate::errors::Failure;

/// The time after which a person is told what is going on.
const PATIENCE: Duration = Duration::from_secs(1);

/// The form of the output.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Results are JSON.
    pub json: bool,
    /// No notes and no progress.
    pub quiet: bool,
}

impl Output {
    /// Makes the form that the arguments ask for.
    pub fn new(global: &GlobalArgs) -> Self {
        Self { json: global.json, quiet: global.quiet }
    }

    /// Prints text as it is.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// Prints bytes as they are.
    pub fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Prints a value as JSON and a line end: indented on a terminal, else on one line.
    pub fn value(self, value: &impl Serialize) -> Result<(), Failure> {
        let rendered = if io::stdout().is_terminal() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        let text = rendered.map_err(|error| Failure::host("write JSON", error.into()))?;
        self.text(&format!("{}\n", escaped_json(&text)))
    }

    /// Tells a person something that is not a result.
    pub fn note(self, text: &str) {
        if !self.quiet {
            say(&format!("eyot: {}\n", printable(text)));
        }
    }

    /// Reports that one of several things failed, while the others go on.
    pub fn complain(self, error: &eyot::Error) {
        say(&format!("eyot: {}\n", printable(&error.to_string())));
    }

    /// Tells whether a person watches standard error and wants to see progress.
    pub fn shows_progress(self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// Waits for `work`. If that takes longer than a second, a person is told what it is.
    pub async fn explain_a_wait<T>(self, what: &str, work: impl Future<Output = T>) -> T {
        if !self.shows_progress() {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        match tokio::time::timeout(PATIENCE, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                self.note(&format!("{what} …"));
                work.await
            }
        }
    }
}

/// Writes to standard error. Errors are ignored, since it may be closed.
pub fn say(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// Renders a value as JSON on one line, without the line's end.
pub fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::host("write JSON", error.into()))?;
    Ok(escaped_json(&text))
}

/// Escapes every character that could drive the terminal or make text look different from what it
/// is, so that a name from inside a sandbox cannot deceive.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Writes such characters of JSON as `\u` escapes. They occur in strings only, where an escape is
/// the same value.
pub fn escaped_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) && character != '\n' {
            character
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Tells whether a terminal or a page would act on a character or show nothing for it: controls,
/// characters that change the direction of text, line and paragraph separators, and characters
/// without width.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns the text as it is for a pipe or a file, and [`printable`] for a terminal.
pub fn for_stdout(text: &str) -> String {
    if io::stdout().is_terminal() { printable(text) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelt_out_and_everything_else_stays() {
        assert_eq!(printable("ä\u{1b}[31m\n\u{9b}x"), "ä\\u{1b}[31m\\n\\u{9b}x");
        let kept = "naïve 日本語 עברית العربية 👍🏽 e\u{301} ❤\u{fe0f}";
        assert_eq!(printable(kept), kept);
    }

    #[test]
    fn what_turns_text_around_or_has_no_width_is_spelt_out() {
        let points = [0x61c, 0x2028, 0x2029, 0x2060, 0xfeff].into_iter();
        let ranges = (0x200b..=0x200f).chain(0x202a..=0x202e).chain(0x2066..=0x2069).chain(0x80..=0x9f);
        for point in points.chain(ranges).chain([0xe0041]) {
            let character = char::from_u32(point).unwrap();
            assert_eq!(printable(&format!("a{character}b")), format!("a\\u{{{point:x}}}b"));
        }
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let text = "a\u{202e}b\u{9b}\u{e0041}\u{200b}\n\\ü";
        let line = json_line(&text).unwrap();
        assert_eq!(line, "\"a\\u202eb\\u009b\\udb40\\udc41\\u200b\\n\\\\ü\"");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
