//! F5: files without end, and files beyond the limit.

use std::sync::Arc;

use eyot::{ByteRange, Bytes, Error, ErrorKind, Limits, Sandbox, SandboxSpec, WriteMode, WriteOptions};
use futures_util::{StreamExt, stream};

use crate::check::{Check, cases, ensure, ensure_eq, ensure_fails, promptly};
use crate::world::{Stage, World};

cases! {
    f05_a_sparse_file_of_100_gib_is_read_up_to_the_limit(world);
    f05_the_ends_of_a_sparse_file_are_read_by_range(stage);
    f05_endless_devices_and_kernel_files_can_not_be_read_as_files(stage);
    f05_a_write_beyond_the_limit_changes_nothing(world);
    f05_a_write_whose_content_fails_changes_nothing(stage);
    f05_a_full_file_system_is_a_typed_error_and_leaves_nothing_half_written(world);
}

const LIMIT: u64 = 1 << 20;

fn limited(world: &World) -> SandboxSpec {
    SandboxSpec { limits: Limits { max_file_bytes: Some(LIMIT), ..Limits::default() }, ..world.spec() }
}

async fn f05_a_sparse_file_of_100_gib_is_read_up_to_the_limit(world: Arc<World>) -> Check {
    let stage = world.stage_of(limited(&world)).await?;
    stage.output("truncate -s 100G sparse").await?;
    ensure_fails!(promptly("the read", stage.sandbox.read("sparse")).await?, TooLarge);
    ensure_fails!(promptly("the read", stage.sandbox.workspace().read_file("sparse")).await?, TooLarge);
    stage.end().await
}

async fn f05_the_ends_of_a_sparse_file_are_read_by_range(stage: Stage) -> Check {
    stage.output("truncate -s 100G sparse; echo -n end >> sparse").await?;
    for (offset, expected) in [(100 << 30, 3), ((100 << 30) + 2, 1), (u64::MAX >> 1, 0), (u64::MAX, 0)] {
        let range = ByteRange { offset, limit: Some(100) };
        let read = async {
            let mut total = 0;
            let mut bytes = stage.sandbox.read_stream("sparse", range).await?;
            while let Some(piece) = bytes.next().await {
                total += piece?.len();
            }
            Ok::<_, Error>(total)
        };
        match promptly("a range", read).await? {
            Ok(total) => ensure_eq!((offset, total), (offset, expected)),
            Err(error) => {
                ensure!(offset > 1 << 62 && error.kind() == ErrorKind::Invalid, "{offset}: {error}")
            }
        }
    }
    Ok(())
}

async fn f05_endless_devices_and_kernel_files_can_not_be_read_as_files(stage: Stage) -> Check {
    for path in
        ["/dev/zero", "/dev/urandom", "/proc/kmsg", "/proc/self/pagemap", "/proc/1/mem", "/proc/self/mem"]
    {
        match promptly(path, stage.sandbox.read_stream(path, ByteRange { offset: 0, limit: Some(1 << 20) }))
            .await?
        {
            Ok(mut bytes) => while let Some(Ok(_)) = promptly(path, bytes.next()).await? {},
            Err(error) => ensure!(error.kind() != ErrorKind::Internal, "{path}: {error}"),
        }
    }
    // What claims to have no size has some.
    ensure!(!stage.sandbox.read("/proc/self/status").await?.is_empty(), "/proc/self/status is empty");
    stage.still_works().await
}

async fn f05_a_write_beyond_the_limit_changes_nothing(world: Arc<World>) -> Check {
    let stage = world.stage_of(limited(&world)).await?;
    let sandbox = &stage.sandbox;
    sandbox.write("file", "before").await?;
    let large = Bytes::from(vec![b'x'; LIMIT as usize + 1]);
    ensure_fails!(sandbox.write("file", large.clone()).await, TooLarge);
    ensure_fails!(sandbox.write("new", large.clone()).await, TooLarge);
    let endless = || stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 4096]))).boxed();
    for mode in [WriteMode::Replace, WriteMode::Append] {
        let options = WriteOptions { mode, ..WriteOptions::default() };
        ensure_fails!(
            promptly("an endless write", sandbox.write_stream("file", endless(), options)).await?,
            TooLarge
        );
    }
    ensure!(sandbox.read("file").await?.starts_with(b"before"), "the file has changed");
    ensure!(!sandbox.exists("new").await?, "a part was written");
    let left: Vec<String> = sandbox.list(".").await?.into_iter().map(|entry| entry.name).collect();
    ensure_eq!(left, ["file"]);
    stage.end().await
}

async fn f05_a_write_whose_content_fails_changes_nothing(stage: Stage) -> Check {
    let sandbox = &stage.sandbox;
    sandbox.write("file", "before").await?;
    let broken = || {
        let pieces = (0..100).map(|_| Ok(Bytes::from_static(&[b'x'; 4096])));
        stream::iter(pieces)
            .chain(stream::once(async { Err(Error::new(ErrorKind::Unavailable, "the source broke")) }))
            .boxed()
    };
    for path in ["file", "new"] {
        ensure_fails!(sandbox.write_stream(path, broken(), WriteOptions::default()).await, Unavailable);
    }
    ensure_eq!(&sandbox.read("file").await?[..], b"before");
    let left: Vec<String> = sandbox.list(".").await?.into_iter().map(|entry| entry.name).collect();
    ensure_eq!(left, ["file"]);
    Ok(())
}

async fn f05_a_full_file_system_is_a_typed_error_and_leaves_nothing_half_written(world: Arc<World>) -> Check {
    // In memory, and half as large as what the sandbox may use of it.
    let limits = Limits { memory_mib: Some(64), ..Limits::default() };
    let sandbox = Sandbox::create(world.provider(), SandboxSpec { limits, ..world.plain_spec() }).await?;
    let file = "/dev/shm/file";
    sandbox.write(file, "before").await?;
    let pieces = (0..2_000).map(|_| Ok(Bytes::from_static(&[b'x'; 64 << 10])));
    let written = sandbox.write_stream(file, stream::iter(pieces).boxed(), WriteOptions::default());
    ensure_fails!(promptly("the write", written).await?, Quota | TooLarge);
    ensure_eq!(&sandbox.read(file).await?[..], b"before");
    let left: Vec<String> = sandbox.list("/dev/shm").await?.into_iter().map(|entry| entry.name).collect();
    ensure_eq!(left, ["file"]);
    Ok(sandbox.destroy().await?)
}
