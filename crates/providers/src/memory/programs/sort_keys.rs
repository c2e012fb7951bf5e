//! The keys of `sort`: their parts of a line, and their order.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::ls::by_version;
use super::run::Ending;
use super::sort_numbers::{compare_general, compare_human, compare_numbers};

/// The random order of `-R`, which differs in each process.
static RANDOM: LazyLock<RandomState> = LazyLock::new(RandomState::new);

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The kind of comparison of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortKind {
    Number,
    General,
    Human,
    Month,
    Random,
    Version,
}

/// The order of a key, or of the whole command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeyOrder {
    pub skips_blanks: bool,
    pub is_dictionary: bool,
    pub folds_case: bool,
    pub is_printable: bool,
    pub is_reverse: bool,
    pub kind: Option<SortKind>,
    /// A second kind of comparison, which is incompatible with the first.
    pub other_kind: Option<SortKind>,
}

impl KeyOrder {
    pub(super) fn add_kind(&mut self, kind: SortKind) {
        if self.kind.is_some_and(|before| before != kind) {
            self.other_kind = self.kind;
        }
        self.kind = Some(kind);
    }

    /// Refuses incompatible orders.
    pub(super) fn check(self) -> Result<(), Ending> {
        let kinds = || [self.kind, self.other_kind].into_iter().flatten().map(SortKind::letter);
        let is_text = |letter: &char| matches!(letter, 'R' | 'V');
        let has_text = self.is_dictionary || self.is_printable || kinds().any(|letter| is_text(&letter));
        if kinds().filter(|letter| !is_text(letter)).count() + usize::from(has_text) < 2 {
            return Ok(());
        }
        let flags = [
            (self.is_dictionary, 'd'),
            (self.folds_case, 'f'),
            (self.is_printable && !self.is_dictionary, 'i'),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter);
        let mut letters: Vec<char> = flags.chain(kinds()).collect();
        letters.sort_unstable_by_key(|letter| "dfghiMnRV".find(*letter));
        let letters: String = letters.into_iter().collect();
        Err(Ending::refused(format!("options '-{letters}' are incompatible")))
    }
}

impl SortKind {
    fn letter(self) -> char {
        match self {
            Self::Number => 'n',
            Self::General => 'g',
            Self::Human => 'h',
            Self::Month => 'M',
            Self::Random => 'R',
            Self::Version => 'V',
        }
    }
}

/// The start of a key, counted from zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyStart {
    pub field: usize,
    pub char: usize,
    pub skips_blanks: bool,
}

/// The end of a key. If `char` is zero, it is the end of the field.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyEnd {
    pub field: usize,
    pub char: usize,
    pub skips_blanks: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SortKey {
    pub start: KeyStart,
    pub end: Option<KeyEnd>,
    pub order: KeyOrder,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

impl SortKey {
    pub(super) fn whole_line(order: KeyOrder) -> Self {
        let start = KeyStart { field: 0, char: 0, skips_blanks: order.skips_blanks };
        Self { start, end: None, order }
    }

    /// Takes the order of the command, if the key has none.
    pub(super) fn inherit(&mut self, order: KeyOrder) {
        let has_own = self.order != KeyOrder::default()
            || self.start.skips_blanks
            || self.end.is_some_and(|end| end.skips_blanks);
        if !has_own {
            self.order = order;
            self.start.skips_blanks = order.skips_blanks;
            if let Some(end) = &mut self.end {
                end.skips_blanks = order.skips_blanks;
            }
        }
    }

    /// Returns the key's part of a line.
    pub(super) fn of<'a>(&self, line: &'a [u8], separator: Option<u8>) -> &'a [u8] {
        let mut start = field_start(line, self.start.field, separator);
        if self.start.skips_blanks {
            start += blanks(&line[start..]);
        }
        start = start.saturating_add(self.start.char).min(line.len());
        let end = self.end.map_or(line.len(), |end| end.place(line, separator));
        &line[start..end.max(start)]
    }

    /// Compares two keys.
    pub(super) fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let order = self.order;
        let ordering = match order.kind {
            Some(SortKind::Number) => compare_numbers(one, other),
            Some(SortKind::General) => compare_general(one, other),
            Some(SortKind::Human) => compare_human(one, other),
            Some(SortKind::Month) => month(one).cmp(&month(other)),
            Some(SortKind::Random) => {
                let hash = |key: &[u8]| RANDOM.hash_one(key);
                order.letters(one, other, |one, other| {
                    hash(one).cmp(&hash(other)).then_with(|| one.cmp(other))
                })
            }
            Some(SortKind::Version) => order.letters(one, other, by_version),
            None if !order.changes_letters() => one.cmp(other),
            None => order.counted(one).cmp(order.counted(other)),
        };
        if order.is_reverse { ordering.reverse() } else { ordering }
    }
}

impl KeyOrder {
    /// Compares the characters that are not ignored.
    fn letters(self, one: &[u8], other: &[u8], compare: impl Fn(&[u8], &[u8]) -> Ordering) -> Ordering {
        if !self.changes_letters() {
            return compare(one, other);
        }
        let counted = |key| self.counted(key).collect::<Vec<u8>>();
        compare(&counted(one), &counted(other))
    }

    fn changes_letters(self) -> bool {
        self.is_dictionary || self.is_printable || self.folds_case
    }

    fn counted(self, key: &[u8]) -> impl Iterator<Item = u8> + '_ {
        let is_counted = move |byte: &u8| {
            (!self.is_dictionary || byte.is_ascii_alphanumeric() || is_blank(*byte))
                && (!self.is_printable || byte.is_ascii_graphic() || *byte == b' ')
        };
        let case = move |byte: u8| if self.folds_case { byte.to_ascii_uppercase() } else { byte };
        key.iter().copied().filter(is_counted).map(case)
    }
}

impl KeyEnd {
    fn place(self, line: &[u8], separator: Option<u8>) -> usize {
        if self.char == 0 {
            return field_end(line, self.field, separator);
        }
        let mut at = field_start(line, self.field, separator);
        if self.skips_blanks {
            at += blanks(&line[at..]);
        }
        at.saturating_add(self.char).min(line.len())
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_blank(*byte)).unwrap_or(text.len())
}

/// Returns the end of the field that begins here. A field is blanks and the text after them.
fn next_end(line: &[u8], at: usize) -> usize {
    let word = at + blanks(&line[at..]);
    line[word..].iter().position(|byte| is_blank(*byte)).map_or(line.len(), |end| word + end)
}

fn field_start(line: &[u8], field: usize, separator: Option<u8>) -> usize {
    let mut at = 0;
    for _ in 0..field {
        if at == line.len() {
            break;
        }
        at = match separator {
            None => next_end(line, at),
            Some(separator) => {
                memchr::memchr(separator, &line[at..]).map_or(line.len(), |found| at + found + 1)
            }
        };
    }
    at
}

fn field_end(line: &[u8], field: usize, separator: Option<u8>) -> usize {
    let at = field_start(line, field, separator);
    match separator {
        None => next_end(line, at),
        Some(separator) => memchr::memchr(separator, &line[at..]).map_or(line.len(), |found| at + found),
    }
}

/// Returns the number of a month, or zero for another text.
fn month(key: &[u8]) -> usize {
    let name = &key[blanks(key)..];
    let is_name =
        |month: &&str| name.get(..3).is_some_and(|name| name.eq_ignore_ascii_case(month.as_bytes()));
    MONTHS.iter().position(is_name).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_blanks_before_it_unless_a_separator_is_given() {
        let key = |field, char, end| SortKey {
            start: KeyStart { field, char, skips_blanks: false },
            end,
            order: KeyOrder::default(),
        };
        let line = b"a  b c";
        let end = Some(KeyEnd { field: 1, char: 0, skips_blanks: false });
        assert_eq!(key(1, 0, end).of(line, None), b"  b");
        assert_eq!(key(1, 0, None).of(line, Some(b' ')), b" b c");
        assert_eq!(key(1, 2, end).of(line, None), b"b");
        assert_eq!(key(7, 0, end).of(line, None), b"");
    }

    #[test]
    fn months_have_an_order() {
        assert_eq!((month(b" Feb 3"), month(b"DECEMBER"), month(b"x")), (2, 12, 0));
    }
}
