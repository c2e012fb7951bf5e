//! `tac`: lines in reverse order.

use async_trait::async_trait;
use memchr::memmem;

use super::basic_regex::compile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::quoting::quoted;
use super::run::{BYTES_AT_ONCE, Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &["before", "regex", "separator"];

pub(super) struct Tac;

#[async_trait]
impl ShellProgram for Tac {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let (mut separator, mut is_before, mut is_regex, mut files) =
            ("\n".to_owned(), false, false, Vec::new());
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
                'b' => is_before = true,
                'r' => is_regex = true,
                's' => separator = words.value()?,
                _ => return Err(unknown(&word)),
            }
        }
        let separator = if is_regex {
            if separator.is_empty() {
                return Err(Ending::refused("separator cannot be empty"));
            }
            Separator::Pattern(compile(&separator, false).map_err(Ending::refused)?)
        } else {
            // An empty one stands for the byte zero.
            Separator::Text(if separator.is_empty() { vec![0] } else { separator.into_bytes() })
        };
        let files = or_standard_input(files);
        let mut status = 0;
        for file in &files {
            match run.read(file).await? {
                Ok(bytes) => {
                    let mut out = Vec::new();
                    let mut end = bytes.len();
                    let cuts = separator.cuts(&bytes, is_before);
                    for cut in cuts {
                        out.extend_from_slice(&bytes[cut..end]);
                        end = cut;
                        if out.len() > BYTES_AT_ONCE {
                            run.print(std::mem::take(&mut out)).await?;
                            run.breathe().await;
                        }
                    }
                    out.extend_from_slice(&bytes[..end]);
                    run.print(out).await?;
                }
                Err(reason) => {
                    let text = if reason == "Is a directory" {
                        format!("{file}: read error: Invalid argument")
                    } else {
                        format!("failed to open {} for reading: {reason}", quoted(file))
                    };
                    run.complain(text).await?;
                    status = 1;
                }
            }
        }
        Ok(status)
    }
}

enum Separator {
    Text(Vec<u8>),
    Pattern(regex::bytes::Regex),
}

impl Separator {
    /// The places between the parts from the last to the first: behind each separator, or before it.
    fn cuts<'a>(&'a self, bytes: &'a [u8], is_before: bool) -> Box<dyn Iterator<Item = usize> + Send + 'a> {
        match self {
            Self::Text(text) => {
                let size = if is_before { 0 } else { text.len() };
                Box::new(memmem::rfind_iter(bytes, text).map(move |at| at + size))
            }
            Self::Pattern(pattern) => {
                let found = pattern.find_iter(bytes).filter(|found| !found.is_empty());
                let cuts: Vec<usize> =
                    found.map(|found| if is_before { found.start() } else { found.end() }).collect();
                Box::new(cuts.into_iter().rev())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tac(separator: &str, is_before: bool, text: &str) -> String {
        let separator = Separator::Text(separator.into());
        let (mut out, mut end) = (String::new(), text.len());
        for cut in separator.cuts(text.as_bytes(), is_before).chain([0]) {
            out += &text[cut..end];
            end = cut;
        }
        out
    }

    #[test]
    fn parts_keep_their_separators() {
        assert_eq!(tac("\n", false, "1\n2\n3\n"), "3\n2\n1\n");
        assert_eq!(tac("\n", false, "1\n2\n3"), "32\n1\n");
        assert_eq!(tac(", ", true, "a, b, c"), ", c, ba");
        assert_eq!(tac("\n", false, ""), "");
    }
}
