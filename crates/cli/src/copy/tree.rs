//! Reads the tar stream of a tree that comes out of a sandbox. The sandbox is not trusted: every
//! name is checked, the length of names is limited, and entries that a tree does not need are
//! refused. It reads tar's raw entries, since the library's own handling of long names reads as
//! many bytes as the stream claims.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use eyot::{Error, ErrorKind};
use eyot_archive::link_stays_inside;
use tar::{Archive, EntryType, PaxExtensions};

use super::{MAX_ENTRIES, too_large};
use crate::errors::Failure;

/// The largest extension entry, in bytes: longer than any path that Linux accepts.
const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The names from the tree's root down to this entry; none for the root itself. No name is
    /// empty, `.` or `..`, or has a slash.
    pub path: Vec<OsString>,
    /// The entry's type.
    pub kind: Kind,
    /// Permission bits, without setuid, setgid and sticky.
    pub mode: u32,
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file of this many bytes.
    File(u64),
    /// A symbolic link with this target, unchecked.
    Symlink(OsString),
    /// Another name of this entry, in the form of [`TreeEntry::path`].
    HardLink(Vec<OsString>),
    /// Something without content that can be copied: a device, a FIFO, …
    Special,
}

impl TreeEntry {
    /// Returns the path as text, for messages.
    pub fn path_text(&self) -> String {
        self.path.iter().collect::<PathBuf>().to_string_lossy().into_owned()
    }

    /// Returns the path and the reason if the entry is not copied.
    pub fn left_out(&self) -> Option<String> {
        let parents = self.path.len().saturating_sub(1);
        let why = match &self.kind {
            Kind::Special => "neither a file, a directory nor a link".to_owned(),
            Kind::Symlink(target) if !link_stays_inside(target.as_bytes(), parents) => {
                format!("a symbolic link that leads out of the tree, to {}", target.display())
            }
            _ => return None,
        };
        Some(format!("{}: {why}", self.path_text()))
    }
}

/// Calls `visit` with every entry of the tree and its content. The stream's names begin with
/// `root`. More than `max_bytes` of content are refused.
pub fn read_tree(
    stream: impl Read,
    root: &str,
    max_bytes: u64,
    mut visit: impl FnMut(TreeEntry, &mut dyn Read) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut archive = Archive::new(stream);
    let entries = archive.entries().map_err(broken)?.raw(true);
    let mut bytes_left = max_bytes;
    let mut long = LongNames::default();
    for (index, raw) in (0..).zip(entries) {
        let mut raw = raw.map_err(broken)?;
        if index >= MAX_ENTRIES {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("there are more than {MAX_ENTRIES} entries"),
            )
            .into());
        }
        if long.takes(&mut raw)? {
            continue;
        }
        let entry = parse(&raw, std::mem::take(&mut long), root)?;
        if let Kind::File(size) = entry.kind {
            bytes_left = bytes_left.checked_sub(size).ok_or_else(|| too_large(max_bytes))?;
        }
        visit(entry, &mut raw)?;
    }
    Ok(())
}

/// The long names in extension entries, for the entry that follows them.
#[derive(Default)]
struct LongNames {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

impl LongNames {
    /// Takes the names of an extension entry. Returns `false` for any other entry.
    fn takes<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>) -> Result<bool, Failure> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.path = Some(without_nul(read_extension(entry)?)),
            EntryType::GNULongLink => self.link = Some(without_nul(read_extension(entry)?)),
            EntryType::XHeader => self.take_pax(&read_extension(entry)?)?,
            EntryType::XGlobalHeader => drop(read_extension(entry)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_pax(&mut self, records: &[u8]) -> Result<(), Failure> {
        for record in PaxExtensions::new(records) {
            let record = record.map_err(broken)?;
            match record.key_bytes() {
                b"path" => self.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.link = Some(record.value_bytes().to_vec()),
                // The raw reader goes by the header; a second opinion about where the next entry begins smuggles files.
                b"size" => return Err(refused("a size that contradicts its header", "")),
                _ => {}
            }
        }
        Ok(())
    }
}

fn read_extension<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Vec<u8>, Failure> {
    if entry.size() > MAX_EXTENSION_BYTES {
        return Err(refused("a name that is too long", ""));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(broken)?;
    Ok(bytes)
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn parse<R: Read>(raw: &tar::Entry<'_, R>, long: LongNames, root: &str) -> Result<TreeEntry, Failure> {
    let header = raw.header();
    let name = long.path.unwrap_or_else(|| header.path_bytes().into_owned());
    let link = || match long.link {
        Some(link) => link,
        None => header.link_name_bytes().unwrap_or_default().into_owned(),
    };
    let kind = match header.entry_type() {
        EntryType::Directory => Kind::Directory,
        EntryType::Regular | EntryType::Continuous => Kind::File(raw.size()),
        EntryType::Symlink => Kind::Symlink(OsString::from_vec(link())),
        EntryType::Link => Kind::HardLink(names(&link(), root)?),
        _ => Kind::Special,
    };
    Ok(TreeEntry { path: names(&name, root)?, kind, mode: header.mode().map_err(broken)? & 0o777 })
}

/// Returns the names below the root. Our guest never sends another path, so a stream with one is
/// refused.
fn names(path: &[u8], root: &str) -> Result<Vec<OsString>, Failure> {
    let refuse = |why| Err(refused(why, &String::from_utf8_lossy(path)));
    if path.first() == Some(&b'/') {
        return refuse("an absolute path");
    }
    if path.contains(&0) {
        return refuse("a null byte in a name");
    }
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    if names.clone().any(|name| name == b"..") {
        return refuse("a path with `..`");
    }
    match names.next() {
        Some(first) if first == root.as_bytes() => {
            Ok(names.map(|name| OsStr::from_bytes(name).to_owned()).collect())
        }
        _ => refuse("a path outside of what was asked for"),
    }
}

fn refused(what: &str, path: &str) -> Failure {
    let place = if path.is_empty() { String::new() } else { format!(": `{path}`") };
    Error::new(ErrorKind::Permission, format!("the sandbox sent {what}{place}")).into()
}

fn broken(error: io::Error) -> Failure {
    Error::new(ErrorKind::Unavailable, "what the sandbox sent can't be read").with_source(error).into()
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    fn header(kind: EntryType, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o4755);
        header.set_size(size);
        header
    }

    /// Sets a path exactly as given: `Builder` would refuse the paths of these tests.
    fn with_path(mut header: Header, path: &str, link: &str) -> Header {
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..path.len()].copy_from_slice(path.as_bytes());
        gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        header
    }

    fn archive(entries: &[(EntryType, &str, &str, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (kind, path, link, content) in entries {
            let header = with_path(header(*kind, content.len() as u64), path, link);
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn read(bytes: &[u8], max_bytes: u64) -> Result<Vec<(TreeEntry, Vec<u8>)>, Failure> {
        let mut seen = Vec::new();
        read_tree(bytes, "root", max_bytes, |entry, content| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).unwrap();
            seen.push((entry, bytes));
            Ok(())
        })?;
        Ok(seen)
    }

    fn refusal(entries: &[(EntryType, &str, &str, &[u8])]) -> String {
        match read(&archive(entries), 1000) {
            Err(Failure::Error { error, .. }) => error.to_string(),
            other => panic!("refused, not {other:?}"),
        }
    }

    #[test]
    fn a_tree_is_read_with_names_below_its_root_and_without_setuid() {
        let bytes = archive(&[
            (EntryType::Directory, "root/", "", b""),
            (EntryType::Regular, "root/./a//b", "", b"hi"),
            (EntryType::Symlink, "root/l", "a/b", b""),
            (EntryType::Link, "root/h", "root/a/b", b""),
        ]);
        let seen = read(&bytes, 1000).unwrap();
        assert_eq!(seen[0].0.path, Vec::<OsString>::new());
        assert_eq!(
            seen[1].0,
            TreeEntry { path: vec!["a".into(), "b".into()], kind: Kind::File(2), mode: 0o755 }
        );
        assert_eq!(seen[1].1, b"hi");
        assert_eq!(seen[2].0.kind, Kind::Symlink("a/b".into()));
        assert_eq!(seen[3].0.kind, Kind::HardLink(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn f4_absolute_paths_dots_and_foreign_roots_are_refused_and_named() {
        for path in ["/etc/passwd", "root/../../x", "..", "other/x", "root/a/.."] {
            assert!(refusal(&[(EntryType::Regular, path, "", b"")]).contains(path), "{path}");
        }
        assert!(refusal(&[(EntryType::Link, "root/h", "/etc/shadow", b"")]).contains("/etc/shadow"));
    }

    #[test]
    fn f4_a_pax_path_is_checked_like_any_other_and_a_pax_size_is_refused() {
        let path = b"26 path=root/../../etc/pw\n";
        let bad_path = [(EntryType::XHeader, "x", "", &path[..]), (EntryType::Regular, "root/x", "", b"")];
        assert!(refusal(&bad_path).contains("`..`"));
        let size =
            [(EntryType::XHeader, "x", "", &b"10 size=5\n"[..]), (EntryType::Regular, "root/x", "", b"")];
        assert!(refusal(&size).contains("size"));
    }

    #[test]
    fn f4_a_name_that_claims_gigabytes_is_refused_before_it_is_read() {
        let mut bytes = archive(&[]);
        bytes.clear();
        bytes.extend_from_slice(
            with_path(header(EntryType::GNULongName, 5 << 30), "././@LongLink", "").as_bytes(),
        );
        let Err(Failure::Error { error, .. }) = read(&bytes, 1000) else { panic!("refused") };
        assert!(error.to_string().contains("too long"), "{error}");
    }

    #[test]
    fn f4_more_bytes_than_the_limit_are_refused() {
        assert!(read(&archive(&[(EntryType::Regular, "root/a", "", &[0; 1000])]), 1000).is_ok());
        let two = [
            (EntryType::Regular, "root/a", "", &[0; 600][..]),
            (EntryType::Regular, "root/b", "", &[0; 600]),
        ];
        assert!(refusal(&two).contains("limit of 1000 bytes"));
    }

    #[test]
    fn long_names_are_read() {
        let name = format!("root/{}", "n".repeat(200));
        let mut builder = Builder::new(Vec::new());
        builder.append_data(&mut header(EntryType::Regular, 0), &name, io::empty()).unwrap();
        builder.append_link(&mut header(EntryType::Symlink, 0), "root/l", "t".repeat(300)).unwrap();
        let seen = read(&builder.into_inner().unwrap(), 1000).unwrap();
        assert_eq!(seen[0].0.path, [OsString::from("n".repeat(200))]);
        assert_eq!(seen[1].0.kind, Kind::Symlink("t".repeat(300).into()));
    }
}
