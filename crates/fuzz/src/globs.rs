//! Glob patterns, as any text. A pattern is compiled, or refused with a reason, soon. A path that
//! matches without hidden names matches with them. A hidden name needs a dot that is spelt out. The
//! library below gets the whole path at once, and the walk gets it name by name: on the patterns
//! that mean the same to both, they agree.

use eyot_guest::program::fuzzing::Glob;
use globset::GlobBuilder;

/// Matches `data`: a pattern, and with a NUL before each, paths.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('\0');
    let pattern = parts.next().unwrap_or_default();
    let (plain, hidden) = (Glob::new(pattern, false), Glob::new(pattern, true));
    let (plain, hidden) = match (plain, hidden) {
        (Ok(plain), Ok(hidden)) => (plain, hidden),
        (Err(one), Err(other)) => {
            assert!(one == other && one.kind == "invalid" && !one.message.is_empty(), "{one:?}");
            return;
        }
        _ => panic!("{pattern:?} is accepted or not, depending on hidden names"),
    };
    for path in parts.take(8).filter(|path| is_relative_and_normal(path)) {
        let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        let Some((name, directories)) = names.split_last() else { continue };
        let (plainly, at_all) = (plain.is_match(directories, name), hidden.is_match(directories, name));
        assert!(at_all || !plainly, "{pattern:?} on {path:?} matches only without hidden names");
        if plainly && !pattern.contains('.') {
            assert!(names.iter().all(|name| !name.starts_with(b".")), "{pattern:?} on {path:?}");
        }
        if is_plain(pattern) {
            assert_eq!(at_all, library_says(pattern, path), "{pattern:?} on {path:?}");
        }
    }
}

fn is_relative_and_normal(path: &str) -> bool {
    path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// Tells whether the library reads the pattern as we do: cutting it at its slashes and spelling out
/// its braces changes nothing. So no class or escape holds a slash, no brace stands next to
/// characters that mean something together with it, and no segment is empty or a dot.
fn is_plain(pattern: &str) -> bool {
    let is_class_and_slash = pattern.contains('[') && pattern.contains('/');
    let is_brace_and_depth = pattern.contains('{') && pattern.contains("**");
    let has_touching_brace = pattern.as_bytes().windows(2).any(|two| {
        let is_mark = |byte: u8| b"{},".contains(&byte);
        let is_touchy = |byte: u8| b"/*.{},".contains(&byte);
        pattern.contains('{')
            && ((is_mark(two[0]) && is_touchy(two[1])) || (is_touchy(two[0]) && is_mark(two[1])))
    });
    let is_odd =
        |segment: &str| matches!(segment, "" | "." | "..") || (segment.contains("**") && segment != "**");
    !(is_class_and_slash
        || is_brace_and_depth
        || has_touching_brace
        || pattern.contains('\\')
        || pattern.split('/').any(is_odd))
}

fn library_says(pattern: &str, path: &str) -> bool {
    let mut builder = GlobBuilder::new(pattern);
    let glob = builder.literal_separator(true).backslash_escape(true).empty_alternates(true).build();
    glob.expect("the guest accepted it").compile_matcher().is_match(path)
}

/// Returns the fuzzer's starting inputs.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let seed = |parts: &[&str]| parts.join("\0").into_bytes();
    vec![
        ("star", seed(&["*.rs", "a.rs", "d/a.rs", ".rs"])),
        ("depth", seed(&["a/**/b", "a/b", "a/x/y/b", "a/.x/b"])),
        ("braces", seed(&["x{a,{b,c/d}}", "xa", "xc/d", "x{"])),
        ("class", seed(&["[!a-c]?[]]", "dx]", "ax]"])),
        ("hidden", seed(&["{.a,*}b/**", ".ab/c", "xb/.c/d"])),
        ("bomb", seed(&[&"{a,b}/".repeat(20), "a/b/a"])),
    ]
}
