//! Printing of a part of each file, with titles, as in `head` and `tail`.

use super::quoting::quoted;
use super::read_bytes::ReadError;
use super::run::{Ending, ProgramRun};
use crate::memory::furniture::device_bytes;
use crate::memory::node::{Device, NodeContent};
use crate::memory::walk::Last;

const DEVICE_BYTES_AT_ONCE: usize = 1 << 20;

/// Prints the part of each file. By default, titles are printed if there are several files. A device, which has
/// no end, may give a number of bytes instead.
pub(super) async fn print_parts(
    run: &ProgramRun<'_>,
    files: &[String],
    has_titles: Option<bool>,
    from_device: Option<u64>,
    part: impl Fn(&[u8]) -> &[u8],
) -> Result<i32, Ending> {
    let has_titles = has_titles.unwrap_or(files.len() > 1);
    let (mut status, mut is_first) = (0, true);
    for file in files {
        if let Some(number) = from_device
            && let Ok(NodeContent::Device(device)) = run.look(file, Last::Follow).map(|node| node.content)
        {
            title(run, file, has_titles, &mut is_first).await?;
            print_device(run, device, number).await?;
            continue;
        }
        let bytes = match run.read(file).await? {
            Ok(bytes) => bytes,
            Err(reason) => {
                // Opening a directory succeeds, and reading it fails.
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

/// Prints a number of bytes of a device.
async fn print_device(run: &ProgramRun<'_>, device: Device, number: u64) -> Result<(), Ending> {
    let mut left = usize::try_from(number).unwrap_or(usize::MAX);
    while left > 0 {
        let bytes = device_bytes(device, left.min(DEVICE_BYTES_AT_ONCE));
        if bytes.is_empty() {
            break;
        }
        left -= bytes.len();
        run.print(bytes).await?;
        run.breathe().await;
    }
    Ok(())
}

/// Prints the title of a file.
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
