//! `tr`: changes, deletes or squeezes bytes. It works while its input arrives.

use async_trait::async_trait;

use super::options::{OptionWord, Words, complete, unknown};
use super::quoting::curly;
use super::run::{Ending, ProgramRun, ShellProgram};
use super::tr_sets::{ByteSet, ends_with_backslash, parse_set};

const LONG: &[&str] = &["complement", "delete", "squeeze-repeats", "truncate-set1"];

pub(super) struct Tr;

#[async_trait]
impl ShellProgram for Tr {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut changer = parse(run.args)?;
        for _ in run.args.iter().filter(|set| ends_with_backslash(set)) {
            run.complain("warning: an unescaped backslash at end of string is not portable").await?;
        }
        while let Some(mut bytes) = run.read_input().await? {
            changer.change(&mut bytes);
            run.print(bytes).await?;
            run.breathe().await;
        }
        Ok(0)
    }

    fn usage(&self) -> &'static str {
        "[OPTION]... STRING1 [STRING2]"
    }
}

/// The change for each byte, and the last written byte.
struct ByteChanger {
    /// The new value of each byte; `None`: the byte is deleted.
    changes: [Option<u8>; 256],
    squeezed: [bool; 256],
    last: Option<u8>,
}

impl ByteChanger {
    fn change(&mut self, bytes: &mut Vec<u8>) {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let Some(byte) = self.changes[usize::from(bytes[at])] else { continue };
            if self.last == Some(byte) && self.squeezed[usize::from(byte)] {
                continue;
            }
            self.last = Some(byte);
            bytes[kept] = byte;
            kept += 1;
        }
        bytes.truncate(kept);
    }
}

fn parse(args: &[String]) -> Result<ByteChanger, Ending> {
    let (mut is_complement, mut deletes, mut squeezes, mut truncates) = (false, false, false, false);
    let mut sets = Vec::new();
    // The first set ends the options.
    let options = args.iter().take_while(|arg| arg.len() > 1 && arg.starts_with('-')).count();
    let options = args.iter().take(options).position(|arg| arg == "--").map_or(options, |at| at + 1);
    let mut words = Words::new(&args[..options]);
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => complete(name, LONG)?.chars().next().unwrap_or_default(),
            OptionWord::Operand(_) => continue,
        };
        match letter {
            'c' | 'C' => is_complement = true,
            'd' => deletes = true,
            's' => squeezes = true,
            't' => truncates = true,
            _ => return Err(unknown(&word)),
        }
    }
    sets.extend_from_slice(&args[options..]);
    check_number(&sets, deletes, squeezes)?;
    let first = parse_set(&sets[0])?;
    if first.has_filler() {
        return Err(Ending::refused("the [c*] repeat construct may not appear in string1"));
    }
    let mut from = first.bytes(0);
    if is_complement {
        from = (0..=u8::MAX).filter(|byte| !from.contains(byte)).collect();
    }
    let second = sets.get(1).map(|text| parse_set(text)).transpose()?;
    let mut changer = ByteChanger {
        changes: std::array::from_fn(|byte| u8::try_from(byte).ok()),
        squeezed: [false; 256],
        last: None,
    };
    let mut squeezed = from.clone();
    if deletes {
        from.iter().for_each(|byte| changer.changes[usize::from(*byte)] = None);
        squeezed = second.as_ref().map(|second| second.bytes(0)).unwrap_or_default();
    } else if let Some(second) = &second {
        let to = targets(&first, second, &from, is_complement, truncates)?;
        for (from, to) in from.iter().zip(&to) {
            changer.changes[usize::from(*from)] = Some(*to);
        }
        squeezed = to;
    }
    if squeezes {
        squeezed.iter().for_each(|byte| changer.squeezed[usize::from(*byte)] = true);
    }
    Ok(changer)
}

/// Returns the bytes to translate to, in order.
fn targets(
    first: &ByteSet,
    second: &ByteSet,
    from: &[u8],
    is_complement: bool,
    truncates: bool,
) -> Result<Vec<u8>, Ending> {
    second.check_as_target(first, is_complement)?;
    let mut to = second.bytes(from.len());
    if to.is_empty() && !truncates && !from.is_empty() {
        return Err(Ending::refused("when not truncating set1, string2 must be non-empty"));
    }
    if !truncates && let Some(last) = to.last().copied() {
        if to.len() < from.len() && second.ends_with_class() {
            let reason = "when translating with string1 longer than string2,\nthe latter string must not end with a character class";
            return Err(Ending::refused(reason));
        }
        to.resize(to.len().max(from.len()), last);
    }
    if is_complement && second.has_class() && to.iter().any(|byte| *byte != to[0]) {
        let reason = "when translating with complemented character classes,\nstring2 must map all characters in the domain to one";
        return Err(Ending::refused(reason));
    }
    Ok(to)
}

fn check_number(sets: &[String], deletes: bool, squeezes: bool) -> Result<(), Ending> {
    let (least, most) = match (deletes, squeezes) {
        (true, false) => (1, 1),
        (false, true) => (1, 2),
        _ => (2, 2),
    };
    let Some(last) = sets.last() else { return Err(Ending::usage("missing operand")) };
    if sets.len() < least {
        let why = if deletes {
            "Two strings must be given when both deleting and squeezing repeats."
        } else {
            "Two strings must be given when translating."
        };
        return Err(Ending::usage(format!("missing operand after {}\n{why}", curly(last))));
    }
    if sets.len() > most {
        let extra = curly(&sets[most]);
        let why = if most == 1 && sets.len() == 2 {
            "\nOnly one string may be given when deleting without squeezing repeats."
        } else {
            ""
        };
        return Err(Ending::usage(format!("extra operand {extra}{why}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tr(args: &[&str], input: &str) -> String {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        match parse(&args) {
            Ok(mut changer) => {
                let mut bytes = input.as_bytes().to_vec();
                changer.change(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Err(Ending::Refused { reason, .. }) => reason,
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn bytes_are_changed_deleted_and_squeezed() {
        assert_eq!(tr(&["a-c", "A-C"], "abcd"), "ABCd");
        assert_eq!(tr(&["[:lower:]", "[:upper:]"], "ab1"), "AB1");
        assert_eq!(tr(&["-cd", "0-9\\n"], "a1b2\n"), "12\n");
        assert_eq!(tr(&["-s", " "], "a  b"), "a b");
        assert_eq!(tr(&["-ds", "x", "a"], "axaxb"), "ab");
        assert_eq!(tr(&["abc", "x"], "abcd"), "xxxd");
        assert_eq!(tr(&["-t", "abc", "x"], "abcd"), "xbcd");
        assert_eq!(tr(&["-c", "a", "[x*]"], "abc"), "axx");
        assert_eq!(tr(&["é", "e"], "é"), "ee");
        assert_eq!(tr(&["a", "-"], "a"), "-");
    }

    #[test]
    fn sets_that_do_not_fit_are_refused() {
        assert_eq!(tr(&[], ""), "missing operand");
        assert!(tr(&["a"], "").starts_with("missing operand after ‘a’\nTwo strings"));
        assert!(tr(&["-d", "a", "b"], "").starts_with("extra operand ‘b’\nOnly one string"));
        assert_eq!(tr(&["z-a", "b"], ""), "range-endpoints of 'z-a' are in reverse collating sequence order");
    }
}
