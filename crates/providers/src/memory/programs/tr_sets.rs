//! The sets of `tr`: letters, ranges, classes and repeats.

use super::byte_classes::{ByteClass, byte_class};
use super::quoting::curly;
use super::run::Ending;

/// A parsed set.
#[derive(Debug)]
pub(super) struct ByteSet(Vec<SetPart>);

#[derive(Debug, Clone, Copy)]
enum SetPart {
    Range(u8, u8),
    Class(ByteClass),
    /// A byte that is repeated this often; `None`: until the set is full.
    Repeat(u8, Option<usize>),
    Equivalent(u8),
}

/// The most bytes that a repeat adds. Larger sets are not needed, because there are only 256 bytes to translate.
const MAX_REPEAT: usize = 256;

/// Returns whether a set ends with an unescaped backslash.
pub(super) fn ends_with_backslash(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

/// Reads a set.
pub(super) fn parse_set(text: &str) -> Result<ByteSet, Ending> {
    let letters = unescaped(text.as_bytes());
    let mut parts = Vec::new();
    let mut open = OpenBrackets::default();
    let mut rest = letters.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if !first.is_escaped
            && first.byte == b'['
            && let Some((part, behind)) = bracket(after, &mut open)?
        {
            parts.push(part);
            rest = behind;
            continue;
        }
        match after {
            [dash, to, behind @ ..] if dash.byte == b'-' && !dash.is_escaped => {
                if to.byte < first.byte {
                    let range = format!("{}-{}", shown(first.byte), shown(to.byte));
                    return Err(Ending::refused(format!(
                        "range-endpoints of '{range}' are in reverse collating sequence order"
                    )));
                }
                parts.push(SetPart::Range(first.byte, to.byte));
                rest = behind;
            }
            _ => {
                parts.push(SetPart::Range(first.byte, first.byte));
                rest = after;
            }
        }
    }
    Ok(ByteSet(parts))
}

fn shown(byte: u8) -> String {
    if byte.is_ascii_graphic() || byte == b' ' {
        char::from(byte).to_string()
    } else {
        format!("\\{byte:03o}")
    }
}

/// A byte of a set. An escaped byte has no special meaning.
#[derive(Debug, Clone, Copy)]
struct SetByte {
    byte: u8,
    is_escaped: bool,
}

fn unescaped(text: &[u8]) -> Vec<SetByte> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        at += 1;
        let Some(next) = text.get(at).copied().filter(|_| byte == b'\\') else {
            out.push(SetByte { byte, is_escaped: byte == b'\\' });
            continue;
        };
        at += 1;
        let byte = match next {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'0'..=b'7' => {
                let mut value = u32::from(next - b'0');
                for _ in 0..2 {
                    let Some(digit) = text.get(at).filter(|digit| matches!(digit, b'0'..=b'7')) else {
                        break;
                    };
                    let more = value * 8 + u32::from(digit - b'0');
                    if more > 255 {
                        break;
                    }
                    value = more;
                    at += 1;
                }
                u8::try_from(value).unwrap_or(u8::MAX)
            }
            other => other,
        };
        out.push(SetByte { byte, is_escaped: true });
    }
    out
}

type Bracket<'a> = Option<(SetPart, &'a [SetByte])>;

/// The kinds of brackets that have no end from some place on, so that it is not looked for again.
#[derive(Debug, Default)]
struct OpenBrackets {
    classes: [bool; 2],
    repeats: bool,
}

/// Reads `[:class:]`, `[=c=]` or `[c*n]` after its bracket. `None`: the bracket is an ordinary byte.
fn bracket<'a>(text: &'a [SetByte], open: &mut OpenBrackets) -> Result<Bracket<'a>, Ending> {
    let is = |at: usize, byte: u8| text.get(at).is_some_and(|one| one.byte == byte && !one.is_escaped);
    for (kind, is_open) in [b':', b'='].into_iter().zip(&mut open.classes) {
        if !is(0, kind) || *is_open {
            continue;
        }
        let Some(end) = (1..text.len().saturating_sub(1)).find(|at| is(*at, kind) && is(*at + 1, b']'))
        else {
            *is_open = true;
            continue;
        };
        let name: Vec<u8> = text[1..end].iter().map(|one| one.byte).collect();
        let behind = &text[end + 2..];
        if kind == b'=' {
            let [byte] = name.as_slice() else {
                let name = String::from_utf8_lossy(&name).into_owned();
                let reason = format!("{name}: equivalence class operand must be a single character");
                return Err(Ending::refused(reason));
            };
            return Ok(Some((SetPart::Equivalent(*byte), behind)));
        }
        let class = byte_class(&name);
        let Some(class) = class else {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(Ending::refused(format!("invalid character class {}", curly(&name))));
        };
        return Ok(Some((SetPart::Class(class), behind)));
    }
    if text.is_empty() || !is(1, b'*') || open.repeats {
        return Ok(None);
    }
    let Some(end) = (2..text.len()).find(|at| is(*at, b']')) else {
        open.repeats = true;
        return Ok(None);
    };
    let number: String = text[2..end].iter().map(|one| char::from(one.byte)).collect();
    let radix = if number.starts_with('0') { 8 } else { 10 };
    let count = match number.as_str() {
        "" => 0,
        number => usize::from_str_radix(number, radix).map_err(|_| {
            Ending::refused(format!("invalid repeat count {} in [c*n] construct", curly(number)))
        })?,
    };
    let part = SetPart::Repeat(text[0].byte, Some(count.min(MAX_REPEAT)).filter(|count| *count > 0));
    Ok(Some((part, &text[end + 1..])))
}

impl ByteSet {
    /// Returns the bytes in order. A repeat without a number fills the set up to `len`.
    pub(super) fn bytes(&self, len: usize) -> Vec<u8> {
        let known: usize = self.0.iter().map(|part| part.len().unwrap_or(0)).sum();
        let mut out = Vec::new();
        for part in &self.0 {
            match part {
                SetPart::Range(from, to) => out.extend(*from..=*to),
                SetPart::Class(class) => out.extend((0..=u8::MAX).filter(|byte| (class.has)(*byte))),
                SetPart::Repeat(byte, number) => {
                    let number = number.unwrap_or_else(|| len.saturating_sub(known));
                    out.extend(std::iter::repeat_n(*byte, number));
                }
                SetPart::Equivalent(byte) => out.push(*byte),
            }
        }
        out
    }

    /// Returns whether the set has a repeat without a number.
    pub(super) fn has_filler(&self) -> bool {
        self.0.iter().any(|part| matches!(part, SetPart::Repeat(_, None)))
    }

    pub(super) fn has_class(&self) -> bool {
        self.0.iter().any(|part| matches!(part, SetPart::Class(_)))
    }

    pub(super) fn ends_with_class(&self) -> bool {
        matches!(self.0.last(), Some(SetPart::Class(_)))
    }

    /// Refuses parts that are not allowed in the second set of a translation.
    pub(super) fn check_as_target(&self, first: &Self, is_complement: bool) -> Result<(), Ending> {
        if self.0.iter().any(|part| matches!(part, SetPart::Equivalent(_))) {
            return Err(Ending::refused("[=c=] expressions may not appear in string2 when translating"));
        }
        let fills = self.0.iter().filter(|part| matches!(part, SetPart::Repeat(_, None))).count();
        if fills > 1 {
            return Err(Ending::refused("only one [c*] repeat construct may appear in string2"));
        }
        let mut cases = first.cases();
        let mut case = cases.next();
        let mut at = 0;
        for part in &self.0 {
            if let SetPart::Class(class) = part {
                if !matches!(class.name, "lower" | "upper") {
                    let reason = "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'";
                    return Err(Ending::refused(reason));
                }
                while case.is_some_and(|case| case < at) {
                    case = cases.next();
                }
                if !is_complement && case != Some(at) {
                    return Err(Ending::refused("misaligned [:upper:] and/or [:lower:] construct"));
                }
            }
            at += part.len().unwrap_or(0);
        }
        Ok(())
    }

    /// The places of the letters of one case, in their order.
    fn cases(&self) -> impl Iterator<Item = usize> {
        let mut next = 0;
        self.0.iter().filter_map(move |part| {
            let at = next;
            next += part.len().unwrap_or(0);
            matches!(part, SetPart::Class(class) if matches!(class.name, "lower" | "upper")).then_some(at)
        })
    }
}

impl SetPart {
    fn len(self) -> Option<usize> {
        match self {
            Self::Range(from, to) => Some(usize::from(to - from) + 1),
            Self::Class(class) => Some((0..=u8::MAX).filter(|byte| (class.has)(*byte)).count()),
            Self::Repeat(_, number) => number,
            Self::Equivalent(_) => Some(1),
        }
    }
}
