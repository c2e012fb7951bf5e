//! An archive that is read: from a file or the standard input, packed or not, entry by entry.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry};

use super::options::{FAILURE, Options, fatal};
use crate::memory::programs::read_bytes::ReadError;
use crate::memory::programs::run::Ending;
use crate::memory::programs::worker::{WorkReader, Worker, WorkerInput};
use crate::tar_limit::{MAX_BETWEEN_BYTES, TarLimitReader};

const PIECE_BYTES: usize = 64 << 10;

/// The kinds of compression, by the first bytes of what they make.
const MAGIC: [(&[u8], &str, &str); 5] = [
    (&[0x1f, 0x8b], "gzip", "-z"),
    (b"BZh", "bzip2", "-j"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz", "-J"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "--zstd"),
    (&[0x1f, 0x9d], "compress", "-Z"),
];

/// Opens the archive of the command line.
pub(super) fn open<'a>(worker: &'a Worker, options: &Options) -> Result<Box<dyn Read + 'a>, Ending> {
    let file = options.archive.as_deref().filter(|name| *name != "-");
    let raw: Box<dyn Read + 'a> = match file {
        None => Box::new(WorkerInput::new(worker)),
        Some(name) => match worker.read(name)? {
            Ok(content) => Box::new(content.reader()),
            Err(reason) => {
                let doing = if reason == ReadError::IsDirectory { "Cannot read" } else { "Cannot open" };
                return Err(fatal(format!("{name}: {doing}: {reason}")));
            }
        },
    };
    let mut raw = BufReader::with_capacity(PIECE_BYTES, WorkReader { worker, inner: raw });
    let first = first_bytes(&mut raw);
    let packed = MAGIC.iter().find(|(magic, ..)| first.starts_with(magic));
    let raw = io::Cursor::new(first.clone()).chain(raw);
    match packed {
        Some((_, "gzip", option)) if file.is_none() && !options.gzip => {
            Err(fatal(format!("Archive is compressed. Use {option} option")))
        }
        Some((_, "gzip", _)) => {
            let raw = BufReader::with_capacity(PIECE_BYTES, raw);
            Ok(Box::new(MultiGzDecoder::new(raw)))
        }
        Some((_, program, _)) => Err(fatal(format!("{program} is not available in memory; use gzip (-z)"))),
        None if options.gzip => {
            let text = if first.is_empty() { "unexpected end of file" } else { "not in gzip format" };
            worker.print_error(format!("\ngzip: stdin: {text}\n"))?;
            Err(fatal("Child returned status 1"))
        }
        None => Ok(Box::new(raw)),
    }
}

fn first_bytes(raw: &mut impl Read) -> Vec<u8> {
    let mut first = Vec::new();
    // An error shows at the next read.
    let _read = raw.take(8).read_to_end(&mut first);
    first
}

/// Calls for every entry. Returns the status of what the archive is like.
pub(super) fn each_entry<'a>(
    worker: &Worker,
    options: &Options,
    reader: impl Read + 'a,
    mut visit: impl FnMut(&mut Entry<'_, TarArchiveReader<'a>>) -> Result<(), Ending>,
) -> Result<i32, Ending> {
    let left = Rc::new(Cell::new(u64::MAX));
    let mut archive =
        Archive::new(TarArchiveReader(Box::new(TarLimitReader { inner: reader, left: left.clone() })));
    archive.set_ignore_zeros(options.ignores_zeros);
    let broken = |error: io::Error| fatal(error.to_string());
    let mut entries = archive.entries().map_err(broken)?;
    let mut count = 0_u64;
    loop {
        worker.breathe()?;
        left.set(MAX_BETWEEN_BYTES);
        let next = entries.next();
        let is_empty = left.replace(u64::MAX) == MAX_BETWEEN_BYTES;
        let mut entry = match next {
            None if count == 0 && is_empty => return no_archive(worker),
            None => return Ok(0),
            Some(Ok(entry)) => entry,
            Some(Err(error)) => return ended_by(worker, &error, count),
        };
        count += 1;
        visit(&mut entry)?;
        if let Err(error) = io::copy(&mut entry, &mut io::sink()) {
            return ended_by(worker, &error, count);
        }
    }
}

/// The reader of an archive whose own type does not matter.
pub(super) struct TarArchiveReader<'a>(Box<dyn Read + 'a>);

impl Read for TarArchiveReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Says why an archive can't be read on.
fn ended_by(worker: &Worker, error: &io::Error, count: u64) -> Result<i32, Ending> {
    worker.breathe()?;
    let text = error.to_string();
    if text.contains("entire block") && count > 0 {
        // What is left is shorter than a header.
        return Ok(0);
    }
    if text.contains("EOF") && count > 0 {
        return Err(fatal("Unexpected EOF in archive"));
    }
    if matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
    ) {
        let text =
            crate::memory::programs::gzip_stream::GzipError::from(io::Error::new(error.kind(), text)).text();
        worker.print_error(format!("\ngzip: stdin: {text}\n"))?;
        worker.print_error("tar: Child returned status 1\n")?;
        return Err(fatal("Unexpected EOF in archive"));
    }
    if count == 0 {
        return no_archive(worker);
    }
    worker.print_error("tar: Skipping to next header\n")?;
    Ok(FAILURE)
}

fn no_archive(worker: &Worker) -> Result<i32, Ending> {
    worker.print_error("tar: This does not look like a tar archive\n")?;
    Ok(FAILURE)
}
