//! Files are compared with a list of checksums.

use super::checksum;
use super::lines::{LineReader, escaped};
use super::options::Options;
use crate::memory::programs::read_bytes::ReadError;
use crate::memory::programs::run::{Ending, ProgramRun};

/// The findings in a list.
#[derive(Default)]
struct Counts {
    improper: u64,
    proper: u64,
    unreadable: u64,
    different: u64,
    same: u64,
}

/// Verifies the files of a list. Returns `false` if anything is wrong.
pub(super) async fn verify(run: &ProgramRun<'_>, options: &Options, list: &str) -> Result<bool, Ending> {
    let shown = if list == "-" { "'standard input'" } else { list };
    let bytes = match run.read(list).await? {
        Ok(bytes) => bytes,
        Err(reason) => {
            run.complain(format!("{shown}: {reason}")).await?;
            return Ok(false);
        }
    };
    let mut counts = Counts::default();
    let mut reader =
        LineReader { algorithm: options.is_chosen.then_some(options.algorithm), has_one_blank: None };
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        run.breathe().await;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match std::str::from_utf8(line).ok().and_then(|line| reader.read(line)) {
            Some(expected) => {
                counts.proper += 1;
                verify_file(run, options, &expected, &mut counts).await?;
            }
            None => {
                counts.improper += 1;
                if options.warns {
                    let tag = options.algorithm.tag();
                    let at = index + 1;
                    run.complain(format!("{shown}: {at}: improperly formatted {tag} checksum line")).await?;
                }
            }
        }
    }
    if counts.proper == 0 {
        run.complain(format!("{shown}: no properly formatted checksum lines found")).await?;
        return Ok(false);
    }
    if !options.is_silent {
        warn(run, options, shown, &counts).await?;
    }
    let is_proper = !options.is_strict || counts.improper == 0;
    Ok(counts.same > 0 && counts.different == 0 && counts.unreadable == 0 && is_proper)
}

async fn verify_file(
    run: &ProgramRun<'_>,
    options: &Options,
    expected: &super::lines::ExpectedSum,
    counts: &mut Counts,
) -> Result<(), Ending> {
    let (mark, name) = escaped(&expected.file);
    match checksum(run, expected.algorithm, expected.bits, &expected.file).await? {
        Ok(sum) if sum.eq_ignore_ascii_case(&expected.sum) => {
            counts.same += 1;
            if !options.is_silent && !options.is_quiet {
                run.print(format!("{mark}{name}: OK\n")).await?;
            }
        }
        Ok(_) => {
            counts.different += 1;
            if !options.is_silent {
                run.print(format!("{mark}{name}: FAILED\n")).await?;
            }
        }
        Err(reason) if options.ignores_missing && reason == ReadError::NotFound => {}
        Err(reason) => {
            counts.unreadable += 1;
            run.complain(format!("{}: {reason}", expected.file)).await?;
            if !options.is_silent {
                run.print(format!("{mark}{name}: FAILED open or read\n")).await?;
            }
        }
    }
    Ok(())
}

async fn warn(run: &ProgramRun<'_>, options: &Options, list: &str, counts: &Counts) -> Result<(), Ending> {
    for (count, one, many) in [
        (counts.improper, "line is improperly formatted", "lines are improperly formatted"),
        (counts.unreadable, "listed file could not be read", "listed files could not be read"),
        (counts.different, "computed checksum did NOT match", "computed checksums did NOT match"),
    ] {
        if count > 0 {
            run.complain(format!("WARNING: {count} {}", if count == 1 { one } else { many })).await?;
        }
    }
    if options.ignores_missing && counts.same == 0 {
        run.complain(format!("{list}: no file was verified")).await?;
    }
    Ok(())
}
