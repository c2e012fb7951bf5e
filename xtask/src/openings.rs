//! Doc comments open with a verb or a noun, not with What, How, Whether, Its, Who, Whoever or Nobody: of each crate's
//! comments only a few per cent may.

use std::collections::BTreeMap;

use crate::source::{Kind, Source};

/// Openings that make a reader wait for the subject.
const AVOIDED: [&str; 7] = ["What", "How", "Whether", "Its", "Who", "Whoever", "Nobody"];

/// The share of a crate's comments that may open so, in per cent.
const LIMIT: usize = 5;

/// Says which crates have too many of them.
pub fn check(sources: &[Source]) -> Vec<String> {
    let counts = counts(sources);
    let mut wrong = Vec::new();
    for (package, (avoided, all)) in &counts {
        if avoided * 100 > all * LIMIT {
            wrong.push(format!(
                "{package}: {avoided} of {all} doc comments open with {}; {LIMIT} % may",
                AVOIDED.join(", ")
            ));
        }
    }
    wrong
}

/// Counts the doc comments of each crate that open so, and all of them.
fn counts(sources: &[Source]) -> BTreeMap<&str, (usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for source in sources {
        let docs: Vec<_> = source.tokens.iter().filter(|token| token.kind == Kind::Doc).collect();
        for (at, doc) in docs.iter().enumerate() {
            if at > 0 && docs[at - 1].line + 1 == doc.line {
                continue;
            }
            let first = doc.text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            let (avoided, all) = counts.entry(source.package()).or_default();
            *avoided += usize::from(AVOIDED.contains(&first));
            *all += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_too_many_of_them_is_told() {
        let good = "/// Returns it.\n/// What follows is of the same comment.\nfn a() {}\n";
        let bad = "/// Whether it is.\nfn b() {}\n";
        let of = |text: &str| {
            let wrong = check(&[Source::new("crates/new/src/a.rs", text)]);
            wrong.into_iter().filter(|wrong| wrong.starts_with("new: ")).collect::<Vec<_>>()
        };
        assert!(of(&good.repeat(30)).is_empty());
        assert!(of(&(good.repeat(30) + bad)).is_empty(), "3 %");
        assert_eq!(of(&(good.repeat(30) + &bad.repeat(2))).len(), 1, "6 %");
    }
}
