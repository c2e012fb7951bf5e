//! Paths that are no regular files, and files that claim to be endless: a prompt refusal, never a
//! hang, and bounded memory.

use std::sync::Arc;

use super::Fixture;
use super::check::{
    Check, cases, ensure, ensure_eq, ensure_fails, need_program, output, promptly, with_spec,
};
use super::read::{collect, with_file_limit};
use crate::files::{ByteRange, FileType, WriteMode, WriteOptions};
use crate::sandbox::Sandbox;

cases! {
    f2_a_fifo_is_refused_promptly_by_reads_and_writes(workspace) needs [Shell];
    f2_a_socket_is_refused_promptly_by_reads_and_writes(workspace) needs [Shell];
    f2_a_device_is_refused_promptly_by_reads_and_writes(workspace) needs [Shell];
    f2_a_fifo_is_neither_a_file_nor_a_directory_and_can_be_listed_and_removed(workspace) needs [Shell];
    f5_an_endless_device_behind_a_link_is_refused_promptly(workspace) needs [Shell, Symlinks];
    f5_the_kernel_s_log_is_refused_promptly(workspace) needs [Shell];
    f5_a_huge_sparse_file_is_too_large_and_described_as_it_is(fixture) needs [Shell];
    f5_a_part_of_a_huge_sparse_file_is_read(workspace) needs [Shell, RangedRead];
}

/// Reads and every way of writing must call `path` invalid, before long, and leave it.
async fn is_refused_promptly(sandbox: &Sandbox, path: &str) -> Check {
    ensure_fails!(promptly("a read", sandbox.read(path)).await?, Invalid);
    for mode in [WriteMode::Replace, WriteMode::Append] {
        let options = WriteOptions { mode, ..WriteOptions::default() };
        ensure_fails!(promptly("a write", sandbox.write_with(path, "x", options)).await?, Invalid);
    }
    let options = WriteOptions { mode: WriteMode::CreateNew, ..WriteOptions::default() };
    ensure_fails!(promptly("a write", sandbox.write_with(path, "x", options)).await?, AlreadyExists);
    Ok(())
}

async fn f2_a_fifo_is_refused_promptly_by_reads_and_writes(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkfifo fifo").await?;
    is_refused_promptly(&sandbox, "fifo").await?;
    output(&sandbox, "test -p fifo").await?;
    Ok(())
}

async fn f2_a_socket_is_refused_promptly_by_reads_and_writes(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "python3").await?;
    output(&sandbox, "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'").await?;
    is_refused_promptly(&sandbox, "s").await?;
    output(&sandbox, "test -S s").await?;
    Ok(())
}

async fn f2_a_device_is_refused_promptly_by_reads_and_writes(sandbox: Sandbox) -> Check {
    for device in ["/dev/null", "/dev/zero"] {
        is_refused_promptly(&sandbox, device).await?;
    }
    output(&sandbox, "test -c /dev/null && echo works > /dev/null").await?;
    Ok(())
}

async fn f2_a_fifo_is_neither_a_file_nor_a_directory_and_can_be_listed_and_removed(
    sandbox: Sandbox,
) -> Check {
    output(&sandbox, "mkfifo fifo").await?;
    let stat = promptly("a stat", sandbox.stat("fifo")).await??;
    ensure!(!stat.is_file && !stat.is_directory, "a FIFO is {stat:?}");
    ensure!(sandbox.exists("fifo").await?, "a FIFO does not exist");
    let listed = sandbox.list(".").await?;
    ensure_eq!(listed.len(), 1);
    ensure!(
        matches!(listed[0].file_type, None | Some(FileType::Other)),
        "a FIFO is listed as {:?}",
        listed[0]
    );
    sandbox.remove("fifo", Default::default()).await?;
    ensure!(!sandbox.exists("fifo").await?, "the FIFO is still there");
    Ok(())
}

async fn f5_an_endless_device_behind_a_link_is_refused_promptly(sandbox: Sandbox) -> Check {
    output(&sandbox, "ln -s /dev/zero innocent && ln -s innocent chain").await?;
    ensure_fails!(promptly("a read", sandbox.read("chain")).await?, Invalid);
    ensure_fails!(promptly("a write", sandbox.write("chain", "x")).await?, Invalid);
    Ok(())
}

async fn f5_the_kernel_s_log_is_refused_promptly(sandbox: Sandbox) -> Check {
    ensure_fails!(
        promptly("a read", sandbox.read("/proc/kmsg")).await?,
        Permission | NotFound | Invalid | IsDirectory | Conflict
    );
    Ok(())
}

async fn f5_a_huge_sparse_file_is_too_large_and_described_as_it_is(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 1 << 20);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        need_program(&sandbox, "truncate").await?;
        output(&sandbox, "truncate -s 100G sparse").await?;
        ensure_eq!(sandbox.stat("sparse").await?.size, Some(100 << 30));
        ensure_fails!(promptly("a read", sandbox.read("sparse")).await?, TooLarge);
        let stream = sandbox.read_stream("sparse", ByteRange::default()).await?;
        ensure_fails!(promptly("a stream", collect(stream)).await?, TooLarge);
        Ok(())
    })
    .await
}

async fn f5_a_part_of_a_huge_sparse_file_is_read(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "truncate").await?;
    output(&sandbox, "truncate -s 100G sparse && printf end >> sparse").await?;
    let range = ByteRange { offset: (100 << 30) - 2, limit: None };
    let tail =
        promptly("a tail", async { collect(sandbox.read_stream("sparse", range).await?).await }).await??;
    ensure_eq!(tail, b"\0\0end");
    Ok(())
}
