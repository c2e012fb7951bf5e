//! The screen of a table: redrawn in place on a terminal, appended elsewhere.

use std::io::{self, IsTerminal};

use crate::errors::Failure;
use crate::output::Output;
use crate::terminal;

/// Standard output as a screen.
pub struct Screen {
    output: Output,
    in_place: bool,
    shown: bool,
}

impl Screen {
    /// Makes a screen. On a terminal it is redrawn in place.
    pub fn new(output: Output) -> Self {
        Self { output, in_place: !output.json && io::stdout().is_terminal(), shown: false }
    }

    /// Tells whether each table takes the place of the one before.
    pub fn is_redrawn(&self) -> bool {
        self.in_place
    }

    /// Shows a text. With `once` it is just printed.
    pub fn show(&mut self, text: &str, once: bool) -> Result<(), Failure> {
        let first = !std::mem::replace(&mut self.shown, true);
        if !self.in_place || once {
            let between = if first || self.output.json { "" } else { "\n" };
            return self.output.text(&format!("{between}{text}"));
        }
        let size = terminal::size().map(|size| (usize::from(size.rows), usize::from(size.cols)));
        // The whole screen is cleared once; afterwards every line replaces the one that was there.
        let clear = if first { "\x1b[2J" } else { "" };
        self.output.text(&format!("{clear}\x1b[H{}\x1b[J", fitted(text, size)))
    }
}

/// Returns the lines that fit, each cut to the width and cleared behind its end.
fn fitted(text: &str, size: Option<(usize, usize)>) -> String {
    let (rows, columns) = size.unwrap_or((usize::MAX, usize::MAX));
    let lines = text.lines().take(rows.saturating_sub(1));
    lines.map(|line| format!("{}\x1b[K\r\n", line.chars().take(columns).collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_no_line_wraps() {
        assert_eq!(fitted("abcd\nef\ng\n", Some((3, 3))), "abc\x1b[K\r\nef\x1b[K\r\n");
    }
}
