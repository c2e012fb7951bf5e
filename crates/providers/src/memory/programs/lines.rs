//! The lines of a text, which a byte ends.

/// Takes the next line, without its end. `None`: there is none.
pub(super) fn next_line<'a>(rest: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let size = memchr::memchr(end, rest).unwrap_or(rest.len());
    let line = &rest[..size];
    *rest = rest.get(size + 1..).unwrap_or_default();
    Some(line)
}

/// The lines without their ends.
pub(super) fn lines(text: &[u8], end: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || next_line(&mut rest, end))
}
