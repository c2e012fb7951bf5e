//! `eyot dial`: connects our stdin and stdout to a port inside. It ends when the other side has
//! closed and everything that it sent is written.

use std::time::Duration;

use bytes::BytesMut;
use eyot::{Error, ErrorKind, ProcessStatus, Sandbox, SandboxStatus, TcpStream};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep};

use crate::args::DialArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::stdio::{Sink, stdin_stream};

type Connection = Box<dyn TcpStream>;

const READ_CHUNK: usize = 64 * 1024;
/// The time that a service has to listen after its sandbox was woken.
const AFTER_WAKE: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(25);

pub async fn run(args: &DialArgs, context: &Context) -> Result<u8, Failure> {
    let (provider, name) = context.find(&args.name).await?;
    let explained = |error| context.explained(error, &args.name);
    let info = provider.info(&name).await.map_err(explained)?;
    let sandbox = Sandbox::wake(provider.as_ref(), &name).await.map_err(explained)?;
    let connection = match info.status {
        SandboxStatus::Sleeping => connect_to_service(&sandbox, args.port).await?,
        _ => sandbox.dial(args.port).await?,
    };
    let (from, to) = tokio::io::split(connection);
    let mut sending = Box::pin(send(to));
    let mut receiving = Box::pin(receive(from));
    tokio::select! {
        received = &mut receiving => received?,
        sent = &mut sending => {
            sent?;
            receiving.await?;
        }
    }
    Ok(0)
}

/// Connects to a port of a sandbox that was just woken. Its services have just been started, and are
/// waited for while one runs.
async fn connect_to_service(sandbox: &Sandbox, port: u16) -> Result<Connection, Error> {
    let until = Instant::now() + AFTER_WAKE;
    loop {
        let dialled = sandbox.dial(port).await;
        let is_early = dialled.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable);
        if !is_early || Instant::now() >= until || !runs_something(sandbox).await {
            return dialled;
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn runs_something(sandbox: &Sandbox) -> bool {
    let processes = sandbox.processes().await.unwrap_or_default();
    processes.iter().any(|process| process.status == ProcessStatus::Running)
}

async fn send(mut to: WriteHalf<Connection>) -> Result<(), Failure> {
    let mut stdin = stdin_stream()?;
    while let Some(bytes) = stdin.next().await {
        if to.write_all(&bytes?).await.is_err() {
            // The other side reads no more; it may still have something to say.
            return Ok(());
        }
    }
    // Already closed by the other side is as good.
    drop(to.shutdown().await);
    Ok(())
}

async fn receive(mut from: ReadHalf<Connection>) -> Result<(), Failure> {
    let mut stdout = Sink::stdout()?;
    loop {
        let mut buffer = BytesMut::with_capacity(READ_CHUNK);
        let lost = |error| {
            Error::new(ErrorKind::Unavailable, "read from the port: connection lost").with_source(error)
        };
        if from.read_buf(&mut buffer).await.map_err(lost)? == 0 {
            return Ok(());
        }
        stdout.write(&mut buffer.freeze()).await?;
    }
}
