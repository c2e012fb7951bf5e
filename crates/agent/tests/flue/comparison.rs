//! The comparison of two transcripts.

use libtest_mimic::Failed;
use serde_json::Value;

use crate::pointers::{mask, remove};
use crate::scenario::Difference;
use crate::transcript::without_own_limits;

/// The most differences that a failure shows.
const MOST_SHOWN: usize = 40;

/// Compares the transcripts of both runtimes. An error: a difference that is not intended, or an intended one that is not there.
pub fn compare(mut their: Value, mut our: Value, intended: &[Difference]) -> Result<(), Failed> {
    let mut found = Vec::new();
    for difference in intended {
        let is_there = match difference {
            Difference::Differs(at) => mask(&mut their, at) != mask(&mut our, at),
            Difference::OnlyTheirs(at) => remove(&mut their, at).is_some(),
            Difference::OnlyOurs(at) => remove(&mut our, at).is_some(),
        };
        if !is_there {
            found.push(format!("{difference:?}: an intended difference is not there"));
        }
    }
    without_own_limits(&their, &mut our);
    differences("", &their, &our, &mut found);
    if found.is_empty() {
        return Ok(());
    }
    let count = found.len();
    found.truncate(MOST_SHOWN);
    Err(format!("{count} differences, Flue's first\n{}", found.join("\n")).into())
}

/// Finds the places where two values differ.
fn differences(place: &str, their: &Value, our: &Value, found: &mut Vec<String>) {
    match (their, our) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let names = theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)));
            for name in names {
                let (their, our) =
                    (theirs.get(name).unwrap_or(&Value::Null), ours.get(name).unwrap_or(&Value::Null));
                differences(&format!("{place}/{name}"), their, our, found);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if theirs.len() != ours.len() {
                found.push(format!("{place}: {} and {}", outline(theirs), outline(ours)));
            }
            for (number, (their, our)) in theirs.iter().zip(ours).enumerate() {
                differences(&format!("{place}/{number}"), their, our, found);
            }
        }
        _ if their == our => {}
        _ => found.push(format!("{place}\n    {their}\n    {our}")),
    }
}

/// The kinds of a list's items.
fn outline(items: &[Value]) -> String {
    let kind = |item: &Value| {
        let kind = ["type", "role"].iter().find_map(|field| item[*field].as_str());
        kind.unwrap_or("?").to_owned()
    };
    format!("{} ({})", items.len(), items.iter().map(kind).collect::<Vec<_>>().join(" "))
}
