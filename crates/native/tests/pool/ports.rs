//! Ports of sandboxes, seen from the host.

use eyot::ErrorKind;
use eyot_engine::MAX_OPEN_PORTS;
use libtest_mimic::{Failed, Trial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::session::{Session, output};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_port_of_a_sandbox_without_a_network_is_seen_on_the_hosts_loopback", a_port),
        trial("the_same_port_has_the_same_url_and_another_sandbox_another", same_url),
        trial("a_connection_to_a_port_where_nobody_listens_is_closed", nobody_listens),
        trial("a_preview_ends_with_its_sandbox_and_with_its_pool", ends),
        trial("so_many_ports_are_open_at_once_and_no_more", limit),
    ]
}

async fn get(url: &str) -> Result<String, Failed> {
    let address = url.strip_prefix("http://").ok_or("no URL")?;
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

const SERVE: &str = "echo hello > page; python3 -m http.server 8000 >/dev/null 2>&1 & \
    until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";

async fn a_port() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    output(&pool.get("web").await?, SERVE).await?;
    let preview = pool.browse("web", 8000).await?;
    for _ in 0..3 {
        let answer = get(&preview.url).await?;
        ensure(answer.contains("200 OK") && answer.ends_with("hello\n"), answer)?;
    }
    Ok(pool.close().await?)
}

async fn same_url() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let first = pool.browse("a", 8000).await?;
    ensure(pool.browse("a", 8000).await? == first, "another URL")?;
    ensure(
        pool.browse("a", 8001).await? != first && pool.browse("b", 8000).await? != first,
        "one URL for two",
    )?;
    let error = pool.browse("a", 0).await.err().map(|error| error.kind());
    ensure(error == Some(ErrorKind::Invalid), format!("{error:?}"))?;
    Ok(pool.close().await?)
}

async fn nobody_listens() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let preview = pool.browse("a", 8000).await?;
    ensure(get(&preview.url).await.map_or(true, |answer| answer.is_empty()), "somebody answered")?;
    Ok(pool.close().await?)
}

async fn ends() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let (a, b) = (pool.browse("a", 8000).await?, pool.browse("b", 8000).await?);
    pool.remove("a").await?;
    refused(&a.url).await?;
    pool.close().await?;
    refused(&b.url).await
}

/// Waits until a URL is refused: a listener closes when its task has been dropped.
async fn refused(url: &str) -> Result<(), Failed> {
    let address = url.strip_prefix("http://").ok_or("no URL")?;
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn limit() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let last = u16::try_from(MAX_OPEN_PORTS)?;
    for port in 1..=last {
        pool.browse("a", port).await?;
    }
    let error = pool.browse("b", 1).await.err().map(|error| error.kind());
    ensure(error == Some(ErrorKind::Quota), format!("{error:?}"))?;
    pool.browse("a", last).await?;
    pool.remove("a").await?;
    pool.browse("b", 1).await?;
    Ok(pool.close().await?)
}
