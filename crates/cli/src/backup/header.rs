//! The tar headers and PAX records of an entry: everything about a file but its content. Names,
//! targets and extended attributes are arbitrary bytes of any length, and times have nanoseconds.
//! GNU tar can read what is written here. Records are read by their lengths, never by lines, since
//! attributes may contain any byte.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use eyot_archive::split_record;
use tar::{EntryType, Header};

/// The prefix of extended attributes, as GNU tar and others have it.
const ATTRIBUTE: &str = "SCHILY.xattr.";
/// The prefix of attributes whose names can't be keys. Their names are in base64.
const ODD_ATTRIBUTE: &str = "EYOT.xattr.";
const NAME_BYTES: usize = 100;

/// The metadata of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryMetadata {
    /// The path below the state folder.
    pub path: OsString,
    pub kind: Kind,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// The time of modification: seconds and nanoseconds since 1970.
    pub modified: (i64, u32),
    pub attributes: Vec<(OsString, Vec<u8>)>,
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File {
        bytes: u64,
    },
    Directory,
    Symlink(OsString),
    /// Another name of a file that came before.
    HardLink(OsString),
    Fifo,
    /// The mark of an overlay that a lower entry was removed: a device with the number 0.
    Whiteout,
}

impl Kind {
    fn entry_type(&self) -> EntryType {
        match self {
            Self::File { .. } => EntryType::Regular,
            Self::Directory => EntryType::Directory,
            Self::Symlink(_) => EntryType::Symlink,
            Self::HardLink(_) => EntryType::Link,
            Self::Fifo => EntryType::Fifo,
            Self::Whiteout => EntryType::Char,
        }
    }
}

impl EntryMetadata {
    /// Writes the records that come before the entry.
    pub fn records(&self) -> Vec<u8> {
        let mut records = record("path", self.path.as_bytes());
        if let Kind::Symlink(target) | Kind::HardLink(target) = &self.kind {
            records.extend(record("linkpath", target.as_bytes()));
        }
        let (seconds, nanoseconds) = self.modified;
        records.extend(record("mtime", format!("{seconds}.{nanoseconds:09}").as_bytes()));
        for (name, value) in &self.attributes {
            let key = match name.to_str().filter(|name| !name.contains('=')) {
                Some(name) => format!("{ATTRIBUTE}{name}"),
                None => format!("{ODD_ATTRIBUTE}{}", BASE64_URL_SAFE_NO_PAD.encode(name.as_bytes())),
            };
            records.extend(record(&key, value));
        }
        records
    }

    /// Writes the entry's own header.
    pub fn header(&self) -> Header {
        let mut header = Header::new_ustar();
        header.set_entry_type(self.kind.entry_type());
        put_name(&mut header, self.path.as_bytes());
        if let Some(ustar) = header.as_ustar_mut() {
            ustar.set_device_major(0);
            ustar.set_device_minor(0);
        }
        header.set_mode(self.mode & 0o7777);
        header.set_uid(self.uid.into());
        header.set_gid(self.gid.into());
        header.set_mtime(u64::try_from(self.modified.0).unwrap_or(0));
        header.set_size(if let Kind::File { bytes } = self.kind { bytes } else { 0 });
        header.set_cksum();
        header
    }

    /// Reads an entry's header, and the records that came before it.
    pub fn read(header: &Header, records: &[u8]) -> io::Result<Self> {
        let mut about = Self {
            path: OsString::from_vec(header.path_bytes().into_owned()),
            kind: Kind::Directory,
            mode: header.mode()? & 0o7777,
            uid: id(header.uid()?)?,
            gid: id(header.gid()?)?,
            modified: (i64::try_from(header.mtime()?).map_err(damaged)?, 0),
            attributes: Vec::new(),
        };
        let mut target = header.link_name_bytes().map(|name| OsString::from_vec(name.into_owned()));
        let mut rest = records;
        while !rest.is_empty() {
            let (key, value, after) = first_record(rest)?;
            rest = after;
            match key {
                "path" => about.path = OsStr::from_bytes(value).to_owned(),
                "linkpath" => target = Some(OsStr::from_bytes(value).to_owned()),
                "mtime" => about.modified = time(value)?,
                key => about.attributes.extend(attribute(key, value)?),
            }
        }
        let target = || target.clone().ok_or_else(|| damaged("a link without a target"));
        about.kind = match header.entry_type() {
            EntryType::Regular => Kind::File { bytes: header.size()? },
            EntryType::Directory => Kind::Directory,
            EntryType::Symlink => Kind::Symlink(target()?),
            EntryType::Link => Kind::HardLink(target()?),
            EntryType::Fifo => Kind::Fifo,
            EntryType::Char if (header.device_major()?, header.device_minor()?) == (Some(0), Some(0)) => {
                Kind::Whiteout
            }
            _ => return Err(damaged("an entry that is neither file, directory, link nor pipe")),
        };
        Ok(about)
    }
}

/// Writes the header of the records themselves.
pub(super) fn records_header(bytes: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    put_name(&mut header, b"about");
    header.set_mode(0o600);
    header.set_size(bytes);
    header.set_cksum();
    header
}

/// Writes the name where older readers look for it, as much of it as fits.
fn put_name(header: &mut Header, name: &[u8]) {
    let field = &mut header.as_old_mut().name;
    let length = name.len().min(NAME_BYTES);
    field[..length].copy_from_slice(&name[..length]);
}

/// Writes a record: `LENGTH KEY=VALUE\n`, where the length counts itself.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + " =\n".len();
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

fn first_record(records: &[u8]) -> io::Result<(&str, &[u8], &[u8])> {
    let parse = || {
        let (key, value, after) = split_record(records)?;
        Some((std::str::from_utf8(key).ok()?, value, after))
    };
    parse().ok_or_else(|| damaged("what describes an entry can't be read"))
}

fn attribute(key: &str, value: &[u8]) -> io::Result<Option<(OsString, Vec<u8>)>> {
    let name = match (key.strip_prefix(ATTRIBUTE), key.strip_prefix(ODD_ATTRIBUTE)) {
        (Some(name), _) => name.into(),
        (_, Some(name)) => OsString::from_vec(BASE64_URL_SAFE_NO_PAD.decode(name).map_err(damaged)?),
        // Of a later version, or another program: an entry is not all that it says.
        _ => return Err(damaged(format!("`{key}` is not known"))),
    };
    Ok(Some((name, value.to_vec())))
}

fn time(text: &[u8]) -> io::Result<(i64, u32)> {
    let text = std::str::from_utf8(text).map_err(damaged)?;
    let (seconds, nanoseconds) = text.split_once('.').unwrap_or((text, "0"));
    let nanoseconds: u32 = nanoseconds.parse().map_err(damaged)?;
    let seconds = seconds.parse().map_err(damaged)?;
    if nanoseconds < 1_000_000_000 { Ok((seconds, nanoseconds)) } else { Err(damaged("a time that is none")) }
}

fn id(number: u64) -> io::Result<u32> {
    // The last one means none.
    u32::try_from(number).ok().filter(|id| *id != u32::MAX).ok_or_else(|| damaged("an owner that is none"))
}

/// Returns the error for a file that this program did not write, or that was damaged.
pub(super) fn damaged(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(kind: Kind) -> EntryMetadata {
        let attributes = vec![
            ("user.a".into(), b"\n1 x=\n".to_vec()),
            (OsString::from_vec(b"user.odd=\xff\n".to_vec()), vec![0, 255]),
        ];
        let path = OsString::from_vec([&b"sandboxes/\xff\n"[..], &[b'x'; 300]].concat());
        EntryMetadata {
            path,
            kind,
            mode: 0o4755,
            uid: 0x7fff_ffff,
            gid: 7,
            modified: (-5, 999_999_999),
            attributes,
        }
    }

    #[test]
    fn whatever_a_file_is_called_and_has_comes_back() {
        let target = OsString::from_vec([b'y'; 5000].to_vec());
        let kinds = [
            Kind::File { bytes: 1 << 40 },
            Kind::Directory,
            Kind::Symlink(target.clone()),
            Kind::HardLink(target),
            Kind::Fifo,
            Kind::Whiteout,
        ];
        for kind in kinds {
            let about = about(kind);
            assert_eq!(EntryMetadata::read(&about.header(), &about.records()).unwrap(), about);
        }
    }

    #[test]
    fn records_that_lie_about_their_length_and_unknown_entries_are_refused() {
        let header = about(Kind::Directory).header();
        for records in
            ["x", "5 a=b", "99 path=a\n", "3 \n", "0 path=a\n", "8 path=a\n", "10 nope=1\n", " path=a\n"]
        {
            assert!(EntryMetadata::read(&header, records.as_bytes()).is_err(), "{records}");
        }
        let mut device = about(Kind::Whiteout).header();
        device.set_device_minor(1).unwrap();
        device.set_cksum();
        assert!(EntryMetadata::read(&device, b"").is_err());
        let mut block = header;
        block.set_entry_type(EntryType::Block);
        assert!(EntryMetadata::read(&block, b"").is_err());
    }
}
