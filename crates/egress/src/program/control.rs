//! The control socket: the owner of the sandbox asks for the state, changes the rules, and reads
//! the decisions.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::broadcast::error::RecvError;

use super::gate::Gate;
use super::limits;
use crate::control::{ControlRequest, ControlResponse, MAX_LINE_BYTES};
use crate::rules::EgressRules;

/// Serves one client. Only root and the owner are served.
pub(super) async fn serve(gate: &Gate, owner: u32, client: UnixStream) -> io::Result<()> {
    let uid = client.peer_cred()?.uid();
    if uid != 0 && uid != owner {
        return Ok(());
    }
    let (reader, mut writer) = client.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    let mut bounded = (&mut reader).take(MAX_LINE_BYTES as u64);
    let read = bounded.read_line(&mut line);
    tokio::time::timeout(limits::PATIENCE, read)
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    match serde_json::from_str(&line) {
        Ok(ControlRequest::Status) => write(&mut writer, &status(gate)).await,
        Ok(ControlRequest::SetRules { rules }) => write(&mut writer, &set_rules(gate, rules)).await,
        Ok(ControlRequest::Decisions { last, follow }) => {
            tokio::select! {
                written = decisions(gate, &mut writer, last, follow) => written,
                // A client that follows sends nothing more, so anything that arrives is its end.
                left = reader.read_u8() => left.map_or(Ok(()), |_| Ok(())),
            }
        }
        Err(error) => write(&mut writer, &ControlResponse::Refused { reason: error.to_string() }).await,
    }
}

fn status(gate: &Gate) -> ControlResponse {
    ControlResponse::Status { pid: std::process::id(), rules: gate.rules() }
}

fn set_rules(gate: &Gate, rules: EgressRules) -> ControlResponse {
    if rules.allow.len().max(rules.deny.len()) > EgressRules::MAX_RULES {
        return ControlResponse::Refused {
            reason: format!("there may be {} rules of a kind", EgressRules::MAX_RULES),
        };
    }
    gate.set_rules(rules);
    status(gate)
}

async fn decisions(
    gate: &Gate,
    writer: &mut (impl AsyncWriteExt + Unpin),
    last: usize,
    follow: bool,
) -> io::Result<()> {
    let (known, mut coming) = gate.journal.read(last);
    for decision in known {
        write(writer, &ControlResponse::Decision(decision)).await?;
    }
    while follow {
        match coming.recv().await {
            Ok(decision) => write(writer, &ControlResponse::Decision(decision)).await?,
            // The gap in the numbers shows the client that it missed some.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => break,
        }
    }
    Ok(())
}

async fn write(writer: &mut (impl AsyncWriteExt + Unpin), answer: &ControlResponse) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    writer.write_all(&line).await
}
