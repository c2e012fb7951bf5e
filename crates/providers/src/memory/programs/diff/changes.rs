//! The places where two texts differ.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, NoSliderHeuristic, Token};
use regex::bytes::Regex;

use super::text::{Sameness, Text};

/// Lines of the old text that lines of the new one replace, counted from nought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub old: Range<usize>,
    pub new: Range<usize>,
    /// All of its lines are such as the options ignore.
    pub is_ignored: bool,
}

/// Lines of which changes do not count.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    pub blank_lines: bool,
    pub patterns: Vec<Regex>,
}

impl Ignored {
    fn has(&self, content: &[u8], sameness: Sameness) -> bool {
        self.blank_lines && sameness.is_blank(content)
            || self.patterns.iter().any(|pattern| pattern.is_match(content))
    }

    /// Marks the changes of which no line counts.
    pub(super) fn mark(&self, changes: &mut [Change], texts: [&Text; 2], sameness: Sameness) {
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

/// Finds the changes between two texts, whose lines are numbered.
pub(super) fn changes(tokens: &[Vec<Token>; 2], count: u32, is_minimal: bool) -> Vec<Change> {
    let algorithm = if is_minimal { Algorithm::MyersMinimal } else { Algorithm::Myers };
    let mut diff = Diff::default();
    diff.compute_with(algorithm, &tokens[0], &tokens[1], count);
    diff.postprocess_with(&tokens[0], &tokens[1], NoSliderHeuristic);
    let lines = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks()
        .map(|hunk| Change { old: lines(hunk.before), new: lines(hunk.after), is_ignored: false })
        .collect()
}

/// Groups changes that are shown together, because few equal lines lie between them.
pub(super) fn groups(changes: &[Change], context: usize) -> Vec<&[Change]> {
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

    fn found(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let tokens = [old, new].map(|text| text.bytes().map(|byte| Token(byte.into())).collect());
        changes(&tokens, 256, false).into_iter().map(|change| (change.old, change.new)).collect()
    }

    #[test]
    fn a_change_slides_down_as_far_as_it_can() {
        assert_eq!(found("ab}", "ab}ab}"), [(3..3, 3..6)]);
        assert_eq!(found("xaay", "xay"), [(2..3, 2..2)]);
    }

    #[test]
    fn near_changes_are_one_group() {
        let change = |at| Change { old: at..at + 1, new: at..at + 1, is_ignored: false };
        let all = [change(0), change(8), change(20)];
        let sizes = |context| groups(&all, context).into_iter().map(<[Change]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(3), [1, 1, 1]);
        assert_eq!(sizes(4), [2, 1]);
        assert_eq!(sizes(usize::MAX), [3]);
    }
}
