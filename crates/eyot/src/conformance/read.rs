//! Reading: bytes as they are, text with replacement characters, parts of a file, and the limit on its size.

use std::sync::Arc;

use futures_util::StreamExt;

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output, promptly, sh, with_spec};
use super::{Fixture, check::Failure};
use crate::driver::ByteStream;
use crate::error::Result;
use crate::files::{ByteRange, CreateDirOptions};
use crate::sandbox::Sandbox;
use crate::spec::SandboxSpec;

cases! {
    reading_a_missing_file_is_not_found(workspace) needs [];
    reading_a_directory_is_is_directory(workspace) needs [];
    reading_below_a_file_fails(workspace) needs [];
    a_file_is_read_byte_by_byte_as_it_was_written(workspace) needs [];
    an_empty_file_is_read_as_nothing(workspace) needs [];
    text_that_is_not_utf_8_has_replacement_characters(workspace) needs [];
    a_file_that_a_command_wrote_is_read_whole(workspace) needs [Shell];
    a_file_of_several_mebibytes_is_read_whole_and_in_order(workspace) needs [];
    a_part_of_a_file_is_read_from_an_offset(workspace) needs [RangedRead];
    the_tail_of_a_file_is_read_to_its_end(workspace) needs [RangedRead];
    past_the_end_and_with_a_limit_of_zero_nothing_is_read(workspace) needs [RangedRead];
    a_file_as_large_as_the_limit_is_read_and_one_byte_more_is_too_large(fixture) needs [Shell];
    a_part_of_a_file_beyond_the_limit_can_be_read(fixture) needs [RangedRead, Shell];
    a_read_that_is_given_up_harms_nothing(workspace) needs [];
    a_file_that_the_user_may_not_read_is_permission(workspace) needs [Shell];
    many_files_are_read_at_once(workspace) needs [];
}

/// All that a stream gives.
pub(super) async fn collect(mut stream: ByteStream) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes)
}

/// A part of a file.
async fn part(sandbox: &Sandbox, path: &str, offset: u64, limit: Option<u64>) -> Result<Vec<u8>> {
    collect(sandbox.read_stream(path, ByteRange { offset, limit }).await?).await
}

/// Bytes that show a hole, a shift or a swap: no two stretches of them are alike.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

/// The fixture's spec with a limit on files.
pub(super) fn with_file_limit(fixture: &dyn Fixture, max_file_bytes: u64) -> SandboxSpec {
    let mut spec = fixture.spec();
    spec.limits.max_file_bytes = Some(max_file_bytes);
    spec
}

async fn reading_a_missing_file_is_not_found(sandbox: Sandbox) -> Check {
    for path in ["missing", "missing/below", "/no/such/file"] {
        ensure_fails!(sandbox.read(path).await, NotFound);
        ensure_fails!(sandbox.read_text(path).await, NotFound);
        ensure_fails!(part(&sandbox, path, 0, None).await, NotFound);
    }
    Ok(())
}

async fn reading_a_directory_is_is_directory(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    for path in ["d", ".", "/"] {
        ensure_fails!(sandbox.read(path).await, IsDirectory);
        ensure_fails!(part(&sandbox, path, 0, None).await, IsDirectory);
    }
    Ok(())
}

async fn reading_below_a_file_fails(sandbox: Sandbox) -> Check {
    sandbox.write("f", "x").await?;
    ensure_fails!(sandbox.read("f/below").await, NotDirectory);
    Ok(())
}

async fn a_file_is_read_byte_by_byte_as_it_was_written(sandbox: Sandbox) -> Check {
    let every_byte: Vec<u8> = (0..=255).collect();
    for content in [&every_byte[..], b"\0", b"a\0b\r\nno final newline", b"\xef\xbb\xbfmark\n\n", b"\xff\xfe"]
    {
        sandbox.write("f", content.to_vec()).await?;
        ensure_eq!(&sandbox.read("f").await?[..], content);
    }
    Ok(())
}

async fn an_empty_file_is_read_as_nothing(sandbox: Sandbox) -> Check {
    sandbox.write("f", "").await?;
    ensure!(sandbox.read("f").await?.is_empty(), "an empty file has bytes");
    ensure_eq!(sandbox.read_text("f").await?, "");
    Ok(())
}

async fn text_that_is_not_utf_8_has_replacement_characters(sandbox: Sandbox) -> Check {
    sandbox.write("f", &b"caf\xe9 \xe2\x82 ok \xf0\x9f\x98\x80"[..]).await?;
    ensure_eq!(sandbox.read_text("f").await?, "caf\u{fffd} \u{fffd} ok 😀");
    Ok(())
}

async fn a_file_that_a_command_wrote_is_read_whole(sandbox: Sandbox) -> Check {
    output(&sandbox, r"printf 'one\ntwo\000three' > f").await?;
    ensure_eq!(&sandbox.read("f").await?[..], b"one\ntwo\0three");
    ensure_eq!(output(&sandbox, "cat f | wc -c").await?.trim(), "13");
    Ok(())
}

async fn a_file_of_several_mebibytes_is_read_whole_and_in_order(sandbox: Sandbox) -> Check {
    let content = pattern((5 << 20) + 7);
    sandbox.write("f", content.clone()).await?;
    ensure!(sandbox.read("f").await? == content, "the bytes are not the ones that were written");
    ensure!(
        part(&sandbox, "f", 0, None).await? == content,
        "the stream's bytes are not the ones that were written"
    );
    Ok(())
}

async fn a_part_of_a_file_is_read_from_an_offset(sandbox: Sandbox) -> Check {
    let content = pattern(300_000);
    sandbox.write("f", content.clone()).await?;
    for (offset, limit) in [(0, 1), (1, 2), (65_535, 2), (65_536, 65_537), (100_000, 150_000)] {
        let found = part(&sandbox, "f", offset, Some(limit)).await?;
        ensure!(
            found == content[offset as usize..(offset + limit) as usize],
            "{limit} bytes from {offset} are wrong"
        );
    }
    Ok(())
}

async fn the_tail_of_a_file_is_read_to_its_end(sandbox: Sandbox) -> Check {
    sandbox.write("f", "0123456789").await?;
    ensure_eq!(part(&sandbox, "f", 7, None).await?, b"789");
    ensure_eq!(part(&sandbox, "f", 7, Some(100)).await?, b"789");
    ensure_eq!(part(&sandbox, "f", 9, Some(1)).await?, b"9");
    Ok(())
}

async fn past_the_end_and_with_a_limit_of_zero_nothing_is_read(sandbox: Sandbox) -> Check {
    sandbox.write("f", "0123456789").await?;
    for (offset, limit) in
        [(10, None), (11, None), (1 << 40, Some(5)), (u64::MAX, None), (0, Some(0)), (5, Some(0))]
    {
        ensure_eq!(part(&sandbox, "f", offset, limit).await?, b"");
    }
    ensure_fails!(part(&sandbox, "missing", 0, Some(0)).await, NotFound);
    Ok(())
}

async fn a_file_as_large_as_the_limit_is_read_and_one_byte_more_is_too_large(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let spec = with_file_limit(&*fixture, 100_000);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        write_unlimited(&sandbox, "edge", 100_000).await?;
        write_unlimited(&sandbox, "beyond", 100_001).await?;
        ensure_eq!(sandbox.read("edge").await?.len(), 100_000);
        ensure_eq!(part(&sandbox, "edge", 0, None).await?.len(), 100_000);
        ensure_fails!(sandbox.read("beyond").await, TooLarge);
        ensure_fails!(sandbox.read_text("beyond").await, TooLarge);
        ensure_fails!(part(&sandbox, "beyond", 0, None).await, TooLarge);
        Ok(())
    })
    .await
}

/// Makes a file past the handle's own limit: what a command inside writes is not held to it.
pub(super) async fn write_unlimited(sandbox: &Sandbox, path: &str, length: usize) -> Check {
    output(sandbox, &format!("head -c {length} /dev/zero | tr '\\0' x > {path}")).await?;
    Ok(())
}

async fn a_part_of_a_file_beyond_the_limit_can_be_read(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 10);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        write_unlimited(&sandbox, "large", 1000).await?;
        ensure_eq!(part(&sandbox, "large", 990, Some(10)).await?.len(), 10);
        ensure_fails!(part(&sandbox, "large", 0, Some(11)).await, TooLarge);
        Ok(())
    })
    .await
}

async fn a_read_that_is_given_up_harms_nothing(sandbox: Sandbox) -> Check {
    let content = pattern(4 << 20);
    sandbox.write("f", content.clone()).await?;
    for _ in 0..20 {
        let mut stream = sandbox.read_stream("f", ByteRange::default()).await?;
        ensure!(stream.next().await.is_some(), "there is no first piece");
    }
    let whole = promptly("a read after twenty that were given up", sandbox.read("f")).await??;
    ensure!(whole == content, "the bytes are not the ones that were written");
    Ok(())
}

async fn a_file_that_the_user_may_not_read_is_permission(sandbox: Sandbox) -> Check {
    if output(&sandbox, "id -u").await? == "0" {
        return Err(Failure::NotHere("the sandbox's user is root, who may read everything".to_owned()));
    }
    output(&sandbox, "echo x > f && chmod 000 f && mkdir d && echo x > d/f && chmod 000 d").await?;
    ensure_fails!(sandbox.read("f").await, Permission);
    ensure_fails!(sandbox.read("d/f").await, Permission);
    ensure_fails!(sandbox.list("d").await, Permission);
    ensure!(sh(&sandbox, "chmod 700 d").await?.success(), "the directory can't be opened again");
    Ok(())
}

async fn many_files_are_read_at_once(sandbox: Sandbox) -> Check {
    for index in 0..50_u8 {
        sandbox.write(&index.to_string(), vec![index; 70_000]).await?;
    }
    let names: Vec<String> = (0..50).map(|index| index.to_string()).collect();
    let all = futures_util::future::join_all(names.iter().map(|name| sandbox.read(name))).await;
    for (index, bytes) in all.into_iter().enumerate() {
        ensure!(bytes? == vec![index as u8; 70_000], "file {index} has another's bytes");
    }
    Ok(())
}
