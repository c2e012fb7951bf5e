//! Extended headers, read by their lengths. A value may hold any byte, line ends included; a reader
//! that goes by lines loses everything behind such a value, a path for example.

use std::io;

use eyot_archive::split_record;

use crate::failure::refused;

/// The used parts of an extended header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PaxHeader {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    /// Seconds and nanoseconds.
    pub(super) modified: Option<(i64, u32)>,
    /// Names that begin with `user.`, and values.
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

impl PaxHeader {
    pub(super) fn parse(mut rest: &[u8]) -> io::Result<Self> {
        let mut pax = Self::default();
        while !rest.is_empty() {
            let (key, value, behind) = split_record(rest).ok_or_else(malformed)?;
            pax.take(key, value)?;
            rest = behind;
        }
        Ok(pax)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(number(value)?),
            b"uid" => self.uid = Some(number(value)?),
            b"gid" => self.gid = Some(number(value)?),
            b"mtime" => self.modified = Some(time(value)?),
            key if key.starts_with(b"GNU.sparse.") => {
                return Err(refused("it has sparse entries; make it without `--sparse`"));
            }
            key => {
                if let Some(name) = key.strip_prefix(ATTRIBUTE).filter(|name| is_kept(name)) {
                    self.attributes.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }
}

/// Tells whether an attribute is kept: neither the kernel nor an overlay acts on it.
pub(crate) fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.") && !name.starts_with(b"user.overlay.") && !name.contains(&0)
}

fn malformed() -> io::Error {
    refused("it has a malformed extended header")
}

fn number(value: &[u8]) -> io::Result<u64> {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

/// Parses seconds with an optional fraction.
fn time(value: &[u8]) -> io::Result<(i64, u32)> {
    let text = std::str::from_utf8(value).map_err(|_| malformed())?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = seconds.parse().map_err(|_| malformed())?;
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    let nanoseconds = if fraction.is_empty() { 0 } else { digits.parse().map_err(|_| malformed())? };
    Ok((seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, value: &[u8]) -> Vec<u8> {
        let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let length = (1..).find(|length| length.to_string().len() + rest.len() == *length).unwrap();
        [length.to_string().as_bytes(), &rest].concat()
    }

    #[test]
    fn a_value_with_line_ends_does_not_hide_what_comes_behind_it() {
        let text = [line("SCHILY.xattr.security.capability", b"\x01\n\n\x02"), line("path", b"a/b")].concat();
        let pax = PaxHeader::parse(&text).unwrap();
        assert_eq!((pax.path.as_deref(), pax.attributes.len()), (Some(&b"a/b"[..]), 0));
    }

    #[test]
    fn of_extended_attributes_only_the_users_own_are_kept() {
        let keys = ["user.mine", "user.overlay.redirect", "trusted.overlay.opaque", "security.selinux"];
        let text: Vec<u8> = keys.iter().flat_map(|key| line(&format!("SCHILY.xattr.{key}"), b"v")).collect();
        assert_eq!(PaxHeader::parse(&text).unwrap().attributes, [(b"user.mine".to_vec(), b"v".to_vec())]);
    }

    #[test]
    fn times_have_fractions_and_what_is_malformed_is_refused() {
        assert_eq!(PaxHeader::parse(&line("mtime", b"12.5")).unwrap().modified, Some((12, 500_000_000)));
        assert_eq!(PaxHeader::parse(&line("mtime", b"-3")).unwrap().modified, Some((-3, 0)));
        for text in [&b"5 a"[..], b"99 path=x\n", b"x path=y\n", b"8 path=\n\n", b"10 size=-1\n", b"3 \n"] {
            assert!(PaxHeader::parse(text).is_err(), "{text:?}");
        }
        assert!(PaxHeader::parse(&line("GNU.sparse.major", b"1")).is_err());
    }
}
