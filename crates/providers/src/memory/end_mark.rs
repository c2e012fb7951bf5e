//! The mark that a command's end leaves in both streams. What is written before it is the command's
//! output; what comes behind it was written by something that the command left behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The mark of one command. Nobody else knows it.
#[derive(Debug)]
pub(super) struct EndMark {
    text: String,
    status: OnceLock<i32>,
    through: [Arc<AtomicBool>; 2],
}

impl EndMark {
    pub(super) fn new() -> Self {
        let text = format!("\0end {}\n", uuid::Uuid::new_v4().simple());
        Self { text, status: OnceLock::new(), through: Default::default() }
    }

    /// The text to write into both streams.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The command has ended so. Only the first of several counts.
    pub(super) fn set_status(&self, status: i32) {
        self.status.get_or_init(|| status);
    }

    pub(super) fn status(&self) -> Option<i32> {
        self.status.get().copied()
    }

    /// Tells whether it has come through both streams.
    pub(super) fn is_through(&self) -> bool {
        self.through.iter().all(|through| through.load(Ordering::Relaxed))
    }

    pub(super) fn stdout(&self) -> Mark {
        self.of(0)
    }

    pub(super) fn stderr(&self) -> Mark {
        self.of(1)
    }

    fn of(&self, index: usize) -> Mark {
        Mark {
            text: self.text.clone().into_bytes(),
            held: Vec::new(),
            is_found: false,
            is_through: self.through[index].clone(),
        }
    }
}

/// Looks for the mark in one stream.
#[derive(Debug)]
pub(super) struct Mark {
    text: Vec<u8>,
    /// The last bytes, which may be the mark's beginning.
    held: Vec<u8>,
    is_found: bool,
    is_through: Arc<AtomicBool>,
}

impl Mark {
    /// Takes what was written. Returns what is known to stand before the mark, and whether the mark
    /// was there.
    pub(super) fn pass(&mut self, bytes: Vec<u8>) -> (Vec<u8>, bool) {
        if self.is_found {
            return (Vec::new(), false);
        }
        let mut all =
            if self.held.is_empty() { bytes } else { [std::mem::take(&mut self.held), bytes].concat() };
        if let Some(at) = memchr::memmem::find(&all, &self.text) {
            self.is_found = true;
            all.truncate(at);
            return (all, true);
        }
        let longest = self.text.len().min(all.len() + 1) - 1;
        let held = (1..=longest).rev().find(|length| all.ends_with(&self.text[..*length])).unwrap_or(0);
        self.held = all.split_off(all.len() - held);
        (all, false)
    }

    /// Says that what stands before the mark has been handed on.
    pub(super) fn set_through(&self) {
        self.is_through.store(true, Ordering::Relaxed);
    }

    /// Takes the last bytes, where the stream has ended without the mark.
    pub(super) fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_passed_on_up_to_the_mark_however_it_is_cut() {
        let mark = EndMark::new();
        let all = [b"before \0end", mark.text().as_bytes(), b"after"].concat();
        for size in 1..all.len() {
            let mut passed = mark.stdout();
            let passed: Vec<_> = all.chunks(size).map(|piece| passed.pass(piece.to_vec())).collect();
            let before: Vec<u8> = passed.iter().flat_map(|(before, _)| before.clone()).collect();
            assert_eq!(before, b"before \0end", "in pieces of {size}");
            assert_eq!(passed.iter().filter(|(_, is_mark)| *is_mark).count(), 1);
        }
        assert!(!mark.is_through());
    }
}
