//! `tac`: prints lines in reverse order.

use async_trait::async_trait;
use memchr::memmem;

use super::basic_regex::compile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::paced_output::PacedOutput;
use super::quoting::quoted;
use super::read_bytes::ReadError;
use super::run::{Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &["before", "regex", "separator"];

/// The most places at which a pattern cuts a text. Each takes memory.
const MAX_CUTS: usize = 8 << 20;

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
            // An empty separator stands for a zero byte.
            Separator::Text(if separator.is_empty() { vec![0] } else { separator.into_bytes() })
        };
        let files = or_standard_input(files);
        let mut status = 0;
        for file in &files {
            match run.read(file).await? {
                Ok(bytes) => separator.print(run, &bytes, is_before).await?,
                Err(reason) => {
                    let text = if reason == ReadError::IsDirectory {
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
    /// Writes the parts of a text from the last to the first.
    async fn print(&self, run: &ProgramRun<'_>, bytes: &[u8], is_before: bool) -> Result<(), Ending> {
        let mut out = PacedOutput::new(run);
        let mut end = bytes.len();
        match self {
            Self::Text(text) => {
                for cut in cuts(bytes, text, is_before) {
                    out.add(&bytes[cut..end]).await?;
                    end = cut;
                }
            }
            Self::Pattern(pattern) => {
                for cut in pattern_cuts(run, bytes, pattern, is_before).await?.into_iter().rev() {
                    out.add(&bytes[cut..end]).await?;
                    end = cut;
                }
            }
        }
        out.add(&bytes[..end]).await?;
        out.flush().await
    }
}

/// Returns the positions of the cuts, from the last to the first: after each separator, or before it.
fn cuts<'a>(bytes: &'a [u8], text: &'a [u8], is_before: bool) -> impl Iterator<Item = usize> + 'a {
    let size = if is_before { 0 } else { text.len() };
    memmem::rfind_iter(bytes, text).map(move |at| at + size)
}

/// The places between the parts from the first to the last. One search may go on to the end of the text.
async fn pattern_cuts(
    run: &ProgramRun<'_>,
    bytes: &[u8],
    pattern: &regex::bytes::Regex,
    is_before: bool,
) -> Result<Vec<usize>, Ending> {
    let mut cuts = Vec::new();
    for found in pattern.find_iter(bytes) {
        run.breathe().await;
        if found.is_empty() {
            continue;
        }
        if cuts.len() == MAX_CUTS {
            return Err(Ending::refused("memory exhausted"));
        }
        cuts.push(if is_before { found.start() } else { found.end() });
    }
    Ok(cuts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tac(separator: &str, is_before: bool, text: &str) -> String {
        let (mut out, mut end) = (String::new(), text.len());
        for cut in cuts(text.as_bytes(), separator.as_bytes(), is_before).chain([0]) {
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
