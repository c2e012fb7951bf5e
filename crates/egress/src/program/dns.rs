//! The name server inside the sandbox: A and AAAA records of hosts that may be reached. CNAMEs are
//! followed and left out, and there are no records of other kinds. No outside server is asked for a
//! name that is not allowed, so no name carries anything out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;

use super::gate::{Gate, Resolution};
use super::limits;
use super::resolver::{Family, LookupError};
use crate::host::HostName;

/// The longest query that is read. Real queries are far shorter.
const MAX_QUERY_BYTES: usize = 4096;
/// The size of a datagram that every client accepts, unless it says that it accepts more.
const DATAGRAM_BYTES: usize = 512;
const MAX_DATAGRAM_BYTES: u16 = 1232;

/// Serves datagrams. A query that comes while too much is under way is dropped: clients ask again.
pub(super) async fn serve_udp(gate: Arc<Gate>, socket: UdpSocket) {
    let socket = Arc::new(socket);
    let turns = Arc::new(Semaphore::new(limits::MAX_LOOKUPS));
    let mut bytes = [0; MAX_QUERY_BYTES];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut bytes).await else { continue };
        let Ok(turn) = Arc::clone(&turns).try_acquire_owned() else { continue };
        let (gate, socket, query) = (Arc::clone(&gate), Arc::clone(&socket), bytes[..length].to_vec());
        tokio::spawn(async move {
            // An error means that the client has gone, and misses no answer.
            drop(answer_datagram(&gate, &socket, &query, from).await);
            drop(turn);
        });
    }
}

async fn answer_datagram(gate: &Gate, socket: &UdpSocket, query: &[u8], from: SocketAddr) -> io::Result<()> {
    let Some((answer, room)) = answer(gate, query).await else { return Ok(()) };
    let mut bytes = answer.to_vec().map_err(io::Error::other)?;
    if bytes.len() > room {
        bytes = answer.truncate().to_vec().map_err(io::Error::other)?;
    }
    socket.send_to(&bytes, from).await?;
    Ok(())
}

/// Serves one connection, for as many queries as it sends.
pub(super) async fn serve_tcp(gate: &Gate, mut client: TcpStream) -> io::Result<()> {
    loop {
        let query = tokio::time::timeout(limits::PATIENCE, read_query(&mut client));
        let Some(query) = query.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? else {
            return Ok(());
        };
        let Some((answer, _)) = answer(gate, &query).await else { return Ok(()) };
        let bytes = answer.to_vec().map_err(io::Error::other)?;
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        // One write for all of it, as RFC 7766 asks for: some clients read once.
        client.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await?;
    }
}

async fn read_query(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 2];
    client.read_exact(&mut length).await?;
    let length = usize::from(u16::from_be_bytes(length));
    if length > MAX_QUERY_BYTES {
        return Ok(None);
    }
    let mut query = vec![0; length];
    client.read_exact(&mut query).await?;
    Ok(Some(query))
}

/// Returns the answer, and how many bytes of it fit into a datagram. Returns `None` to bytes that
/// are no query.
async fn answer(gate: &Gate, bytes: &[u8]) -> Option<(Message, usize)> {
    let query = match Message::from_vec(bytes) {
        Ok(query) if query.metadata.message_type == MessageType::Query => query,
        Ok(_) => return None,
        Err(_) => {
            let id = u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]);
            return Some((Message::error_msg(id, OpCode::Query, ResponseCode::FormErr), DATAGRAM_BYTES));
        }
    };
    let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
    answer.metadata.recursion_desired = query.metadata.recursion_desired;
    answer.metadata.recursion_available = true;
    answer.add_queries(query.queries.iter().cloned());
    let room = match &query.edns {
        Some(_) => {
            let mut edns = Edns::new();
            edns.set_max_payload(MAX_DATAGRAM_BYTES);
            answer.set_edns(edns);
            usize::from(query.max_payload().min(MAX_DATAGRAM_BYTES))
        }
        None => DATAGRAM_BYTES,
    };
    let (code, records) = match query.queries.as_slice() {
        _ if query.metadata.op_code != OpCode::Query => (ResponseCode::NotImp, Vec::new()),
        [question] => decide(gate, question).await,
        _ => (ResponseCode::FormErr, Vec::new()),
    };
    answer.metadata.response_code = code;
    answer.add_answers(records);
    Some((answer, room))
}

async fn decide(gate: &Gate, question: &Query) -> (ResponseCode, Vec<Record>) {
    let refused = (ResponseCode::Refused, Vec::new());
    let name = question.name();
    let Ok(host) = HostName::parse(&name.to_ascii()) else {
        return refused;
    };
    let family = match question.query_type() {
        _ if question.query_class() != DNSClass::IN => return refused,
        RecordType::A => Family::V4,
        RecordType::AAAA => Family::V6,
        RecordType::ANY | RecordType::AXFR | RecordType::IXFR => return (ResponseCode::NotImp, Vec::new()),
        // No server is asked, whether the name is allowed or not: there are no records of that
        // kind.
        _ if gate.rules().judge_name(&host, None).is_ok() => return (ResponseCode::NoError, Vec::new()),
        _ => return refused,
    };
    match gate.resolve(&host, family).await {
        Resolution::Addresses(found) => {
            let record = |address| Record::from_rdata(Name::clone(name), found.ttl, RData::from(address));
            (ResponseCode::NoError, found.addresses.iter().copied().map(record).collect())
        }
        Resolution::Refused => refused,
        Resolution::Nothing(LookupError::NoSuchName) => (ResponseCode::NXDomain, Vec::new()),
        Resolution::Nothing(LookupError::NoAddress(_)) => (ResponseCode::NoError, Vec::new()),
        Resolution::Nothing(LookupError::Failed(_)) => (ResponseCode::ServFail, Vec::new()),
    }
}
