//! `rev`: prints the characters of each line in reverse order.

use async_trait::async_trait;

use super::each_file::EachFile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::paced_output::PacedOutput;
use super::run::{BYTES_AT_ONCE, Ending, ProgramRun, ShellProgram};

pub(super) struct Rev;

#[async_trait]
impl ShellProgram for Rev {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let (mut end, mut files) = (b'\n', Vec::new());
        let mut words = run.words();
        while let Some(word) = words.next()? {
            match &word {
                OptionWord::Short('0') => end = 0,
                OptionWord::Long(name) if complete(name, &["zero"])? == "zero" => end = 0,
                OptionWord::Operand(operand) => files.push(operand.clone()),
                _ => return Err(unknown(&word)),
            }
        }
        let files = or_standard_input(files);
        let mut files = EachFile::new(run, &files);
        while let Some(bytes) = files.next(|file, reason| format!("cannot open {file}: {reason}")).await? {
            print(run, &bytes, end).await?;
        }
        Ok(files.status)
    }
}

async fn print(run: &ProgramRun<'_>, bytes: &[u8], end: u8) -> Result<(), Ending> {
    let mut out = PacedOutput::new(run);
    for line in bytes.split_inclusive(|byte| *byte == end) {
        let mut letters = line.strip_suffix(&[end]).unwrap_or(line);
        let line_end = &line[letters.len()..];
        while !letters.is_empty() {
            let (before, last) = letters.split_at(last_letters(letters));
            out.add(&reversed(last)).await?;
            letters = before;
        }
        out.add(line_end).await?;
    }
    out.flush().await
}

/// The beginning of the last letters of a text that are reversed at once.
fn last_letters(text: &[u8]) -> usize {
    let from = text.len().saturating_sub(BYTES_AT_ONCE);
    let inside = text[from..].iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    if from > 0 && from + inside < text.len() { from + inside } else { from }
}

/// Returns letters in reverse order. Bytes that are no text are letters of their own.
fn reversed(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut end = text.len();
    while end > 0 {
        let inside = text[..end].iter().rev().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let from = end.saturating_sub(inside + 1);
        let letter = std::str::from_utf8(&text[from..end]);
        let is_letter = letter.is_ok_and(|letter| letter.chars().count() == 1);
        let from = if is_letter { from } else { end - 1 };
        out.extend_from_slice(&text[from..end]);
        end = from;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stay_whole() {
        for (text, expected) in
            [(&b"a\xc3\xa9b"[..], &b"b\xc3\xa9a"[..]), (b"ab", b"ba"), (b"\xffa\xa9", b"\xa9a\xff")]
        {
            assert_eq!(reversed(text), expected);
        }
        let text = "é".repeat(BYTES_AT_ONCE) + "a";
        assert_eq!(last_letters(text.as_bytes()) % 2, 0);
        assert_eq!(last_letters(b"\x80\x80"), 0);
    }
}
