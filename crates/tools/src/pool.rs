//! The toolset `pool`: several named sandboxes, their commands and files, and copies between them. Names, defaults and
//! shapes are those of seed 002.

mod browse;
mod glob;
mod image;
mod read_file;
mod sandbox_create;
mod sandbox_list;
mod shell;
mod slice;
mod transfer;
mod write_file;

use eyot::Result;

use super::set::Toolset;

/// The largest file, or part of one, that a tool reads or writes, in bytes: 64 MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The eight of them.
pub(super) fn toolset() -> Result<Toolset> {
    let tools = [
        shell::tool()?,
        read_file::tool()?,
        write_file::tool()?,
        glob::tool()?,
        browse::tool()?,
        sandbox_create::tool()?,
        sandbox_list::tool()?,
        transfer::tool()?,
    ];
    Toolset::new("pool", tools)
}
