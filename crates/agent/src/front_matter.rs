//! Front matter: the YAML at the beginning of a Markdown file.

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
