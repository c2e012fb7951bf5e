//! `md5sum`, `sha256sum` and their kin, `b2sum`, `cksum` and `sum`: checksums of files.

mod digests;
mod lines;
mod options;
mod verify;

use async_trait::async_trait;

use super::run::{Ending, ProgramRun, ShellProgram};
use crate::memory::programs::read_bytes::ReadError;
pub(super) use digests::Algorithm;
pub(super) use options::ChecksumFamily;
use options::Options;

/// The bytes that are worked on at once.
const BYTES_AT_ONCE: usize = 64 << 10;

/// A program for checksums.
pub(super) struct Checksums(pub ChecksumFamily);

#[async_trait]
impl ShellProgram for Checksums {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = options::parse(run, self.0)?;
        let usual = ["-".to_owned()];
        let files = if options.files.is_empty() { &usual[..] } else { &options.files };
        let mut is_well = true;
        for file in files {
            run.breathe().await;
            is_well &= if options.is_check {
                verify::verify(run, &options, file).await?
            } else {
                print(run, &options, file).await?
            };
        }
        Ok(i32::from(!is_well))
    }
}

/// Makes the checksum of a file.
///
/// # Errors
/// The outer one ends the run. The inner one is why the file can't be read.
async fn checksum(
    run: &ProgramRun<'_>,
    algorithm: Algorithm,
    bits: usize,
    file: &str,
) -> Result<Result<String, ReadError>, Ending> {
    let bytes = match run.read(file).await? {
        Ok(bytes) => bytes,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut checksum = algorithm.begin(bits);
    for piece in bytes.chunks(BYTES_AT_ONCE) {
        run.breathe().await;
        checksum.update(piece);
    }
    Ok(Ok(checksum.finish()))
}

/// Prints the line of a file. Returns `false` if it can't be read.
async fn print(run: &ProgramRun<'_>, options: &Options, file: &str) -> Result<bool, Ending> {
    match checksum(run, options.algorithm, options.bits, file).await? {
        Ok(sum) => {
            run.print(line(options, file, &sum)).await?;
            Ok(true)
        }
        Err(reason) => {
            run.complain(format!("{file}: {reason}")).await?;
            Ok(false)
        }
    }
}

fn line(options: &Options, file: &str, sum: &str) -> String {
    let end = options.end;
    if options.algorithm.is_plain_sum() {
        let name = if options.files.is_empty() { String::new() } else { format!(" {file}") };
        return format!("{sum}{name}{end}");
    }
    let (mark, name) = if end == '\0' { ("", file.to_owned()) } else { lines::escaped(file) };
    if !options.is_tagged {
        return format!("{mark}{sum} {}{name}{end}", if options.is_binary { '*' } else { ' ' });
    }
    let is_short = options.algorithm == Algorithm::Blake2b && options.bits != digests::MAX_BLAKE2B_BITS;
    let length = if is_short { format!("-{}", options.bits) } else { String::new() };
    format!("{mark}{}{length} ({name}) = {sum}{end}", options.algorithm.tag())
}
