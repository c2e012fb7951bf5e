//! The list of an archive, short or as `ls -l` prints it.

use std::io::Read;

use tar::{Entry, EntryType, Header};

use super::names::shown;
use super::options::Options;
use super::time;
use crate::memory::programs::mode::letters;

/// The columns of owner, group and size, which grow as they are needed.
pub(super) struct TarColumns {
    width: usize,
    numeric: bool,
    full_time: bool,
}

impl TarColumns {
    pub(super) fn new(options: &Options) -> Self {
        Self { width: 19, numeric: options.numeric, full_time: options.full_time }
    }

    /// The line of an entry.
    pub(super) fn line(&mut self, entry: &Entry<'_, impl Read>) -> String {
        let link = entry.link_name_bytes().unwrap_or_default();
        self.line_of(entry.header(), &entry.path_bytes(), &link)
    }

    /// The line of a header with its names.
    pub(super) fn line_of(&mut self, header: &Header, path: &[u8], link: &[u8]) -> String {
        let kind = header.entry_type();
        let id = |id: std::io::Result<u64>| id.unwrap_or(0).to_string();
        let name = |name: Option<&[u8]>, id: String| match name {
            Some(name) if !name.is_empty() && !self.numeric => String::from_utf8_lossy(name).into_owned(),
            _ => id,
        };
        let user = name(header.username_bytes(), id(header.uid()));
        let group = name(header.groupname_bytes(), id(header.gid()));
        let is_device = matches!(kind, EntryType::Char | EntryType::Block);
        let number = |number: std::io::Result<Option<u32>>| number.ok().flatten().unwrap_or(0);
        let size = if is_device {
            format!("{},{}", number(header.device_major()), number(header.device_minor()))
        } else {
            header.entry_size().unwrap_or(0).to_string()
        };
        let size = if matches!(kind, EntryType::Link | EntryType::Symlink) { "0".to_owned() } else { size };
        let used = user.len() + group.len() + size.len() + 2;
        self.width = self.width.max(used);
        let format = if self.full_time { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" };
        let modified = header.mtime().ok().and_then(|time| i64::try_from(time).ok()).unwrap_or(0);
        format!(
            "{} {user}/{group} {size:>width$} {} {}{}\n",
            mode(header),
            time::shown(modified, format),
            shown(path),
            target(kind, link),
            width = size.len() + self.width - used,
        )
    }
}

fn target(kind: EntryType, link: &[u8]) -> String {
    match kind {
        EntryType::Symlink => format!(" -> {}", shown(link)),
        EntryType::Link => format!(" link to {}", shown(link)),
        _ => String::new(),
    }
}

/// The type and the permission bits in letters.
fn mode(header: &Header) -> String {
    let mode = header.mode().unwrap_or(0);
    let kind = match header.entry_type() {
        EntryType::Directory => 'd',
        EntryType::Symlink => 'l',
        EntryType::Link => 'h',
        EntryType::Char => 'c',
        EntryType::Block => 'b',
        EntryType::Fifo => 'p',
        EntryType::Continuous => 'C',
        _ if header.path_bytes().ends_with(b"/") => 'd',
        _ => '-',
    };
    format!("{kind}{}", letters(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_gnu() {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_mode(0o4754);
        header.set_size(0);
        header.set_mtime(0);
        header.set_uid(1000);
        header.set_gid(1000);
        let mut columns = TarColumns::new(&Options::default());
        assert_eq!(
            columns.line_of(&header, b"d/a\nb", b"f"),
            "lrwsr-xr-- 1000/1000         0 1970-01-01 00:00 d/a\\nb -> f\n"
        );
        header.set_entry_type(EntryType::Regular);
        header.set_username("user").unwrap();
        header.set_groupname("user").unwrap();
        header.set_size(5);
        assert_eq!(
            columns.line_of(&header, b"f", b""),
            "-rwsr-xr-- user/user         5 1970-01-01 00:00 f\n"
        );
    }
}
