//! The order of entries.

use std::cmp::Ordering;

use super::entries::Entry;
use super::options::{Options, Sort};
use crate::memory::programs::facts::ShownNodeKind;

/// Sorts entries as it is asked for. Names are compared by their bytes.
pub(super) fn sort(entries: &mut [Entry], options: &Options) {
    if options.sort != Sort::None {
        entries.sort_by(|one, other| {
            let order = compare(one, other, options.sort);
            if options.is_reversed { order.reverse() } else { order }
        });
    }
    if options.directories_first {
        entries.sort_by_key(|entry| !leads_to_directory(entry));
    }
}

fn leads_to_directory(entry: &Entry) -> bool {
    let is_directory =
        |facts: &crate::memory::programs::facts::NodeFacts| facts.kind == ShownNodeKind::Directory;
    entry.facts.as_ref().is_some_and(is_directory) || entry.target.as_ref().is_some_and(is_directory)
}

fn compare(one: &Entry, other: &Entry, sort: Sort) -> Ordering {
    let first = match sort {
        Sort::Name | Sort::None => Ordering::Equal,
        Sort::Time => {
            let time = |entry: &Entry| entry.facts.as_ref().map(|facts| facts.modified);
            time(other).cmp(&time(one))
        }
        Sort::Size => {
            let size = |entry: &Entry| entry.facts.as_ref().map(|facts| facts.size);
            size(other).cmp(&size(one))
        }
        Sort::Extension => extension(&one.name).cmp(extension(&other.name)),
        Sort::Width => one.name.len().cmp(&other.name.len()),
        Sort::Version => by_version(&one.name, &other.name),
    };
    first.then_with(|| one.name.cmp(&other.name))
}

fn extension(name: &[u8]) -> &[u8] {
    name.iter().rposition(|byte| *byte == b'.').map_or(b"", |at| &name[at..])
}

/// Compares names with numbers in them by the numbers. Hidden names come first.
pub(in crate::memory::programs) fn by_version(one: &[u8], other: &[u8]) -> Ordering {
    let rank = |name: &[u8]| match name {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    let stems = (stem(one), stem(other));
    rank(one)
        .cmp(&rank(other))
        .then_with(|| if stems.0 == stems.1 { Ordering::Equal } else { by_numbers(stems.0, stems.1) })
        .then_with(|| by_numbers(one, other))
}

/// A name without its endings, like `.tar.gz`.
fn stem(name: &[u8]) -> &[u8] {
    let mut end = name.len();
    while let Some(dot) = name[..end].iter().rposition(|byte| *byte == b'.') {
        let ending = &name[dot + 1..end];
        let is_ending = ending.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'~')
            && ending.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'~');
        if !is_ending || dot == 0 {
            break;
        }
        end = dot;
    }
    &name[..end]
}

fn by_numbers(mut one: &[u8], mut other: &[u8]) -> Ordering {
    fn rank(byte: Option<&u8>) -> i32 {
        match byte {
            None => -1,
            Some(b'~') => -2,
            Some(b'0'..=b'9') => 0,
            Some(letter) if letter.is_ascii_alphabetic() => i32::from(*letter),
            Some(other) => i32::from(*other) + 256,
        }
    }
    fn take_number<'a>(name: &mut &'a [u8]) -> &'a [u8] {
        let zeros = name.iter().take_while(|byte| **byte == b'0').count();
        let digits = name[zeros..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = &name[zeros..zeros + digits];
        *name = &name[zeros + digits..];
        number
    }
    while !one.is_empty() || !other.is_empty() {
        while one.first().is_some_and(|byte| !byte.is_ascii_digit())
            || other.first().is_some_and(|byte| !byte.is_ascii_digit())
        {
            let order = rank(one.first()).cmp(&rank(other.first()));
            if order.is_ne() {
                return order;
            }
            (one, other) = (one.get(1..).unwrap_or(b""), other.get(1..).unwrap_or(b""));
        }
        let numbers = (take_number(&mut one), take_number(&mut other));
        let order = numbers.0.len().cmp(&numbers.1.len()).then_with(|| numbers.0.cmp(numbers.1));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_by_their_numbers() {
        let sorted = [
            ".",
            "..",
            ".a",
            "a",
            "a1",
            "a2",
            "a10",
            "a10.txt",
            "b-1.9.tar.gz",
            "b-1.10.tar.gz",
            "b-2.tar.gz",
            "c~",
            "c",
        ];
        let mut names = sorted.to_vec();
        names.reverse();
        names.sort_by(|one, other| by_version(one.as_bytes(), other.as_bytes()));
        assert_eq!(names, sorted);
    }
}
