//! The argument that names a path in a sandbox, wherever the sandbox is: on this host, by any of its providers, or on
//! a server.

use std::fmt;

use eyot::{SandboxId, SandboxName};
use eyot_providers::registry::find;
use eyot_providers::row::ProviderRow;

/// The word for the sandboxes of the server that the command names.
const SERVER: &str = "server";

const FORM: &str = "must be NAME:PATH, POOL/NAME:PATH, PROVIDER/NAME:PATH or PROVIDER/POOL/NAME:PATH; \
                    `eyot cp` copies from and to the host";

/// The holder of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxHolder {
    /// The server that the command names.
    Server,
    /// A provider.
    Provider(&'static ProviderRow),
}

/// The argument that names a path in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceArg {
    /// The holder, if it was named.
    pub holder: Option<SandboxHolder>,
    /// The sandbox's name, with its pool or without, or its id.
    pub name: String,
    /// The path in it; `.` if it was empty.
    pub path: String,
}

impl SandboxHolder {
    /// Parses the name of a provider, or the word for the server.
    fn parse(word: &str) -> Result<Self, String> {
        if word == SERVER {
            return Ok(Self::Server);
        }
        let row = find(word).map_err(|error| {
            let there_is = error.hint().map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("{error}{there_is}, and `{SERVER}` for a server's sandboxes")
        });
        row.map(Self::Provider)
    }

    /// Returns the word that names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => SERVER,
            Self::Provider(row) => row.name,
        }
    }
}

impl PlaceArg {
    /// Parses `[PROVIDER/][POOL/]NAME:PATH`. Of two words before the colon the first is a provider if there is one of
    /// that name; whether there is a pool of that name, too, is not known here.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (named, path) = text.split_once(':').ok_or(FORM)?;
        let words: Vec<&str> = named.split('/').collect();
        let (holder, name) = match words[..] {
            [name] if is_name(name) || is_id(name) => (None, name.to_owned()),
            [holder, name] if is_name(holder) && is_id(name) => {
                (Some(SandboxHolder::parse(holder)?), name.to_owned())
            }
            [first, name] if is_name(first) && is_name(name) => match SandboxHolder::parse(first) {
                Ok(holder) => (Some(holder), name.to_owned()),
                Err(_) => (None, named.to_owned()),
            },
            [holder, pool, name] if [holder, pool, name].into_iter().all(is_name) => {
                (Some(SandboxHolder::parse(holder)?), format!("{pool}/{name}"))
            }
            _ => return Err(FORM.to_owned()),
        };
        let path = if path.is_empty() { "." } else { path };
        Ok(Self { holder, name, path: path.to_owned() })
    }

    /// Tells whether the first of its two words could be a pool as well.
    pub fn may_mean_a_pool(&self) -> bool {
        self.holder.is_some() && is_name(&self.name)
    }
}

fn is_name(word: &str) -> bool {
    SandboxName::parse(word).is_ok()
}

fn is_id(word: &str) -> bool {
    SandboxId::parse(word).is_ok()
}

impl fmt::Display for PlaceArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, name, path } = self;
        match holder {
            Some(holder) => write!(f, "`{}/{name}:{path}`", holder.word()),
            None => write!(f, "`{name}:{path}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Option<&'static str>, String, String) {
        let PlaceArg { holder, name, path } = PlaceArg::parse(text).unwrap();
        (holder.map(SandboxHolder::word), name, path)
    }

    #[test]
    fn a_place_has_a_provider_and_a_pool_or_neither() {
        let place = |holder, name: &str, path: &str| (holder, name.to_owned(), path.to_owned());
        assert_eq!(parsed("web:/a:b"), place(None, "web", "/a:b"));
        assert_eq!(parsed("web:"), place(None, "web", "."));
        assert_eq!(parsed("team/web:a"), place(None, "team/web", "a"));
        assert_eq!(parsed("docker/web:a"), place(Some("docker"), "web", "a"));
        assert_eq!(parsed("memory/team/web:a"), place(Some("memory"), "team/web", "a"));
        assert_eq!(parsed("native/native/web:a"), place(Some("native"), "native/web", "a"));
        assert_eq!(parsed("server/team/web:a"), place(Some("server"), "team/web", "a"));
        let id = format!("sb_{}", "0".repeat(32));
        assert_eq!(parsed(&format!("{id}:a")), place(None, &id, "a"));
        assert_eq!(parsed(&format!("native/{id}:a")), place(Some("native"), &id, "a"));
    }

    #[test]
    fn only_the_first_of_two_words_could_be_a_pool() {
        let may = |text: &str| PlaceArg::parse(text).unwrap().may_mean_a_pool();
        assert!(may("docker/web:a") && may("server/web:a"));
        let id = format!("sb_{}", "0".repeat(32));
        for text in ["web:a", "team/web:a", "docker/team/web:a", &format!("docker/{id}:a")] {
            assert!(!may(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused_with_what_may_be_written() {
        for text in
            ["", "web", "-", "./d:x", "/a:b", ":x", "a/b/c/d:x", "Web:x", "team/:x", "/web:x", "a//b:x"]
        {
            let refused = PlaceArg::parse(text).unwrap_err();
            assert!(
                refused.contains("PROVIDER/POOL/NAME:PATH") && refused.contains("eyot cp"),
                "{text}: {refused}"
            );
        }
        let unknown = PlaceArg::parse("dokcer/team/web:x").unwrap_err();
        assert!(
            unknown.starts_with("there is no provider `dokcer`: there is docker, and `server`"),
            "{unknown}"
        );
    }
}
