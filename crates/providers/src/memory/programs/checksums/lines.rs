//! The lines of a list of checksums.

use super::digests::{ALGORITHMS, Algorithm, MAX_BLAKE2B_BITS};

/// A line of a list: the file, and the checksum that it should have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExpectedSum {
    pub algorithm: Algorithm,
    pub bits: usize,
    pub sum: String,
    pub file: String,
}

/// The lines of one list are alike.
pub(super) struct LineReader {
    /// The algorithm, unless every line tells its own.
    pub algorithm: Option<Algorithm>,
    /// One blank alone stands before the names; it shows at the first line.
    pub has_one_blank: Option<bool>,
}

/// Writes a name in one line, and the mark that says that this was needed.
pub(super) fn escaped(name: &str) -> (&'static str, String) {
    if !name.contains(['\\', '\n', '\r']) {
        return ("", name.to_owned());
    }
    ("\\", name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r"))
}

fn unescaped(name: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

impl LineReader {
    /// Reads a line. `None` is one that is not as it should be.
    pub(super) fn read(&mut self, line: &str) -> Option<ExpectedSum> {
        let line = line.trim_start_matches([' ', '\t']);
        let (is_escaped, line) = match line.strip_prefix('\\') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let mut expected = self.tagged(line).or_else(|| self.untagged(line))?;
        if is_escaped {
            expected.file = unescaped(&expected.file)?;
        }
        Some(expected)
    }

    /// Reads `SHA256 (FILE) = SUM`.
    fn tagged(&self, line: &str) -> Option<ExpectedSum> {
        let mut named = ALGORITHMS.iter().filter_map(|(_, tag, algorithm)| {
            let rest = line.strip_prefix(tag)?;
            rest.starts_with([' ', '(', '-']).then_some((*algorithm, rest))
        });
        let (algorithm, mut rest) = named.next_back()?;
        if algorithm.is_plain_sum() || self.algorithm.is_some_and(|wanted| wanted != algorithm) {
            return None;
        }
        let mut bits = MAX_BLAKE2B_BITS;
        if let Some(length) = rest.strip_prefix('-') {
            let digits = length.find([' ', '('])?;
            bits = length[..digits].parse().ok()?;
            rest = &length[digits..];
        }
        let inside = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('(')?;
        let (file, behind) = inside.rsplit_once(')')?;
        let sum = behind.trim_start_matches([' ', '\t']).strip_prefix('=')?;
        let sum = sum.trim_start_matches([' ', '\t']);
        let is_sum = (1..=MAX_BLAKE2B_BITS).contains(&bits)
            && bits.is_multiple_of(8)
            && is_hexadecimal(sum, algorithm.letters(bits));
        is_sum.then(|| ExpectedSum { algorithm, bits, sum: sum.to_owned(), file: file.to_owned() })
    }

    /// Reads `SUM  FILE`.
    fn untagged(&mut self, line: &str) -> Option<ExpectedSum> {
        let algorithm = self.algorithm?;
        let (sum, rest) = line.split_once([' ', '\t'])?;
        let bits = sum.len() * 4;
        let letters = algorithm.letters(bits);
        let is_sum = is_hexadecimal(sum, letters)
            && (algorithm != Algorithm::Blake2b || bits % 8 == 0 && bits <= MAX_BLAKE2B_BITS && bits > 0)
            && (algorithm != Algorithm::Sha512 || bits == 512);
        if !is_sum {
            return None;
        }
        let has_one_blank = !rest.starts_with([' ', '*']) || rest.len() == 1;
        let file = match self.has_one_blank {
            Some(false) if has_one_blank => return None,
            Some(true) => rest,
            _ if has_one_blank => rest,
            _ => &rest[1..],
        };
        self.has_one_blank.get_or_insert(has_one_blank);
        (!file.is_empty()).then(|| ExpectedSum {
            algorithm,
            bits,
            sum: sum.to_owned(),
            file: file.to_owned(),
        })
    }
}

fn is_hexadecimal(sum: &str, letters: usize) -> bool {
    sum.len() == letters && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "5d41402abc4b2a76b9719d911017c592";

    fn file(algorithm: Option<Algorithm>, line: &str) -> Option<String> {
        LineReader { algorithm, has_one_blank: None }.read(line).map(|expected| expected.file)
    }

    #[test]
    fn lines_of_all_kinds_are_read() {
        let md5 = Some(Algorithm::Md5);
        for (line, name) in [
            (format!("{SUM}  a b"), Some("a b")),
            (format!("{SUM} *a"), Some("a")),
            (format!("{SUM} a"), Some("a")),
            (format!("\\{SUM}  a\\nb"), Some("a\nb")),
            (format!("MD5 (a (1)) = {SUM}"), Some("a (1)")),
            (format!("MD5(a)= {SUM}"), Some("a")),
            (format!("SHA1 (a) = {SUM}"), None),
            (format!("{SUM}0  a"), None),
            ("junk".to_owned(), None),
        ] {
            assert_eq!(file(md5, &line).as_deref(), name, "{line}");
        }
        assert_eq!(file(None, &format!("BLAKE2b-128 (a) = {SUM}")).as_deref(), Some("a"));
        assert_eq!(file(None, &format!("{SUM}  a")), None);
    }

    #[test]
    fn a_name_in_one_line_comes_back() {
        let (mark, name) = escaped("a\\\nb");
        assert_eq!((mark, unescaped(&name).as_deref()), ("\\", Some("a\\\nb")));
    }
}
