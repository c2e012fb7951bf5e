//! One side of a copy: inside a sandbox, on the host, or our own stdin or stdout.

use std::fmt;
use std::path::PathBuf;

use eyot::{SandboxId, SandboxName};
use eyot_engine::NameInPool;

/// The source or the destination of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// `-`
    Stdio,
    /// `NAME:PATH` or `POOL/NAME:PATH`
    Sandbox {
        /// The sandbox's name, with its pool or without, or its id.
        name: String,
        /// The path as the user wrote it; `.` if it was empty.
        path: String,
    },
    /// A path on the host: everything else.
    Host(PathBuf),
}

impl Side {
    /// Parses one side. What stands before the first colon is a sandbox if it is its name, or the
    /// names of a pool and a sandbox; `./` before it makes it a path of the host.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            _ if text.is_empty() => Err("must not be empty".to_owned()),
            _ if text == "-" => Ok(Self::Stdio),
            Some((name, path)) if !name.contains('/') || is_in_pool(name) => Self::sandbox(text, name, path),
            _ => Ok(Self::Host(PathBuf::from(text))),
        }
    }

    fn sandbox(text: &str, name: &str, path: &str) -> Result<Self, String> {
        let is_name = SandboxName::parse(name).is_ok() || SandboxId::parse(name).is_ok();
        if !is_name && !is_in_pool(name) {
            return Err(format!("`{name}` is not a sandbox's name; write ./{text} for a file of the host"));
        }
        let path = if path.is_empty() { "." } else { path };
        Ok(Self::Sandbox { name: name.to_owned(), path: path.to_owned() })
    }
}

/// Tells whether a text is the name of a pool and of a sandbox in it.
fn is_in_pool(text: &str) -> bool {
    NameInPool::parse(text).is_ok_and(|named| named.pool.is_some())
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("`-`"),
            Self::Sandbox { name, path } => write!(f, "`{name}:{path}`"),
            Self::Host(path) => write!(f, "`{}`", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(name: &str, path: &str) -> Result<Side, String> {
        Ok(Side::Sandbox { name: name.to_owned(), path: path.to_owned() })
    }

    #[test]
    fn what_stands_before_a_colon_is_a_sandbox() {
        assert_eq!(Side::parse("builder:/a/b"), sandbox("builder", "/a/b"));
        assert_eq!(Side::parse("builder:a:b"), sandbox("builder", "a:b"));
        assert_eq!(Side::parse("builder:"), sandbox("builder", "."));
        assert_eq!(Side::parse("team/builder:a"), sandbox("team/builder", "a"));
        let id = format!("sb_{}", "0".repeat(32));
        assert_eq!(Side::parse(&format!("{id}:x")), sandbox(&id, "x"));
    }

    #[test]
    fn a_dot_or_a_path_before_the_colon_makes_it_a_path_of_the_host() {
        for path in ["./a:b", "/a:b", "../x:y", "./dir/a:b", "dir/sub/a:b", "Dir/a:b", "plain"] {
            assert_eq!(Side::parse(path), Ok(Side::Host(path.into())), "{path}");
        }
    }

    #[test]
    fn a_name_that_no_sandbox_can_have_is_refused_with_the_way_to_say_it() {
        assert!(Side::parse("C:\\x").unwrap_err().contains("write ./C:\\x"));
        assert!(Side::parse(":x").is_err() && Side::parse("").is_err());
    }

    #[test]
    fn a_dash_is_stdin_or_stdout() {
        assert_eq!(Side::parse("-"), Ok(Side::Stdio));
        assert_eq!(Side::parse("./-"), Ok(Side::Host("./-".into())));
    }
}
