//! One call of each kind that a driver makes.

use std::collections::BTreeMap;

use eyot::{
    ByteRange, ByteStream, Bytes, Command, ConfinedPath, CreateDirOptions, ExecRequest, GlobOptions,
    GrepOptions, LogQuery, ProcessId, RemoveOptions, Result, SandboxDriver, SandboxPath, StartTerms,
    TarInOptions, WriteOptions,
};
use eyot_guest::client::GuestDriver;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::io::AsyncReadExt;

/// The number of the call that runs a command.
pub const EXEC: u32 = 1;
/// The number of the call that reads a file.
pub const READ: u32 = 2;
/// The number of calls.
pub const COUNT: u32 = 17;

/// The calls; the first is number 1.
pub fn one_of_each(driver: &GuestDriver) -> Vec<BoxFuture<'_, Result<()>>> {
    let d = driver;
    vec![
        Box::pin(exec(d)),
        Box::pin(async {
            d.read(&place("/a"), ByteRange::default()).await?.try_collect::<Vec<_>>().await.map(drop)
        }),
        Box::pin(async { d.write(&place("/a"), content(), WriteOptions::default()).await.map(drop) }),
        Box::pin(async { d.stat(&place("/a")).await.map(drop) }),
        Box::pin(async { d.list(&place("/a")).await.map(drop) }),
        Box::pin(async { d.exists(&place("/a")).await.map(drop) }),
        Box::pin(async { d.create_dir(&place("/a"), CreateDirOptions::default()).await }),
        Box::pin(async { d.remove(&place("/a"), RemoveOptions::default()).await }),
        Box::pin(glob(d)),
        Box::pin(grep(d)),
        Box::pin(async { d.tar_out(&place("/a")).await?.try_collect::<Vec<_>>().await.map(drop) }),
        Box::pin(async { d.tar_in(&place("/a"), content(), TarInOptions::default()).await.map(drop) }),
        Box::pin(dial(d)),
        Box::pin(async { d.usage().await.map(drop) }),
        Box::pin(async { d.start(command(), StartTerms::default()).await.map(drop) }),
        Box::pin(async { d.write_stdin(ProcessId(1), Bytes::from_static(b"yes"), true).await }),
        Box::pin(async { d.wait(ProcessId(1)).await.map(drop) }),
        Box::pin(logs(d)),
    ]
}

fn place(path: &str) -> ConfinedPath {
    SandboxPath::parse(path).expect("a path").into()
}

fn content() -> ByteStream {
    Box::pin(stream::iter([Ok(Bytes::from_static(b"some")), Ok(Bytes::from_static(b"bytes"))]))
}

fn command() -> ExecRequest {
    let command = Command::shell("x");
    ExecRequest { command, cwd: place("/"), env: BTreeMap::new(), user: None, stdin: true, pty: None }
}

async fn exec(driver: &GuestDriver) -> Result<()> {
    let mut events = driver.exec(command()).await?.events;
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(())
}

async fn glob(driver: &GuestDriver) -> Result<()> {
    let options = GlobOptions { pattern: "*".to_owned(), root: place("/"), hidden: false, max_results: 9 };
    driver.glob(&options).await.map(drop)
}

async fn grep(driver: &GuestDriver) -> Result<()> {
    let options = GrepOptions {
        pattern: "x".to_owned(),
        literal: true,
        ignore_case: false,
        root: place("/"),
        include: None,
        max_matches: 9,
        max_line_bytes: 9,
    };
    driver.grep(&options).await.map(drop)
}

async fn dial(driver: &GuestDriver) -> Result<()> {
    let mut tcp = driver.dial(80).await?;
    // An error of the stream holds one of ours; that it ends is what counts here.
    tcp.read_to_end(&mut Vec::new()).await.map(drop).or(Ok(()))
}

async fn logs(driver: &GuestDriver) -> Result<()> {
    let query = LogQuery { follow: true, ..LogQuery::default() };
    driver.logs(ProcessId(1), query).await?.try_collect::<Vec<_>>().await.map(drop)
}
