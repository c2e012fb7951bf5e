//! The colours of names, as `LS_COLORS` sets them.

use std::collections::HashMap;

use crate::memory::programs::facts::{NodeFacts, ShownNodeKind};

/// The colours that are built in.
static USUAL: [(&str, &str); 10] = [
    ("di", "01;34"),
    ("ln", "01;36"),
    ("pi", "33"),
    ("cd", "01;33"),
    ("ex", "01;32"),
    ("su", "37;41"),
    ("sg", "30;43"),
    ("st", "37;44"),
    ("ow", "34;42"),
    ("tw", "30;42"),
];

#[derive(Debug, Clone)]
pub(super) struct Colors(HashMap<String, String>);

impl Colors {
    pub(super) fn of(env: &HashMap<String, String>) -> Self {
        let usual = USUAL.iter().map(|(kind, color)| (kind.to_string(), color.to_string()));
        let own = env.get("LS_COLORS").map_or("", String::as_str).split(':');
        let own = own.filter_map(|pair| pair.split_once('='));
        Self(usual.chain(own.map(|(kind, color)| (kind.to_owned(), color.to_owned()))).collect())
    }

    /// The colour of a name. `leads_nowhere` is said of a link whose target is missing.
    pub(super) fn color(&self, name: &[u8], facts: Option<&NodeFacts>, leads_nowhere: bool) -> Option<&str> {
        let Some(facts) = facts else { return self.get("mi") };
        if leads_nowhere && let Some(orphan) = self.get("or") {
            return Some(orphan);
        }
        let kind = match facts.kind {
            ShownNodeKind::Directory => match (facts.mode & 0o1000 != 0, facts.mode & 0o002 != 0) {
                (true, true) => "tw",
                (false, true) => "ow",
                (true, false) => "st",
                (false, false) => "di",
            },
            ShownNodeKind::Link => "ln",
            ShownNodeKind::Fifo => "pi",
            ShownNodeKind::Device(..) => "cd",
            ShownNodeKind::File if facts.mode & 0o4000 != 0 => "su",
            ShownNodeKind::File if facts.mode & 0o2000 != 0 => "sg",
            ShownNodeKind::File if facts.is_program() => "ex",
            ShownNodeKind::File => return self.by_ending(name).or_else(|| self.get("fi")),
        };
        self.get(kind)
    }

    /// Tells whether colours depend on what links lead to.
    pub(super) fn need_targets(&self) -> bool {
        ["or", "mi"].iter().any(|kind| self.get(kind).is_some())
    }

    fn get(&self, kind: &str) -> Option<&str> {
        self.0.get(kind).map(String::as_str).filter(|color| !matches!(*color, "" | "0" | "00"))
    }

    fn by_ending(&self, name: &[u8]) -> Option<&str> {
        let name = String::from_utf8_lossy(name);
        let endings = name.char_indices().filter(|(_, letter)| *letter == '.').map(|(at, _)| &name[at..]);
        endings.filter_map(|ending| self.get(&format!("*{ending}"))).next()
    }
}
