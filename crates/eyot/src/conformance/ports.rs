//! Connections to ports inside: to a server on the sandbox's own loopback, in both directions, half closed too.

use std::io;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Fixture;
use super::check::{
    Check, Failure, cases, ensure, ensure_eq, ensure_fails, in_a_sandbox, need_program, output, promptly,
};
use crate::driver::TcpStream;
use crate::sandbox::Sandbox;

cases! {
    a_port_where_nobody_listens_is_unavailable(sandbox) needs [Dial];
    port_0_is_invalid(sandbox) needs [Dial];
    a_server_that_waits_for_the_end_answers_after_a_half_close(sandbox) needs [Shell, Dial];
    four_mebibytes_go_through_a_connection_and_come_back(sandbox) needs [Shell, Dial];
    twenty_connections_at_once_mix_nothing_up(sandbox) needs [Shell, Dial];
    a_port_is_waited_for_until_something_listens(sandbox) needs [Shell, Dial];
    a_wait_for_a_port_ends_with_its_time(sandbox) needs [Dial];
    a_server_that_hangs_up_ends_the_connection(sandbox) needs [Shell, Dial];
    the_port_of_one_sandbox_is_not_the_port_of_another(fixture) needs [Shell, Dial];
}

const PORT: u16 = 8123;

/// Reads until its client's end, then sends it all back, the other way round, and hangs up.
const SERVER: &str = "
import socket, threading
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(('127.0.0.1', 8123))
server.listen(64)
open('listening', 'w').close()
def serve(client):
    data = b''
    while True:
        piece = client.recv(65536)
        if not piece or piece == b'quit': break
        data += piece
    client.sendall(data[::-1])
    client.close()
while True:
    threading.Thread(target=serve, args=(server.accept()[0],)).start()
";

async fn serve(sandbox: &Sandbox) -> Check {
    need_program(sandbox, "python3").await?;
    sandbox.write("server.py", SERVER).await?;
    output(sandbox, "python3 server.py >server.log 2>&1 &").await?;
    super::check::until("the server's start", async || Ok(sandbox.exists("listening").await?)).await
}

fn broken(error: io::Error) -> Failure {
    Failure::Broken(format!("the connection failed: {error}"))
}

async fn a_port_is_waited_for_until_something_listens(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "python3").await?;
    let (waited, served) = tokio::join!(sandbox.wait_for_port(PORT, 60_000), serve(&sandbox));
    served?;
    Ok(waited?)
}

async fn a_wait_for_a_port_ends_with_its_time(sandbox: Sandbox) -> Check {
    for timeout_ms in [0, 60] {
        let waited = promptly("a port", sandbox.wait_for_port(PORT, timeout_ms)).await?;
        ensure_fails!(waited, Timeout);
    }
    ensure_fails!(sandbox.wait_for_port(0, 60_000).await, Invalid);
    Ok(())
}

/// Sends bytes and the end, and returns what comes back.
async fn exchanged(connection: Box<dyn TcpStream>, content: &[u8]) -> Check<Vec<u8>> {
    let (mut reader, mut writer) = tokio::io::split(connection);
    writer.write_all(content).await.map_err(broken)?;
    writer.shutdown().await.map_err(broken)?;
    let mut answer = Vec::new();
    promptly("the answer", reader.read_to_end(&mut answer)).await?.map_err(broken)?;
    Ok(answer)
}

async fn a_port_where_nobody_listens_is_unavailable(sandbox: Sandbox) -> Check {
    ensure_fails!(promptly("the refusal", sandbox.dial(PORT)).await?.map(drop), Unavailable);
    ensure!(!sandbox.exists("x").await?, "the sandbox is worse for it");
    Ok(())
}

async fn port_0_is_invalid(sandbox: Sandbox) -> Check {
    ensure_fails!(sandbox.dial(0).await.map(drop), Invalid);
    Ok(())
}

async fn a_server_that_waits_for_the_end_answers_after_a_half_close(sandbox: Sandbox) -> Check {
    serve(&sandbox).await?;
    let connection = promptly("the connection", sandbox.dial(PORT)).await??;
    ensure_eq!(exchanged(connection, b"abc\0\xff").await?, b"\xff\0cba");
    let empty = sandbox.dial(PORT).await?;
    ensure_eq!(exchanged(empty, b"").await?, b"");
    Ok(())
}

async fn four_mebibytes_go_through_a_connection_and_come_back(sandbox: Sandbox) -> Check {
    serve(&sandbox).await?;
    let content: Vec<u8> = (0..4 << 20).map(|index: u32| (index % 251) as u8).collect();
    let mut answer = exchanged(sandbox.dial(PORT).await?, &content).await?;
    answer.reverse();
    ensure!(answer == content, "{} bytes came back, or other ones", answer.len());
    Ok(())
}

async fn twenty_connections_at_once_mix_nothing_up(sandbox: Sandbox) -> Check {
    serve(&sandbox).await?;
    let one = async |index: u8| {
        let answer = exchanged(sandbox.dial(PORT).await?, &vec![index; 50_000]).await?;
        ensure!(answer == vec![index; 50_000], "connection {index} got back something else");
        Check::Ok(())
    };
    promptly("twenty connections", join_all((0..20).map(one))).await?.into_iter().collect()
}

async fn a_server_that_hangs_up_ends_the_connection(sandbox: Sandbox) -> Check {
    serve(&sandbox).await?;
    let mut connection = sandbox.dial(PORT).await?;
    connection.write_all(b"quit").await.map_err(broken)?;
    let mut answer = Vec::new();
    promptly("the end", connection.read_to_end(&mut answer)).await?.map_err(broken)?;
    ensure_eq!(answer, b"");
    Ok(())
}

async fn the_port_of_one_sandbox_is_not_the_port_of_another(fixture: Arc<dyn Fixture>) -> Check {
    let other = fixture.clone();
    in_a_sandbox(fixture, async |first: Sandbox| {
        serve(&first).await?;
        in_a_sandbox(other, async |second: Sandbox| {
            ensure_fails!(second.dial(PORT).await.map(drop), Unavailable);
            Ok(())
        })
        .await
    })
    .await
}
