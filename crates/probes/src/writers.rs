//! F7: several writers of one file.

use std::collections::BTreeSet;

use eyot::{Bytes, Sandbox, WriteMode, WriteOptions};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, stream};

use crate::check::{Check, cases, ensure, ensure_eq, promptly};
use crate::world::Stage;

cases! {
    f07_of_two_writers_of_one_file_one_wins_whole(stage);
    f07_appends_of_ten_writers_do_not_interleave_and_lose_nothing(stage);
    f07_a_file_that_must_be_new_is_made_by_one_of_many(stage);
    f07_a_reader_sees_the_old_or_the_new_content(stage);
}

fn in_pieces(letter: u8, pieces: usize) -> eyot::ByteStream {
    stream::iter((0..pieces).map(move |_| Ok(Bytes::from(vec![letter; 8 << 10])))).boxed()
}

async fn f07_of_two_writers_of_one_file_one_wins_whole(stage: Stage) -> Check {
    for _ in 0..20 {
        let write =
            |letter| stage.sandbox.write_stream("file", in_pieces(letter, 40), WriteOptions::default());
        promptly("the writes", try_join_all([b'a', b'b', b'c'].map(write))).await??;
        let found = stage.sandbox.read("file").await?;
        ensure_eq!(found.len(), 40 * (8 << 10));
        ensure!(found.iter().all(|byte| *byte == found[0]), "the writes are mixed");
    }
    ensure_eq!(stage.sandbox.list(".").await?.len(), 1);
    Ok(())
}

async fn append(sandbox: &Sandbox, writer: usize, round: usize) -> eyot::Result<u64> {
    let line = format!("{writer}:{round}:{}\n", "x".repeat(40_000));
    let options = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    let pieces: Vec<_> =
        line.as_bytes().chunks(7_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    sandbox.write_stream("log", stream::iter(pieces).boxed(), options).await
}

async fn f07_appends_of_ten_writers_do_not_interleave_and_lose_nothing(stage: Stage) -> Check {
    const WRITERS: usize = 10;
    const ROUNDS: usize = 10;
    let writer = async |writer| {
        for round in 0..ROUNDS {
            append(&stage.sandbox, writer, round).await?;
        }
        Ok::<_, eyot::Error>(())
    };
    promptly("the appends", try_join_all((0..WRITERS).map(writer))).await??;
    let log = stage.sandbox.read_text("log").await?;
    let mut seen = BTreeSet::new();
    for line in log.lines() {
        let mut parts = line.splitn(3, ':');
        let (writer, round, rest) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
        ensure!(
            rest.len() == 40_000 && rest.bytes().all(|byte| byte == b'x'),
            "a line is mixed: {} bytes",
            line.len()
        );
        seen.insert((writer.map(str::to_owned), round.map(str::to_owned)));
    }
    ensure_eq!((log.lines().count(), seen.len()), (WRITERS * ROUNDS, WRITERS * ROUNDS));
    Ok(())
}

async fn f07_a_file_that_must_be_new_is_made_by_one_of_many(stage: Stage) -> Check {
    let options = WriteOptions { mode: WriteMode::CreateNew, ..WriteOptions::default() };
    let write = |number: usize| stage.sandbox.write_with("new", format!("{number}"), options);
    let results = promptly("the writes", futures_util::future::join_all((0..20).map(write))).await?;
    ensure_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    for error in refused {
        ensure_eq!(error.kind(), eyot::ErrorKind::AlreadyExists);
    }
    Ok(())
}

async fn f07_a_reader_sees_the_old_or_the_new_content(stage: Stage) -> Check {
    let sandbox = &stage.sandbox;
    sandbox.write("file", vec![b'a'; 300_000]).await?;
    let writing = async {
        for round in 0..30_u8 {
            sandbox.write("file", vec![b'a' + round % 2; 300_000]).await?;
        }
        Ok::<_, eyot::Error>(())
    };
    let reading = async {
        for _ in 0..60 {
            let found = sandbox.read("file").await?;
            let whole = found.len() == 300_000 && found.iter().all(|byte| *byte == found[0]);
            if !whole {
                return Ok(Some(found.len()));
            }
        }
        Ok::<_, eyot::Error>(None)
    };
    let (_, torn) = promptly("reads and writes", futures_util::future::try_join(writing, reading)).await??;
    ensure_eq!(torn, None);
    Ok(())
}
