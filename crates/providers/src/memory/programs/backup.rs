//! Backups of files that would be replaced: `-b`, `--backup`, `-S`.

use super::run::{Ending, ProgramRun};
use crate::memory::walk::Last;

/// The kind of backups that a program makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackupKind {
    Simple,
    Numbered,
    /// Numbered if there are such already.
    Existing,
}

/// The backups that a program makes, if it makes any.
#[derive(Debug, Default)]
pub(super) struct Backup {
    kind: Option<BackupKind>,
    suffix: Option<String>,
}

impl Backup {
    /// Chooses the kind by its name.
    pub(super) fn choose(&mut self, name: Option<&str>) -> Result<(), Ending> {
        self.kind = match name {
            None | Some("existing" | "nil") => Some(BackupKind::Existing),
            Some("simple" | "never") => Some(BackupKind::Simple),
            Some("numbered" | "t") => Some(BackupKind::Numbered),
            Some("none" | "off") => None,
            Some(other) => {
                return Err(Ending::usage(format!("invalid argument ‘{other}’ for ‘backup type’")));
            }
        };
        Ok(())
    }

    pub(super) fn set_suffix(&mut self, suffix: String) {
        self.suffix = Some(suffix);
        self.kind.get_or_insert(BackupKind::Existing);
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.kind.is_some()
    }

    /// Moves what has a name to its backup's name, and returns that.
    pub(super) fn make(&self, run: &ProgramRun<'_>, name: &str) -> eyot::Result<Option<String>> {
        let Some(kind) = self.kind else { return Ok(None) };
        let is_there = |name: &str| run.kind(name, Last::Keep).is_ok();
        if !is_there(name) {
            return Ok(None);
        }
        let numbered = |number: u32| format!("{name}.~{number}~");
        let is_numbered =
            kind == BackupKind::Numbered || (kind == BackupKind::Existing && is_there(&numbered(1)));
        let to = if is_numbered {
            (1..).map(numbered).find(|name| !is_there(name)).unwrap_or_default()
        } else {
            format!("{name}{}", self.suffix.as_deref().filter(|suffix| !suffix.is_empty()).unwrap_or("~"))
        };
        let mut held = run.hold();
        let (from, there) = (run.find(&held, name, Last::Keep)?, run.find(&held, &to, Last::Keep)?);
        held.rename(&from, &there)?;
        Ok(Some(to))
    }
}

/// The end of a line of `-v` where there is a backup.
pub(super) fn noted(backup: Option<&str>) -> String {
    backup.map_or_else(String::new, |name| format!(" (backup: {})", super::quoting::quoted(name)))
}
