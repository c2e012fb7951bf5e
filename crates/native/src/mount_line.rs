//! The lines of mountinfo: see proc_pid_mountinfo(5).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount, as its line describes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MountLine<'a> {
    pub id: u64,
    /// The number of the mount on which this one is.
    pub parent: u64,
    /// The major and minor number of the file system, which all its mounts have.
    pub device: &'a [u8],
    part: &'a [u8],
    point: &'a [u8],
    /// The name of the kind of file system.
    pub kind: &'a [u8],
    /// The options of the file system, with commas between.
    #[cfg(feature = "provider")]
    pub options: &'a [u8],
}

impl<'a> MountLine<'a> {
    /// Parses a line without its end.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let (id, parent) = (number(fields.next()?)?, number(fields.next()?)?);
        let (device, part, point) = (fields.next()?, fields.next()?, fields.next()?);
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let kind = fields.next()?;
        Some(Self {
            id,
            parent,
            device,
            part,
            point,
            kind,
            #[cfg(feature = "provider")]
            options: fields.nth(1).unwrap_or_default(),
        })
    }

    /// Returns the directory or file of the file system that is mounted.
    pub(crate) fn part(&self) -> PathBuf {
        decoded(self.part)
    }

    /// Returns the place at which it is mounted.
    pub(crate) fn point(&self) -> PathBuf {
        decoded(self.point)
    }
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Decodes the kernel's escapes: a backslash and three octal digits.
fn decoded(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, more @ ..] = rest {
        let octal =
            more.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_line_has_its_paths_as_they_are_and_any_number_of_tags() {
        for tags in ["", "shared:1 master:2 "] {
            let line = format!("951 950 254:0 /a\\134040 /b\\040c\\011d rw {tags}- ext4 /dev/vda rw,x");
            let mount = MountLine::parse(line.as_bytes()).unwrap();
            assert_eq!(
                (mount.id, mount.parent, mount.device, mount.kind),
                (951, 950, &b"254:0"[..], &b"ext4"[..])
            );
            assert_eq!((mount.part(), mount.point()), (PathBuf::from("/a\\040"), PathBuf::from("/b c\td")));
        }
        assert_eq!(decoded(b"a\\9\\"), Path::new("a\\9\\"));
    }

    #[test]
    fn rubbish_is_no_line() {
        for line in ["", "rubbish", "1 x 0:1 / / rw - tmpfs t rw", "1 0 0:1 / / rw tmpfs t rw"] {
            assert!(MountLine::parse(line.as_bytes()).is_none(), "{line}");
        }
    }
}
