//! The words that `xargs` reads from its input.

/// The rule by which the input is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SplitRule {
    /// At blanks and line ends, with quotes.
    Words,
    /// At line ends, with quotes: a line is a word.
    Lines,
    /// At a byte. There are no quotes.
    At(u8),
}

/// A word of the input, and whether it ends a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InputWord {
    pub text: Vec<u8>,
    /// The line goes on after a blank at its end.
    pub ends_line: bool,
}

/// Splits an input as it comes.
#[derive(Debug)]
pub(super) struct Splitter {
    splitting: SplitRule,
    end_word: Option<Vec<u8>>,
    word: Vec<u8>,
    has_word: bool,
    quote: Option<u8>,
    is_escaped: bool,
    /// The byte before this one was a blank outside of a word.
    after_blank: bool,
    /// A word that waits for the byte after it.
    waiting: Option<InputWord>,
    /// Nothing is taken any more.
    pub has_ended: bool,
    /// A zero byte has cut a word.
    pub has_zero: bool,
    is_cut: bool,
}

/// An input that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputError {
    OpenQuote(&'static str),
}

impl Splitter {
    pub(super) fn new(splitting: SplitRule, end_word: Option<Vec<u8>>) -> Self {
        Self {
            splitting,
            end_word,
            word: Vec::new(),
            has_word: false,
            quote: None,
            is_escaped: false,
            after_blank: false,
            waiting: None,
            has_ended: false,
            has_zero: false,
            is_cut: false,
        }
    }

    /// The bytes of the word that is being read.
    pub(super) fn pending_bytes(&self) -> usize {
        self.word.len()
    }

    /// Takes a byte, and returns the word that it completes.
    pub(super) fn take(&mut self, byte: u8) -> Result<Option<InputWord>, InputError> {
        if self.has_ended {
            return Ok(None);
        }
        if let SplitRule::At(end) = self.splitting {
            if byte == end {
                return Ok(Some(InputWord { text: std::mem::take(&mut self.word), ends_line: true }));
            }
            self.push(byte);
            return Ok(None);
        }
        if self.is_escaped {
            self.is_escaped = false;
            self.begin();
            self.push(byte);
            return Ok(None);
        }
        if let Some(quote) = self.quote {
            return self.take_quoted(byte, quote);
        }
        match byte {
            b'\\' => {
                self.is_escaped = true;
                self.begin();
            }
            b'\'' | b'"' => {
                self.quote = Some(byte);
                self.begin();
            }
            b'\n' => return Ok(self.end_line()),
            b' ' | b'\t' if self.splitting == SplitRule::Words => return Ok(self.end_word_at_blank()),
            b' ' | b'\t' if !self.has_word => {}
            _ => {
                self.begin();
                self.push(byte);
            }
        }
        Ok(self.release())
    }

    fn begin(&mut self) {
        self.has_word = true;
        self.after_blank = false;
    }

    fn push(&mut self, byte: u8) {
        if byte == 0 && self.splitting != SplitRule::At(0) {
            self.has_zero = true;
            self.is_cut = true;
        }
        if !self.is_cut {
            self.word.push(byte);
        }
    }

    fn take_quoted(&mut self, byte: u8, quote: u8) -> Result<Option<InputWord>, InputError> {
        if byte == quote {
            self.quote = None;
        } else if byte == b'\n' {
            return Err(open_quote(quote));
        } else {
            self.push(byte);
        }
        Ok(self.release())
    }

    /// Lets a waiting word go: its line goes on.
    fn release(&mut self) -> Option<InputWord> {
        if self.has_word { self.waiting.take() } else { None }
    }

    fn end_word_at_blank(&mut self) -> Option<InputWord> {
        self.after_blank = true;
        let word = self.finish_word()?;
        self.waiting.replace(InputWord { text: word, ends_line: false })
    }

    fn end_line(&mut self) -> Option<InputWord> {
        let goes_on = self.after_blank && self.splitting == SplitRule::Words;
        self.after_blank = false;
        match self.finish_word() {
            Some(text) => Some(InputWord { text, ends_line: true }),
            None if goes_on => None,
            None => self.waiting.take().map(|word| InputWord { ends_line: true, ..word }),
        }
    }

    /// Ends the word, if there is one. The word that stands for the end is none.
    fn finish_word(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.has_word) {
            return None;
        }
        self.is_cut = false;
        let word = std::mem::take(&mut self.word);
        if self.end_word.as_deref() == Some(&word) {
            self.has_ended = true;
            return None;
        }
        Some(word)
    }

    /// Ends the input, and returns the last words.
    pub(super) fn finish(&mut self) -> Result<Vec<InputWord>, InputError> {
        let mut words: Vec<InputWord> = self.waiting.take().into_iter().collect();
        if self.has_ended {
            return Ok(words);
        }
        if let Some(quote) = self.quote {
            return Err(open_quote(quote));
        }
        let is_split = matches!(self.splitting, SplitRule::At(_));
        self.has_word = if is_split { !self.word.is_empty() } else { self.has_word };
        words.extend(self.finish_word().map(|text| InputWord { text, ends_line: true }));
        Ok(words)
    }
}

fn open_quote(quote: u8) -> InputError {
    InputError::OpenQuote(if quote == b'"' { "double" } else { "single" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(splitting: SplitRule, end: Option<&str>, input: &str) -> Result<Vec<String>, InputError> {
        let mut splitter = Splitter::new(splitting, end.map(|end| end.as_bytes().to_vec()));
        let mut all = Vec::new();
        for byte in input.bytes() {
            all.extend(splitter.take(byte)?);
        }
        all.extend(splitter.finish()?);
        let shown = |word: InputWord| {
            format!("{}{}", String::from_utf8_lossy(&word.text), if word.ends_line { "$" } else { "" })
        };
        Ok(all.into_iter().map(shown).collect())
    }

    #[test]
    fn words_end_at_blanks_and_keep_what_is_quoted() {
        let split = |input| words(SplitRule::Words, None, input).unwrap();
        assert_eq!(split("a\\ b  c\"d e\"f\n'' x"), ["a b", "cd ef$", "", "x$"]);
        assert_eq!(split("a b \nc\n\n d\ne"), ["a", "b", "c$", "d$", "e$"]);
        assert_eq!(split(" \n\n"), [""; 0]);
        assert_eq!(words(SplitRule::Words, None, "it's"), Err(InputError::OpenQuote("single")));
    }

    #[test]
    fn lines_lose_the_blanks_in_front_and_empty_ones() {
        assert_eq!(words(SplitRule::Lines, None, "  a b \n\nc").unwrap(), ["a b $", "c$"]);
        assert_eq!(words(SplitRule::Words, Some("END"), "a\nEND\nb").unwrap(), ["a$"]);
    }

    #[test]
    fn a_byte_of_ones_own_ends_words_alone() {
        assert_eq!(words(SplitRule::At(b','), None, "a,'b,,c").unwrap(), ["a$", "'b$", "$", "c$"]);
        assert_eq!(words(SplitRule::At(0), None, "a\0b c\0").unwrap(), ["a$", "b c$"]);
    }
}
