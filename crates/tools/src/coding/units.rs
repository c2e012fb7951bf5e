//! Lengths as JavaScript counts them, in UTF-16 units, and cuts at whole characters.

/// The length of a text.
pub(super) fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The beginning of a text, at most `max` units of it.
pub(super) fn head(text: &str, max: usize) -> &str {
    let mut left = max;
    let end = text.char_indices().find(|(_, character)| {
        let fits = character.len_utf16() <= left;
        left = left.saturating_sub(character.len_utf16());
        !fits
    });
    end.map_or(text, |(index, _)| &text[..index])
}

/// The end of a text, at most `max` units of it.
pub(super) fn tail(text: &str, max: usize) -> &str {
    let mut left = max;
    let before = text.char_indices().rev().find(|(_, character)| {
        let fits = character.len_utf16() <= left;
        left = left.saturating_sub(character.len_utf16());
        !fits
    });
    before.map_or(text, |(index, character)| &text[index + character.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_beyond_the_basic_plane_counts_two() {
        assert_eq!((length("aé漢"), length("😀")), (3, 2));
    }

    #[test]
    fn a_cut_is_never_inside_a_character() {
        assert_eq!((head("a😀b", 2), head("a😀b", 3), head("ab", 9)), ("a", "a😀", "ab"));
        assert_eq!((tail("a😀b", 2), tail("a😀b", 3), tail("ab", 9)), ("b", "😀b", "ab"));
        assert_eq!((head("ab", 0), tail("ab", 0)), ("", ""));
    }
}
