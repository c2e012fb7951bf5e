//! The words that a misspelt one may have been meant to be.

/// Returns the nearest of these words, if they are near enough: one letter in three may be wrong, and
/// one at least.
pub fn nearest(word: &str, words: &[&str]) -> Vec<String> {
    let most = (word.chars().count() / 3).max(1);
    let near = |candidate: &&&str| distance(word, candidate) <= most;
    let Some(least) = words.iter().filter(near).map(|candidate| distance(word, candidate)).min() else {
        return Vec::new();
    };
    let nearest = words.iter().filter(|candidate| distance(word, candidate) == least);
    nearest.map(|candidate| (*candidate).to_owned()).collect()
}

/// Counts the letters that were changed, added, left out, or swapped with the next.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (at, letter) in left.iter().enumerate() {
        let mut row = vec![at + 1];
        for (to, other) in right.iter().enumerate() {
            let changed = rows[at][to] + usize::from(letter != other);
            let swapped = at > 0 && to > 0 && left[at - 1] == *other && right[to - 1] == *letter;
            let swapped = if swapped { rows[at - 1][to - 1] + 1 } else { usize::MAX };
            row.push(changed.min(swapped).min(rows[at][to + 1] + 1).min(row[to] + 1));
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 6] = ["run", "create", "read", "rm", "exec", "inspect"];

    #[test]
    fn swapped_forgotten_and_wrong_letters_are_forgiven() {
        for (typed, meant) in [
            ("rnu", "run"),
            ("creat", "create"),
            ("crate", "create"),
            ("exce", "exec"),
            ("inspcet", "inspect"),
            ("isnpcet", "inspect"),
        ] {
            assert_eq!(nearest(typed, &WORDS), [meant], "{typed}");
        }
    }

    #[test]
    fn a_word_that_is_far_from_all_is_like_none() {
        for typed in ["nonsense", "xyz", ""] {
            assert!(nearest(typed, &WORDS).is_empty(), "{typed}");
        }
    }

    #[test]
    fn the_distance_counts_letters() {
        for (left, right, count) in [("", "ab", 2), ("rnu", "run", 1), ("abc", "abc", 0), ("ab", "ba", 1)] {
            assert_eq!(distance(left, right), count, "{left} {right}");
        }
    }
}
