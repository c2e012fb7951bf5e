//! Arrays of `awk`. `for (key in array)` iterates in the same order as mawk, because scripts print that order. So keys are in
//! linked lists by their hashes as in mawk, with the last found key in front.

use super::text::{AwkText, return_bytes, take_bytes};
use super::value::AwkValue;

const FIRST_LISTS: usize = 64;
/// The average length of the lists at which their number doubles.
const MAX_AVERAGE: usize = 12;
/// The memory of an entry without its texts.
const ENTRY_BYTES: usize = 96;
const NONE: u32 = u32::MAX;

/// A key. Numbers are looked up as numbers until their text is needed.
#[derive(Clone)]
pub(super) enum TableKey {
    Number(i32),
    Text(AwkText),
}

struct TableEntry {
    text: Option<(AwkText, u32)>,
    number: Option<i32>,
    next_by_text: u32,
    next_by_number: u32,
    value: AwkValue,
}

/// The first entries of two lists.
#[derive(Clone, Copy)]
struct ListHeads {
    by_text: u32,
    by_number: u32,
}

const EMPTY: ListHeads = ListHeads { by_text: NONE, by_number: NONE };

/// An array.
#[derive(Default)]
pub(super) struct AwkTable {
    /// The pieces from `split`, with the keys 1, 2, 3 and so on, until another key is used.
    pieces: Vec<AwkValue>,
    entries: Vec<TableEntry>,
    free: Vec<u32>,
    lists: Vec<ListHeads>,
    len: usize,
    has_texts: bool,
    has_numbers: bool,
}

impl Drop for AwkTable {
    fn drop(&mut self) {
        return_bytes((self.entries.len() + self.pieces.len()) * ENTRY_BYTES);
    }
}

impl AwkTable {
    pub(super) fn len(&self) -> usize {
        self.len + self.pieces.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Replaces all entries.
    pub(super) fn set_pieces(&mut self, pieces: Vec<AwkValue>) {
        self.clear();
        take_bytes(pieces.len() * ENTRY_BYTES);
        self.pieces = pieces;
    }

    pub(super) fn has(&mut self, key: &TableKey) -> bool {
        self.entry(key, false).is_some()
    }

    /// Returns the value of a key, which is created if needed.
    pub(super) fn value(&mut self, key: &TableKey) -> &mut AwkValue {
        match self.piece(key) {
            Some(at) => &mut self.pieces[at],
            None => {
                let at = self.find(key, true);
                &mut self.entries[at as usize].value
            }
        }
    }

    fn entry(&mut self, key: &TableKey, creates: bool) -> Option<u32> {
        if self.piece(key).is_some() {
            return Some(0);
        }
        if self.len() == 0 && !creates {
            return None;
        }
        let found = self.find(key, creates);
        (found != NONE).then_some(found)
    }

    fn piece(&self, key: &TableKey) -> Option<usize> {
        let TableKey::Number(number) = key else { return None };
        let at = usize::try_from(*number).ok()?.checked_sub(1)?;
        (at < self.pieces.len()).then_some(at)
    }

    fn find(&mut self, key: &TableKey, creates: bool) -> u32 {
        self.prepare();
        match key {
            TableKey::Number(number) => self.find_number(*number, creates),
            TableKey::Text(text) => self.find_text(text, creates),
        }
    }

    /// Turns the pieces into entries, and creates the lists.
    fn prepare(&mut self) {
        if self.lists.is_empty() {
            let mut lists = FIRST_LISTS;
            while self.pieces.len() > lists * MAX_AVERAGE {
                lists *= 2;
            }
            self.lists = vec![EMPTY; lists];
        }
        if self.pieces.is_empty() {
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        return_bytes(pieces.len() * ENTRY_BYTES);
        for (number, value) in (1..).zip(pieces) {
            let at = self.add(value);
            self.hang_by_number(at, number);
        }
        self.has_numbers = true;
    }

    fn add(&mut self, value: AwkValue) -> u32 {
        let entry = TableEntry { text: None, number: None, next_by_text: NONE, next_by_number: NONE, value };
        self.len += 1;
        if let Some(at) = self.free.pop() {
            self.entries[at as usize] = entry;
            return at;
        }
        take_bytes(ENTRY_BYTES);
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
    }

    fn list_of_number(&self, number: i32) -> usize {
        number.cast_unsigned() as usize & (self.lists.len() - 1)
    }

    fn hang_by_number(&mut self, at: u32, number: i32) {
        let list = self.list_of_number(number);
        let entry = &mut self.entries[at as usize];
        entry.number = Some(number);
        entry.next_by_number = std::mem::replace(&mut self.lists[list].by_number, at);
    }

    fn hang_by_text(&mut self, at: u32, text: AwkText, hash: u32) {
        let list = hash as usize & (self.lists.len() - 1);
        let entry = &mut self.entries[at as usize];
        entry.text = Some((text, hash));
        entry.next_by_text = std::mem::replace(&mut self.lists[list].by_text, at);
    }

    fn find_number(&mut self, number: i32, creates: bool) -> u32 {
        let list = self.list_of_number(number);
        let (mut at, mut before) = (self.lists[list].by_number, NONE);
        while at != NONE && self.entries[at as usize].number != Some(number) {
            before = at;
            at = self.entries[at as usize].next_by_number;
        }
        if at != NONE {
            if before != NONE {
                let next = self.entries[at as usize].next_by_number;
                self.entries[before as usize].next_by_number = next;
                self.hang_by_number(at, number);
            }
            return at;
        }
        if self.has_texts {
            let text = AwkText::from(number.to_string().as_str());
            at = self.find_text(&text, creates);
        } else if creates {
            at = self.add(AwkValue::Unset);
            self.grow();
        }
        if at != NONE {
            self.hang_by_number(at, number);
            self.has_numbers = true;
        }
        at
    }

    fn find_text(&mut self, text: &AwkText, creates: bool) -> u32 {
        self.give_texts();
        let hash = hash_of(text.bytes());
        let list = hash as usize & (self.lists.len() - 1);
        let (mut at, mut before) = (self.lists[list].by_text, NONE);
        let is_it = |entry: &TableEntry| {
            entry
                .text
                .as_ref()
                .is_some_and(|(own, own_hash)| *own_hash == hash && own.bytes() == text.bytes())
        };
        while at != NONE && !is_it(&self.entries[at as usize]) {
            before = at;
            at = self.entries[at as usize].next_by_text;
        }
        if at == NONE {
            if creates {
                at = self.add(AwkValue::Unset);
                self.grow();
                self.hang_by_text(at, text.clone(), hash);
            }
        } else if before != NONE {
            let next = self.entries[at as usize].next_by_text;
            self.entries[before as usize].next_by_text = next;
            self.hang_by_text(at, text.clone(), hash);
        }
        at
    }

    /// Adds the texts to entries that have only numbers.
    fn give_texts(&mut self) {
        if self.has_numbers {
            for list in 0..self.lists.len() {
                let mut at = self.lists[list].by_number;
                while at != NONE {
                    let entry = &self.entries[at as usize];
                    let next = entry.next_by_number;
                    if let (None, Some(number)) = (&entry.text, entry.number) {
                        let text = AwkText::from(number.to_string().as_str());
                        let hash = hash_of(text.bytes());
                        self.hang_by_text(at, text, hash);
                    }
                    at = next;
                }
            }
        }
        self.has_texts = true;
    }

    /// Doubles the number of lists if they have become long.
    fn grow(&mut self) {
        let old = self.lists.len();
        if self.len <= old * MAX_AVERAGE {
            return;
        }
        self.lists.resize(old * 2, EMPTY);
        for list in 0..old {
            let keys = |entry: &TableEntry| entry.text.as_ref().map_or(0, |(_, hash)| *hash as usize);
            let by_text =
                self.split_list(self.lists[list].by_text, old, keys, |entry| &mut entry.next_by_text);
            let keys = |entry: &TableEntry| entry.number.map_or(0, |number| number.cast_unsigned() as usize);
            let by_number =
                self.split_list(self.lists[list].by_number, old, keys, |entry| &mut entry.next_by_number);
            self.lists[list] = ListHeads { by_text: by_text[0], by_number: by_number[0] };
            self.lists[old + list] = ListHeads { by_text: by_text[1], by_number: by_number[1] };
        }
    }

    /// Splits a list in two by a bit of the keys.
    fn split_list(
        &mut self,
        first: u32,
        bit: usize,
        key: impl Fn(&TableEntry) -> usize,
        next: impl Fn(&mut TableEntry) -> &mut u32,
    ) -> [u32; 2] {
        let (mut heads, mut tails) = ([NONE; 2], [NONE; 2]);
        let mut at = first;
        while at != NONE {
            let side = usize::from(key(&self.entries[at as usize]) & bit != 0);
            let behind = std::mem::replace(next(&mut self.entries[at as usize]), NONE);
            if tails[side] == NONE {
                heads[side] = at;
            } else {
                *next(&mut self.entries[tails[side] as usize]) = at;
            }
            tails[side] = at;
            at = behind;
        }
        heads
    }

    pub(super) fn remove(&mut self, key: &TableKey) {
        if self.len() == 0 {
            return;
        }
        let at = self.find(key, false);
        if at == NONE {
            return;
        }
        let (text, number) = {
            let entry = &mut self.entries[at as usize];
            entry.value = AwkValue::Unset;
            (entry.text.take(), entry.number.take())
        };
        if let Some((_, hash)) = text {
            let list = hash as usize & (self.lists.len() - 1);
            let first = self.lists[list].by_text;
            self.lists[list].by_text = self.unhang(first, at, |entry| &mut entry.next_by_text);
        }
        if let Some(number) = number {
            let list = self.list_of_number(number);
            let first = self.lists[list].by_number;
            self.lists[list].by_number = self.unhang(first, at, |entry| &mut entry.next_by_number);
        }
        self.free.push(at);
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
    }

    /// Removes an entry from a list, and returns the new first entry.
    fn unhang(&mut self, first: u32, entry: u32, next: impl Fn(&mut TableEntry) -> &mut u32) -> u32 {
        let behind = *next(&mut self.entries[entry as usize]);
        if first == entry {
            return behind;
        }
        let mut at = first;
        while at != NONE {
            let link = next(&mut self.entries[at as usize]);
            if *link == entry {
                *link = behind;
                break;
            }
            at = *link;
        }
        first
    }

    /// Returns the keys in mawk's order.
    pub(super) fn keys(&mut self) -> Vec<AwkText> {
        if self.len() == 0 {
            return Vec::new();
        }
        self.prepare();
        self.give_texts();
        let mut keys = Vec::with_capacity(self.len);
        for list in &self.lists {
            let mut at = list.by_text;
            while at != NONE {
                let entry = &self.entries[at as usize];
                keys.extend(entry.text.as_ref().map(|(text, _)| text.clone()));
                at = entry.next_by_text;
            }
        }
        keys
    }
}

/// The hash of a text (FNV-1a).
fn hash_of(text: &[u8]) -> u32 {
    text.iter().fold(2_166_136_261, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> TableKey {
        text.parse().map_or_else(|_| TableKey::Text(AwkText::from(text)), TableKey::Number)
    }

    fn keys(table: &mut AwkTable) -> String {
        let keys = table.keys();
        let keys: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(key.bytes()).into_owned()).collect();
        keys.join(" ")
    }

    #[test]
    fn keys_come_in_the_order_of_mawk() {
        let mut table = AwkTable::default();
        for name in ["b", "a", "10", "9", "B", "2"] {
            *table.value(&key(name)) = AwkValue::Unset;
        }
        assert_eq!(keys(&mut table), "10 B 2 b a 9");
        let mut split = AwkTable::default();
        split.set_pieces(vec![AwkValue::Unset; 12]);
        assert_eq!(keys(&mut split), "3 10 8 6 5 2 11 1 4 12 9 7");
    }

    #[test]
    fn entries_are_found_by_number_and_text_and_leave_nothing_when_they_go() {
        let mut table = AwkTable::default();
        for number in 0..5000 {
            *table.value(&TableKey::Number(number)) = AwkValue::Number(f64::from(number));
        }
        let text = |number: i32| TableKey::Text(AwkText::from(number.to_string().as_str()));
        assert!((0..5000).all(|number| table.value(&text(number)).number() == f64::from(number)));
        assert_eq!((table.len(), table.has(&text(5000)), table.keys().len()), (5000, false, 5000));
        (0..5000).for_each(|number| {
            table.remove(&if number % 2 == 0 { text(number) } else { TableKey::Number(number) })
        });
        assert_eq!((table.len(), keys(&mut table).as_str()), (0, ""));
    }
}
