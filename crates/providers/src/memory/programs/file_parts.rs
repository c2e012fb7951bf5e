//! A part of each of some files, with their names between arrows, as `head` and `tail` print it.

use super::quoting::quoted;
use super::read_bytes::ReadError;
use super::run::{Ending, ProgramRun};

/// Prints the part of each file. Without a choice of titles, several files have them.
pub(super) async fn print_parts(
    run: &ProgramRun<'_>,
    files: &[String],
    has_titles: Option<bool>,
    part: impl Fn(&[u8]) -> &[u8],
) -> Result<i32, Ending> {
    let has_titles = has_titles.unwrap_or(files.len() > 1);
    let (mut status, mut is_first) = (0, true);
    for file in files {
        let bytes = match run.read(file).await? {
            Ok(bytes) => bytes,
            Err(reason) => {
                // A directory can be opened.
                let (begin, end) = if reason == ReadError::IsDirectory {
                    title(run, file, has_titles, &mut is_first).await?;
                    ("error reading", "")
                } else {
                    ("cannot open", " for reading")
                };
                run.complain(format!("{begin} {}{end}: {reason}", quoted(file))).await?;
                status = 1;
                continue;
            }
        };
        title(run, file, has_titles, &mut is_first).await?;
        run.print(part(&bytes)).await?;
    }
    Ok(status)
}

/// Prints the name of a file between arrows.
async fn title(
    run: &ProgramRun<'_>,
    file: &str,
    has_titles: bool,
    is_first: &mut bool,
) -> Result<(), Ending> {
    if !has_titles {
        return Ok(());
    }
    let name = if file == "-" { "standard input" } else { file };
    let gap = if std::mem::take(is_first) { "" } else { "\n" };
    run.print(format!("{gap}==> {name} <==\n")).await
}
