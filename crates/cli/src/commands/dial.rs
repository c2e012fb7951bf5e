//! `eyot dial`: connects our stdin and stdout to a port inside. It ends when the other side has
//! closed and everything that it sent is written.

use bytes::BytesMut;
use eyot::{Error, ErrorKind, TcpStream};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::args::DialArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::stdio::{Sink, stdin_stream};

type Connection = Box<dyn TcpStream>;

const READ_CHUNK: usize = 64 * 1024;

pub async fn run(args: &DialArgs, context: &Context) -> Result<u8, Failure> {
    let connection = context.awake(&args.name).await?.dial(args.port).await?;
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
