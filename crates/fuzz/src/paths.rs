//! Paths and names, as any text. An accepted one is normalised and within the limits, parses to
//! itself, and never leaves the folder that it is relative to.

use eyot::{
    ConfinedPath, MAX_NAME_BYTES, MAX_PATH_BYTES, SandboxId, SandboxName, SandboxPath, WorkspacePath,
};

/// Parses `data`, a directory and a path with a line break between them.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (directory, path) = text.split_once('\n').unwrap_or(("/workspace", &text));
    for text in [directory, path] {
        name(text);
        if let Ok(parsed) = SandboxPath::parse(text) {
            is_normal(&parsed);
        }
    }
    if let Ok(base) = SandboxPath::parse(directory) {
        resolved(&base, path);
        beneath(&base, path);
    }
}

fn is_normal(path: &SandboxPath) {
    let text = path.as_str();
    assert!(text.starts_with('/') && text.len() <= MAX_PATH_BYTES.max(1), "{text:?}");
    if !path.is_root() {
        for name in text[1..].split('/') {
            assert!(!matches!(name, "" | "." | "..") && name.len() <= MAX_NAME_BYTES, "{text:?}");
        }
    }
    assert!(!text.contains('\0'), "{text:?}");
    assert_eq!(SandboxPath::parse(&path.to_string()).as_ref().ok(), Some(path), "{text:?} is not itself");
    assert_eq!(path.parent().resolve(path.file_name()).ok().as_ref(), (!path.is_root()).then_some(path));
    assert!(path.strip_prefix(&path.parent()).is_some(), "{text:?} is not below its parent");
    assert_eq!(path.strip_prefix(path), Some(""));
}

fn resolved(base: &SandboxPath, path: &str) {
    let Ok(found) = base.resolve(path) else { return };
    is_normal(&found);
    assert_eq!(base.resolve(found.as_str()).ok().as_ref(), Some(&found));
    if let Some(rest) = found.strip_prefix(base) {
        let again = if rest.is_empty() { Ok(base.clone()) } else { base.resolve(rest) };
        assert_eq!(again.ok().as_ref(), Some(&found));
    }
}

fn beneath(base: &SandboxPath, path: &str) {
    let Ok(parsed) = WorkspacePath::parse_directory(path) else {
        assert!(WorkspacePath::parse(path).is_err(), "{path:?} is a file's path and no directory's");
        return;
    };
    let text = parsed.as_str();
    assert!(!text.starts_with('/') && !text.contains(['\\', '\0']), "{text:?}");
    assert!(text.split('/').all(|name| !matches!(name, "." | "..")), "{text:?}");
    assert_eq!(WorkspacePath::parse_directory(&parsed.to_string()).ok().as_ref(), Some(&parsed));
    assert_eq!(WorkspacePath::parse(path).is_ok(), !text.is_empty());
    if let Ok(ConfinedPath { path, beneath }) = parsed.place(base) {
        is_normal(&path);
        assert_eq!(beneath.as_ref(), Some(base));
        assert_eq!(path.strip_prefix(base), Some(text), "{path} is not where it was asked for");
    }
}

fn name(text: &str) {
    if let Ok(name) = SandboxName::parse(text) {
        assert_eq!(SandboxName::parse(&name.to_string()).ok(), Some(name.clone()));
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        assert!(name.as_str().bytes().all(good) && name.as_str().len() <= SandboxName::MAX_CHARS);
    }
    if let Ok(id) = SandboxId::parse(text) {
        assert_eq!(SandboxId::parse(&id.to_string()).ok(), Some(id.clone()));
        assert_eq!(SandboxName::parse(id.default_name().as_str()).ok(), Some(id.default_name()));
    }
}

/// Returns the fuzzer's starting inputs.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let seed = |text: &str| text.as_bytes().to_vec();
    vec![
        ("relative", seed("/workspace\na/./b//../c/")),
        ("climb", seed("/workspace\n../../etc/passwd")),
        ("absolute", seed("/\n/../x")),
        ("backslashes", seed("/workspace\na\\..\\..\\b")),
        ("names", seed("sb_0192f0a1b2c3d4e5f60718293a4b5c6d\nbuilder-1")),
        ("letters", seed("/é\n…/\u{202e}x")),
    ]
}
