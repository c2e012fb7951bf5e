//! The places where a file is cut, as the command line tells them.

use regex::bytes::Regex;

use crate::memory::programs::basic_regex;
use crate::memory::programs::run::Ending;

/// A place to cut, and the number of cuts.
#[derive(Debug)]
pub(super) struct CsplitCut {
    /// The argument that says so.
    pub argument: String,
    pub place: CutPlace,
    /// The repetitions behind the first time; `None` is as often as it can be.
    pub repeats: Option<u64>,
}

#[derive(Debug)]
pub(super) enum CutPlace {
    Line(usize),
    Match { pattern: Regex, offset: i64, is_skipped: bool },
}

/// Reads the places to cut, and what is to be warned of.
pub(super) fn cuts(patterns: &[String]) -> Result<(Vec<CsplitCut>, Vec<String>), Ending> {
    let mut cuts: Vec<CsplitCut> = Vec::new();
    let mut warnings = Vec::new();
    let mut last_line = 0;
    for pattern in patterns {
        if let Some(inside) = pattern.strip_prefix('{')
            && let Some(cut) = cuts.last_mut()
        {
            cut.repeats = repeats(pattern, inside)?;
            continue;
        }
        let place = match pattern.chars().next() {
            Some(delimiter @ ('/' | '%')) => match_of(pattern, delimiter)?,
            _ => {
                let line = pattern
                    .parse()
                    .ok()
                    .filter(|_| pattern.bytes().all(|byte| byte.is_ascii_digit()))
                    .ok_or_else(|| Ending::refused(format!("‘{pattern}’: invalid pattern")))?;
                if line == 0 {
                    let reason = format!("{pattern}: line number must be greater than zero");
                    return Err(Ending::refused(reason));
                }
                if line < last_line {
                    return Err(Ending::refused(format!(
                        "line number ‘{pattern}’ is smaller than preceding line number, {last_line}"
                    )));
                }
                if line == last_line {
                    warnings.push(format!(
                        "warning: line number ‘{pattern}’ is the same as preceding line number"
                    ));
                }
                last_line = line;
                CutPlace::Line(line)
            }
        };
        cuts.push(CsplitCut { argument: pattern.clone(), place, repeats: Some(0) });
    }
    Ok((cuts, warnings))
}

fn repeats(pattern: &str, inside: &str) -> Result<Option<u64>, Ending> {
    let Some(count) = inside.strip_suffix('}') else {
        return Err(Ending::refused(format!("‘{pattern}’: '}}' is required in repeat count")));
    };
    if count == "*" {
        return Ok(None);
    }
    let wrong = || Ending::refused(format!("‘{{{count}’}}: integer required between '{{' and '}}'"));
    count.parse().map(Some).map_err(|_| wrong())
}

fn match_of(argument: &str, delimiter: char) -> Result<CutPlace, Ending> {
    let inside = &argument[1..];
    let quoted = argument.replace('\\', "\\\\");
    let Some(end) = inside.rfind(delimiter) else {
        return Err(Ending::refused(format!("‘{quoted}’: closing delimiter '{delimiter}' missing")));
    };
    let offset = match &inside[end + 1..] {
        "" => 0,
        text => text
            .parse()
            .map_err(|_| Ending::refused(format!("‘{quoted}’: integer expected after delimiter")))?,
    };
    let pattern = basic_regex::compile(&inside[..end], false)
        .map_err(|reason| Ending::refused(format!("‘{quoted}’: invalid regular expression: {reason}")))?;
    Ok(CutPlace::Match { pattern, offset, is_skipped: delimiter == '%' })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_cut_are_read_with_their_repetitions() {
        let patterns = ["3", "{2}", "/a/b/-1", "%x%", "{*}"].map(str::to_owned);
        let (cuts, warnings) = cuts(&patterns).unwrap();
        assert!(warnings.is_empty());
        assert_eq!(cuts.iter().map(|cut| cut.repeats).collect::<Vec<_>>(), [Some(2), Some(0), None]);
        assert!(matches!(&cuts[1].place, CutPlace::Match { offset: -1, is_skipped: false, .. }));
        for wrong in ["x", "0", "/a", "/a/x", "{x"] {
            assert!(super::cuts(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
