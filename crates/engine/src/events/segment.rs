//! Segments: files of lines, each named after the number of its first event.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::line::MAX_LINE_BYTES;

const SUFFIX: &str = ".jsonl";
const CHUNK: usize = 64 * 1024;

/// The file of the segment that begins with event `first`. Names sort as their numbers do.
pub(super) fn path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}{SUFFIX}"))
}

/// The first numbers of all segments, in order. Files with other names are none of ours.
pub(super) fn list(folder: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).unwrap_or_default();
        if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            found.extend(digits.parse::<u64>());
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// A segment for reading; `None` if there is none of that name (any more).
pub(super) fn open(folder: &Path, first: u64) -> io::Result<Option<File>> {
    none_if_missing(File::open(path(folder, first)))
}

/// A segment for appending, made if there is none.
pub(super) fn open_to_append(folder: &Path, first: u64) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path(folder, first))
}

/// Tells whether an open file is the one at a path: what is written to one that was removed or
/// moved away is lost.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let there = none_if_missing(fs::metadata(path))?.map(identity);
    Ok(there == Some(identity(file.metadata()?)))
}

/// `None` for what is not there.
pub(super) fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lines of a segment, as far as it goes now. What comes later can be read later.
pub(super) struct SegmentLines {
    file: File,
    /// The offset at which the next line begins, in bytes.
    offset: u64,
    /// Bytes that were read ahead; `buffer[used..]` lies at `offset`.
    buffer: Vec<u8>,
    used: usize,
}

impl SegmentLines {
    /// From byte `offset` on, where a line must begin.
    pub(super) fn new(file: File, offset: u64) -> Self {
        Self { file, offset, buffer: Vec::new(), used: 0 }
    }

    /// Returns the offset at which the next line begins, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes that follow: those of a line without an end, once
    /// [`SegmentLines::next`] has answered `None`.
    pub(super) fn rest(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().saturating_sub(self.offset))
    }

    /// The next line that has its end, without it. A line without an end may be a torn one, which will be cut off, so
    /// nothing of it is kept: every line comes from one single read.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let length = match self.buffered() {
            Some(length) => length,
            None => match self.fetch()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        let begin = self.used;
        self.used += length + 1;
        self.offset += length as u64 + 1;
        Ok(Some(&self.buffer[begin..begin + length]))
    }

    fn buffered(&self) -> Option<usize> {
        self.buffer[self.used..].iter().position(|byte| *byte == b'\n')
    }

    /// Reads until there is a whole line, and answers its length.
    fn fetch(&mut self) -> io::Result<Option<usize>> {
        let mut size = CHUNK;
        loop {
            self.buffer.resize(size, 0);
            self.used = 0;
            let read = self.file.read_at(&mut self.buffer, self.offset)?;
            self.buffer.truncate(read);
            match self.buffered() {
                Some(length) => return Ok(Some(length)),
                None if read < size => {
                    self.buffer.clear();
                    return Ok(None);
                }
                None if size > MAX_LINE_BYTES => return Err(too_long(self.offset)),
                None => size *= 2,
            }
        }
    }
}

fn too_long(offset: u64) -> io::Error {
    let reason = format!("the line at byte {offset} is longer than {MAX_LINE_BYTES} bytes");
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_and_again_once_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(CHUNK + 10);
        let file = path(folder.path(), 1);
        fs::write(&file, format!("a\n{long}\ntor")).unwrap();
        let mut lines = SegmentLines::new(open(folder.path(), 1).unwrap().unwrap(), 0);
        assert_eq!(lines.next().unwrap(), Some(&b"a"[..]));
        assert_eq!(lines.next().unwrap().map(<[u8]>::len), Some(long.len()));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.rest().unwrap(), 3);
        fs::write(&file, format!("a\n{long}\nwhole\n")).unwrap();
        assert_eq!(lines.next().unwrap(), Some(&b"whole"[..]));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.rest().unwrap(), 0);
    }

    #[test]
    fn a_line_without_an_end_in_sight_is_an_error_and_not_all_of_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path(folder.path(), 1), vec![b'x'; 4 * MAX_LINE_BYTES]).unwrap();
        let error = SegmentLines::new(open(folder.path(), 1).unwrap().unwrap(), 0).next().unwrap_err();
        assert!(error.to_string().contains("longer than"), "{error}");
    }

    #[test]
    fn only_files_with_a_segments_name_are_segments() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["00000000000000000009.jsonl", "00000000000000000010.jsonl", "head", "9.jsonl", "x.jsonl"]
        {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(list(folder.path()).unwrap(), [9, 10]);
        assert!(open(folder.path(), 11).unwrap().is_none());
    }
}
