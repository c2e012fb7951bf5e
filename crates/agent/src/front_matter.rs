//! Front matter: the YAML at the beginning of a Markdown file.

use serde::de::DeserializeOwned;

/// Splits a file into the text between its two `---` lines and the text after them.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let is_mark = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_mark(line))?;
    let mut end = first.len();
    for line in lines {
        if is_mark(line) {
            return Some((&text[first.len()..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// Reads the front matter of a file. The mistake is one line, with its place in the file; the parser shows the lines around it as well.
pub(crate) fn read<T: DeserializeOwned>(yaml: &str) -> Result<T, String> {
    // The line with the first mark counts too.
    serde_saphyr::from_str(&format!("\n{yaml}")).map_err(|error| {
        let said = error.to_string();
        let line = said.lines().next().unwrap_or_default();
        format!(
            "begins with front matter that can't be read: {}",
            line.strip_prefix("error: ").unwrap_or(line)
        )
    })
}
