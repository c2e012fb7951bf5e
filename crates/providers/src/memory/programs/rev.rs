//! `rev`: the letters of each line in reverse order.

use async_trait::async_trait;

use super::each_file::EachFile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
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
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = memchr::memchr(end, rest).map_or(rest.len(), |at| at + 1);
        let (line, behind) = rest.split_at(size);
        reverse(line, end, &mut out);
        rest = behind;
        if out.len() > BYTES_AT_ONCE {
            run.breathe().await;
            run.print(std::mem::take(&mut out)).await?;
        }
    }
    run.print(out).await
}

/// Writes a line in reverse. Bytes that are no text are letters of their own.
fn reverse(line: &[u8], end: u8, out: &mut Vec<u8>) {
    let letters = line.strip_suffix(&[end]).unwrap_or(line);
    let start = out.len();
    out.extend(letters.iter().rev());
    // The bytes of each letter come back into their order.
    let mut at = start;
    while at < out.len() {
        let inside = out[at..].iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let size = (inside + 1).min(out.len() - at);
        let letter: Vec<u8> = out[at..at + size].iter().rev().copied().collect();
        let is_letter = std::str::from_utf8(&letter).is_ok_and(|text| text.chars().count() == 1);
        let size = if is_letter { size } else { 1 };
        out[at..at + size].reverse();
        at += size;
    }
    out.extend_from_slice(&line[letters.len()..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stay_whole() {
        for (line, reversed) in
            [(&b"a\xc3\xa9b\n"[..], &b"b\xc3\xa9a\n"[..]), (b"ab", b"ba"), (b"\xffa\xa9", b"\xa9a\xff")]
        {
            let mut out = Vec::new();
            reverse(line, b'\n', &mut out);
            assert_eq!(out, reversed);
        }
    }
}
