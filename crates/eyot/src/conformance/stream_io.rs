//! Writing from a stream and reading as one: in order, in bounded memory, and nothing half done when it breaks
//! off.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::Fixture;
use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, promptly, until, with_spec};
use super::read::{collect, pattern, with_file_limit};
use super::write::names;
use crate::driver::ByteStream;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{ByteRange, WriteMode, WriteOptions};
use crate::sandbox::Sandbox;

cases! {
    a_stream_of_many_pieces_is_written_in_order(workspace) needs [];
    a_stream_into_missing_directories_makes_them(workspace) needs [];
    an_empty_stream_makes_an_empty_file(workspace) needs [];
    a_content_that_fails_changes_nothing(workspace) needs [];
    an_append_whose_content_fails_keeps_what_was_there(workspace) needs [Append];
    f5_an_endless_stream_stops_at_the_limit_and_changes_nothing(fixture) needs [];
    a_write_that_is_given_up_changes_nothing(workspace) needs [AtomicWrite];
    a_file_is_copied_through_two_streams_at_once(workspace) needs [];
    a_slow_stream_is_waited_for(workspace) needs [];
}

fn pieces(content: &[u8], size: usize) -> ByteStream {
    let pieces: Vec<Result<Bytes>> =
        content.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

/// Some bytes, then an error.
fn breaking_off(before: usize) -> ByteStream {
    let error = Error::new(ErrorKind::Conflict, "the content broke off");
    stream::iter([Ok(vec![b'x'; before].into()), Err(error)]).boxed()
}

fn mode(mode: WriteMode) -> WriteOptions {
    WriteOptions { mode, ..WriteOptions::default() }
}

async fn a_stream_of_many_pieces_is_written_in_order(sandbox: Sandbox) -> Check {
    let content = pattern(3_000_001);
    let size = sandbox.write_stream("f", pieces(&content, 7777), WriteOptions::default()).await?;
    ensure_eq!(size, content.len() as u64);
    ensure!(sandbox.read("f").await? == content, "the bytes are not the stream's");
    let size = sandbox.write_stream("small", pieces(&content[..5000], 1), WriteOptions::default()).await?;
    ensure_eq!(size, 5000);
    ensure!(sandbox.read("small").await? == content[..5000], "the bytes are not the stream's");
    Ok(())
}

async fn a_stream_into_missing_directories_makes_them(sandbox: Sandbox) -> Check {
    let content = pattern(100_000);
    sandbox.write_stream("a/b/f", pieces(&content, 1000), WriteOptions::default()).await?;
    ensure!(sandbox.read("a/b/f").await? == content, "the bytes are not the stream's");
    Ok(())
}

async fn an_empty_stream_makes_an_empty_file(sandbox: Sandbox) -> Check {
    ensure_eq!(sandbox.write_stream("f", stream::empty().boxed(), WriteOptions::default()).await?, 0);
    ensure!(sandbox.read("f").await?.is_empty(), "an empty stream made bytes");
    Ok(())
}

async fn a_content_that_fails_changes_nothing(sandbox: Sandbox) -> Check {
    sandbox.write("old", "old").await?;
    for before in [0, 1, 3_000_000] {
        let replaced = sandbox.write_stream("old", breaking_off(before), WriteOptions::default()).await;
        ensure_fails!(replaced, Conflict);
        let created = sandbox.write_stream("new", breaking_off(before), mode(WriteMode::CreateNew)).await;
        ensure_fails!(created, Conflict);
    }
    ensure_eq!(sandbox.read_text("old").await?, "old");
    until("that nothing is left of what broke off", async || Ok(names(&sandbox).await? == ["old"])).await
}

async fn an_append_whose_content_fails_keeps_what_was_there(sandbox: Sandbox) -> Check {
    sandbox.write("log", "old").await?;
    ensure_fails!(sandbox.write_stream("log", breaking_off(10), mode(WriteMode::Append)).await, Conflict);
    ensure!(sandbox.read_text("log").await?.starts_with("old"), "what was there is lost");
    Ok(())
}

async fn f5_an_endless_stream_stops_at_the_limit_and_changes_nothing(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 1 << 20);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        sandbox.write("old", "old").await?;
        let endless = || stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 65_536]))).boxed();
        for path in ["old", "new"] {
            let written = sandbox.write_stream(path, endless(), WriteOptions::default());
            ensure_fails!(promptly("an endless write", written).await?, TooLarge);
        }
        ensure_eq!(sandbox.read_text("old").await?, "old");
        ensure_eq!(names(&sandbox).await?, ["old"]);
        Ok(())
    })
    .await
}

async fn a_write_that_is_given_up_changes_nothing(sandbox: Sandbox) -> Check {
    sandbox.write("old", "old").await?;
    let begun = || stream::iter([Ok(vec![b'x'; 200_000].into())]).chain(stream::pending()).boxed();
    for path in ["old", "new"] {
        let write = sandbox.write_stream(path, begun(), WriteOptions::default());
        let given_up = tokio::time::timeout(Duration::from_millis(100), write).await;
        ensure!(given_up.is_err(), "a write ended before its content did");
    }
    ensure_eq!(sandbox.read_text("old").await?, "old");
    until("that nothing is left of what was given up", async || Ok(names(&sandbox).await? == ["old"]))
        .await?;
    ensure_eq!(sandbox.read_text("old").await?, "old");
    Ok(())
}

async fn a_file_is_copied_through_two_streams_at_once(sandbox: Sandbox) -> Check {
    let content = pattern(2_500_000);
    sandbox.write("from", content.clone()).await?;
    let stream = sandbox.read_stream("from", ByteRange::default()).await?;
    let size = promptly("a copy", sandbox.write_stream("to", stream, WriteOptions::default())).await??;
    ensure_eq!(size, content.len() as u64);
    let copied = collect(sandbox.read_stream("to", ByteRange::default()).await?).await?;
    ensure!(copied == content, "the copy is not the original");
    Ok(())
}

async fn a_slow_stream_is_waited_for(sandbox: Sandbox) -> Check {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let last = stream::once(async move {
        let _gone_is_fine = receiver.await.is_ok();
        Ok(Bytes::from_static(b" last"))
    });
    let content = stream::iter([Ok(Bytes::from_static(b"first"))]).chain(last).boxed();
    let write = sandbox.write_stream("f", content, WriteOptions::default());
    // Other calls go on meanwhile; only then is the content allowed to end.
    let meanwhile = async {
        sandbox.write("other", "x").await?;
        ensure_eq!(sandbox.read_text("other").await?, "x");
        ensure!(sender.send(()).is_ok(), "the write took no interest in its content's end");
        Check::Ok(())
    };
    let (written, meanwhile) = tokio::join!(write, meanwhile);
    meanwhile?;
    ensure_eq!(written?, 10);
    ensure_eq!(sandbox.read_text("f").await?, "first last");
    Ok(())
}
