//! `paste`: prints lines of files side by side, or all lines of a file as one.

use async_trait::async_trait;

use super::lines::next_line;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::paced_output::PacedOutput;
use super::read_bytes::ReadBytes;
use super::run::{Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &["delimiters", "serial", "zero-terminated"];

pub(super) struct Paste;

#[async_trait]
impl ShellProgram for Paste {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let (mut delimiters, mut is_serial, mut end, mut files) = ("\t".to_owned(), false, b'\n', Vec::new());
        let mut words = run.words();
        while let Some(word) = words.next()? {
            let letter = match &word {
                OptionWord::Short(letter) => *letter,
                OptionWord::Long(name) => complete(name, LONG)?.chars().next().unwrap_or_default(),
                OptionWord::Operand(operand) => {
                    files.push(operand.clone());
                    continue;
                }
            };
            match letter {
                'd' => delimiters = words.value()?,
                's' => is_serial = true,
                'z' => end = 0,
                _ => return Err(unknown(&word)),
            }
        }
        let files = or_standard_input(files);
        let delimiters = parse_delimiters(&delimiters)?;
        let mut status = 0;
        let mut texts: Vec<ReadBytes> = Vec::new();
        let mut owners: Vec<usize> = Vec::new();
        let mut input = None;
        for file in &files {
            // Every `-` reads from the same standard input.
            if let Some(input) = input.filter(|_| file == "-") {
                owners.push(input);
                continue;
            }
            run.breathe().await;
            match run.read(file).await? {
                Ok(bytes) => {
                    if file == "-" {
                        input = Some(texts.len());
                    }
                    owners.push(texts.len());
                    texts.push(bytes);
                }
                Err(reason) => {
                    run.complain(format!("{file}: {reason}")).await?;
                    if !is_serial {
                        return Ok(1);
                    }
                    status = 1;
                }
            }
        }
        let rests = texts.iter().map(|text| &**text).collect();
        let mut pasting = PasteRun { delimiters, end, rests, out: PacedOutput::new(run) };
        if is_serial {
            pasting.one_by_one(&owners).await?;
        } else {
            pasting.side_by_side(&owners).await?;
        }
        pasting.out.flush().await?;
        Ok(status)
    }
}

/// Reads the list of delimiters. An empty delimiter stands for no byte.
fn parse_delimiters(text: &str) -> Result<Vec<Vec<u8>>, Ending> {
    let mut all = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some('0') => {
                    all.push(Vec::new());
                    continue;
                }
                Some('b') => '\x08',
                Some('f') => '\x0c',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('v') => '\x0b',
                Some(other) => other,
                None => {
                    let reason = format!("delimiter list ends with an unescaped backslash: {text}");
                    return Err(Ending::refused(reason));
                }
            },
            other => other,
        };
        // A delimiter is a byte, as in GNU's.
        all.extend(letter.to_string().into_bytes().into_iter().map(|byte| vec![byte]));
    }
    if all.is_empty() {
        all.push(Vec::new());
    }
    Ok(all)
}

struct PasteRun<'a, 'r> {
    delimiters: Vec<Vec<u8>>,
    end: u8,
    rests: Vec<&'a [u8]>,
    out: PacedOutput<'a, 'r>,
}

impl<'a> PasteRun<'a, '_> {
    /// Takes the next line of a text.
    fn line(&mut self, text: usize) -> Option<&'a [u8]> {
        next_line(&mut self.rests[text], self.end)
    }

    async fn add_delimiter(&mut self, index: usize) -> Result<(), Ending> {
        let delimiter = &self.delimiters[index % self.delimiters.len()];
        self.out.add(delimiter).await
    }

    async fn one_by_one(&mut self, texts: &[usize]) -> Result<(), Ending> {
        for text in texts {
            let mut index = 0;
            while let Some(line) = self.line(*text) {
                if index > 0 {
                    self.add_delimiter(index - 1).await?;
                }
                index += 1;
                self.out.add(line).await?;
            }
            self.out.add(&[self.end]).await?;
        }
        Ok(())
    }

    async fn side_by_side(&mut self, texts: &[usize]) -> Result<(), Ending> {
        while texts.iter().any(|text| !self.rests[*text].is_empty()) {
            for (index, text) in texts.iter().enumerate() {
                if index > 0 {
                    self.add_delimiter(index - 1).await?;
                }
                let line = self.line(*text).unwrap_or_default();
                self.out.add(line).await?;
            }
            self.out.add(&[self.end]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_have_escapes() {
        assert_eq!(parse_delimiters(r",\n\0").unwrap(), [b",".to_vec(), b"\n".to_vec(), Vec::new()]);
        assert_eq!(parse_delimiters("").unwrap(), [Vec::<u8>::new()]);
        assert!(parse_delimiters("\\").is_err());
    }
}
