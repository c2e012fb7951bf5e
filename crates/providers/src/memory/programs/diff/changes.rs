//! The places where two texts differ.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, NoSliderHeuristic, Token};
use regex::bytes::Regex;

use super::text::{DiffText, Sameness};

/// Lines of the old text that lines of the new one replace, counted from nought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiffChange {
    pub old: Range<usize>,
    pub new: Range<usize>,
    /// All of its lines are such as the options ignore.
    pub is_ignored: bool,
}

/// Lines of which changes do not count.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    pub blank_lines: bool,
    pub patterns: Vec<Regex>,
}

impl IgnoreRules {
    fn has(&self, content: &[u8], sameness: Sameness) -> bool {
        self.blank_lines && sameness.is_blank(content)
            || self.patterns.iter().any(|pattern| pattern.is_match(content))
    }

    /// Marks the changes of which no line counts.
    pub(super) fn mark(&self, changes: &mut [DiffChange], texts: [&DiffText; 2], sameness: Sameness) {
        if !self.blank_lines && self.patterns.is_empty() {
            return;
        }
        for change in changes {
            change.is_ignored = [change.old.clone(), change.new.clone()]
                .into_iter()
                .zip(texts)
                .all(|(mut lines, text)| lines.all(|at| self.has(text.content(at), sameness)));
        }
    }
}

/// The lines of each side that are compared at once, and those for the least set of changes. Nobody
/// else can go on meanwhile: a step takes less than a second.
const LINES_AT_ONCE: usize = 15_000;
const LINES_AT_ONCE_FOR_LEAST: usize = 5_000;

/// Two texts, whose lines are numbered, and the changes that are found so far.
///
/// Long texts are compared part by part. What a part ends with is compared again with the next.
pub(super) struct DiffComparison<'a> {
    tokens: [&'a [Token]; 2],
    count: u32,
    is_minimal: bool,
    /// The lines that are compared.
    done: [usize; 2],
    changes: Vec<DiffChange>,
}

impl<'a> DiffComparison<'a> {
    pub(super) fn new(tokens: [&'a [Token]; 2], count: u32, is_minimal: bool) -> Self {
        Self { tokens, count, is_minimal, done: [0; 2], changes: Vec::new() }
    }

    /// Compares the next part. Returns `false` once there is none.
    pub(super) fn step(&mut self) -> bool {
        let most = if self.is_minimal { LINES_AT_ONCE_FOR_LEAST } else { LINES_AT_ONCE };
        let [old, new] = [0, 1].map(|side| &self.tokens[side][self.done[side]..]);
        if old.is_empty() && new.is_empty() {
            return false;
        }
        let is_last = old.len().max(new.len()) <= most || old.is_empty() || new.is_empty();
        let cut = |tokens: &'a [Token]| if is_last { tokens } else { &tokens[..tokens.len().min(most)] };
        let (old, new) = (cut(old), cut(new));
        let mut found = self.compare(old, new);
        let mut ends = [old.len(), new.len()];
        let last_is_open = |last: &DiffChange| {
            last.old.end == old.len()
                && last.new.end == new.len()
                && (last.old.start, last.new.start) != (0, 0)
        };
        if !is_last && let Some(last) = found.pop_if(|last| last_is_open(last)) {
            ends = [last.old.start, last.new.start];
        }
        for change in found {
            self.add(change);
        }
        self.done = [self.done[0] + ends[0], self.done[1] + ends[1]];
        true
    }

    fn compare(&self, old: &[Token], new: &[Token]) -> Vec<DiffChange> {
        let algorithm = if self.is_minimal { Algorithm::MyersMinimal } else { Algorithm::Myers };
        let mut diff = Diff::default();
        diff.compute_with(algorithm, old, new, self.count);
        diff.postprocess_with(old, new, NoSliderHeuristic);
        let lines = |range: Range<u32>| range.start as usize..range.end as usize;
        diff.hunks()
            .map(|hunk| DiffChange { old: lines(hunk.before), new: lines(hunk.after), is_ignored: false })
            .collect()
    }

    /// Adds a change of a part, to the last one if nothing lies between them.
    fn add(&mut self, change: DiffChange) {
        let [old, new] = self.done;
        let change = DiffChange {
            old: change.old.start + old..change.old.end + old,
            new: change.new.start + new..change.new.end + new,
            is_ignored: false,
        };
        match self.changes.last_mut() {
            Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
                (last.old.end, last.new.end) = (change.old.end, change.new.end);
            }
            _ => self.changes.push(change),
        }
    }

    pub(super) fn into_changes(self) -> Vec<DiffChange> {
        self.changes
    }
}

/// Groups changes that are shown together, because few equal lines lie between them.
pub(super) fn groups(changes: &[DiffChange], context: usize) -> Vec<&[DiffChange]> {
    let mut groups = Vec::new();
    let mut first = 0;
    for at in 1..=changes.len() {
        let is_near = changes.get(at).is_some_and(|next| {
            let between = if next.is_ignored { context } else { context.saturating_mul(2).saturating_add(1) };
            next.old.start - changes[at - 1].old.end < between
        });
        if !is_near {
            groups.push(&changes[first..at]);
            first = at;
        }
    }
    if changes.is_empty() { Vec::new() } else { groups }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_changes(tokens: [&[Token]; 2]) -> Vec<DiffChange> {
        let mut comparison = DiffComparison::new(tokens, 1 << 20, false);
        while comparison.step() {}
        comparison.into_changes()
    }

    #[test]
    fn long_texts_are_compared_part_by_part() {
        let old: Vec<Token> = (0..50_000).map(Token).collect();
        let mut new = old.clone();
        new.remove(49_000);
        new.insert(20_000, Token(60_000));
        new.insert(0, Token(60_001));
        let places: Vec<_> =
            all_changes([&old, &new]).into_iter().map(|change| (change.old, change.new)).collect();
        assert_eq!(
            places,
            [(0..0, 0..1), (20_000..20_000, 20_001..20_002), (49_000..49_001, 49_002..49_002)]
        );
        let other: Vec<Token> = (100_000..140_000).map(Token).collect();
        assert_eq!(all_changes([&old, &other]).len(), 1);
    }

    fn found(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let tokens = [old, new].map(|text| text.bytes().map(|byte| Token(byte.into())).collect::<Vec<_>>());
        all_changes([&tokens[0], &tokens[1]]).into_iter().map(|change| (change.old, change.new)).collect()
    }

    #[test]
    fn a_change_slides_down_as_far_as_it_can() {
        assert_eq!(found("ab}", "ab}ab}"), [(3..3, 3..6)]);
        assert_eq!(found("xaay", "xay"), [(2..3, 2..2)]);
    }

    #[test]
    fn near_changes_are_one_group() {
        let change = |at| DiffChange { old: at..at + 1, new: at..at + 1, is_ignored: false };
        let all = [change(0), change(8), change(20)];
        let sizes = |context| groups(&all, context).into_iter().map(<[DiffChange]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(3), [1, 1, 1]);
        assert_eq!(sizes(4), [2, 1]);
        assert_eq!(sizes(usize::MAX), [3]);
    }
}
