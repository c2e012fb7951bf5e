//! Names of members: those that patterns pass over, those that are wanted, and what they lose.

use globset::{GlobBuilder, GlobMatcher};

/// A pattern of `--exclude` or `--wildcards`, whose `*` matches slashes as well.
#[derive(Debug, Clone)]
pub(super) struct TarPattern {
    pub text: String,
    matcher: Option<GlobMatcher>,
}

impl TarPattern {
    /// A text whose special characters count, or do not. One that is no pattern is taken as it is.
    pub(super) fn new(text: &str, is_wild: bool) -> Self {
        let glob = text.replace('{', "[{]").replace('}', "[}]");
        let matcher = GlobBuilder::new(&glob).literal_separator(false).backslash_escape(true).build();
        let text = text.to_owned();
        Self { matcher: matcher.ok().filter(|_| is_wild).map(|glob| glob.compile_matcher()), text }
    }

    fn is(&self, name: &str) -> bool {
        self.matcher.as_ref().map_or(self.text == name, |matcher| matcher.is_match(name))
    }

    /// Tells whether it matches a name or a directory that the name is in, from any segment on.
    pub(super) fn excludes(&self, name: &str) -> bool {
        let starts = std::iter::once(0).chain(name.match_indices('/').map(|(at, _)| at + 1));
        starts.into_iter().any(|start| self.leads(&name[start..]))
    }

    /// Tells whether it matches a name or a directory that the name is in.
    pub(super) fn leads(&self, name: &str) -> bool {
        let ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
        ends.into_iter().any(|end| self.is(&name[..end]))
    }
}

/// The part of a name that may not be in an archive: a slash at its beginning, or everything to the
/// last `..`.
pub(super) fn unsafe_prefix(name: &[u8]) -> usize {
    let mut at = 0;
    let mut prefix = name.iter().take_while(|byte| **byte == b'/').count();
    for segment in name.split(|byte| *byte == b'/') {
        let end = at + segment.len();
        if segment == b".." {
            prefix = end + name[end..].iter().take_while(|byte| **byte == b'/').count();
        }
        at = end + 1;
    }
    prefix
}

/// A name without its first segments, or `None` if it has no more than those.
pub(super) fn stripped(name: &[u8], count: usize) -> Option<&[u8]> {
    let mut left = name;
    for _ in 0..count {
        let at = left.iter().position(|byte| *byte == b'/')?;
        let slashes = left[at..].iter().take_while(|byte| **byte == b'/').count();
        left = &left[at + slashes..];
    }
    Some(left).filter(|left| !left.is_empty())
}

/// A name as it is printed: control characters and backslashes are spelt out.
pub(super) fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '\\' => text.push_str("\\\\"),
                letter if letter.is_control() => text += &format!("\\{:03o}", u32::from(letter)),
                letter => text.push(letter),
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\{byte:03o}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_from_any_segment_on_and_take_what_is_inside() {
        for (pattern, name, excluded) in [
            ("*.o", "d/e/a.o", true),
            ("*.o", "d/a.object", false),
            ("e", "d/e/f", true),
            ("d/e", "x/d/e/f", true),
            ("node_modules", "node_modules_x/f", false),
            ("d/*", "d/e/f", true),
            ("d/", "d/f", false),
            ("{a}", "{a}", true),
        ] {
            assert_eq!(TarPattern::new(pattern, true).excludes(name), excluded, "{pattern} {name}");
        }
    }

    #[test]
    fn unsafe_prefixes_go() {
        for (name, left) in
            [("/a/b", "a/b"), ("../x", "x"), ("a/../../b/c", "b/c"), ("a/b", "a/b"), ("a/..", "")]
        {
            assert_eq!(&name[unsafe_prefix(name.as_bytes())..], left);
        }
        assert_eq!(stripped(b"a/b/c", 1), Some(&b"b/c"[..]));
        assert_eq!(stripped(b"a/", 1), None);
        assert_eq!(stripped(b"a", 1), None);
    }
}
