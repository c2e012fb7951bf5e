//! The test's internet: one name server and one web server, on many addresses. Both log requests to
//! files that the tests read. Canaries are addresses that must not appear there.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::network::{OWN_ADDRESS, SHARED, configure_internet};

/// The internet's own private address: the name server's, and a canary.
pub const NAME_SERVER: &str = "10.200.0.2";
pub const PUBLIC: &str = "93.184.216.34";
pub const PUBLIC_TOO: &str = "93.184.216.35";
pub const PUBLIC_V6: &str = "2606:2800:220:1::34";
/// Public addresses and canaries.
pub const OTHER_ADDRESSES: [&str; 5] = [PUBLIC, PUBLIC_TOO, "169.254.169.254", "192.168.7.7", "100.64.0.9"];
/// The second port of the web server, besides 80.
pub const OTHER_PORT: u16 = 8080;

/// The log of requests: address, method, path and `Host`, one line each.
pub const HITS: &str = "hits";
/// The log of names that were looked up, one line each.
pub const QUERIES: &str = "queries";

pub fn main() -> ExitCode {
    println!("here");
    let mut orders = BufReader::new(std::io::stdin()).lines();
    assert_eq!(orders.next().expect("an order").expect("which can be read"), "go");
    configure_internet();
    let shared = PathBuf::from(std::env::var(SHARED).expect("the shared folder is named"));
    for port in [80, OTHER_PORT] {
        let listener = TcpListener::bind(("::", port)).expect("the web server's port is free");
        let shared = shared.clone();
        std::thread::spawn(move || serve_web(&listener, &shared));
    }
    let socket = UdpSocket::bind((NAME_SERVER, 53)).expect("the name server's port is free");
    std::thread::spawn(move || serve_names(&socket, &shared));
    println!("ready");
    // It ends with its starter.
    while let Some(Ok(_)) = orders.next() {}
    ExitCode::SUCCESS
}

fn note(shared: &Path, file: &str, line: &str) {
    let mut file: File =
        OpenOptions::new().append(true).create(true).open(shared.join(file)).expect("the notes can be kept");
    file.write_all(format!("{line}\n").as_bytes()).expect("the notes can be kept");
}

fn serve_web(listener: &TcpListener, shared: &Path) {
    for client in listener.incoming().flatten() {
        let shared = shared.to_owned();
        // A client that leaves early is none of the test's business.
        std::thread::spawn(move || drop(serve_client(client, &shared)));
    }
}

fn serve_client(mut client: TcpStream, shared: &Path) -> std::io::Result<()> {
    let address = client.local_addr()?.ip().to_canonical();
    let mut reader = BufReader::new(client.try_clone()?);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let (mut host, mut length, mut line) = (String::new(), 0, String::new());
        while reader.read_line(&mut line)? > 2 {
            let (name, value) = line.trim().split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "host" => host = value.trim().to_owned(),
                "content-length" => length = value.trim().parse().unwrap_or(0),
                _ => {}
            }
            line.clear();
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        let mut words = first.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        note(shared, HITS, &format!("{address} {method} {path} {host}"));
        if path == "/hold" {
            client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nheld\n")?;
            return reader.read_line(&mut first).map(drop);
        }
        client.write_all(&answer(shared, &format!("{address}"), path, &host))?;
    }
}

fn answer(shared: &Path, address: &str, path: &str, host: &str) -> Vec<u8> {
    let path = path.split('?').next().unwrap_or_default();
    let mut file = shared.join("www").join(path.trim_start_matches('/'));
    if file.is_dir() {
        file.push("index.html");
    }
    let (status, body) = match path {
        "/hello" => ("200 OK".to_owned(), format!("hello from {address} as {host}\n").into_bytes()),
        "/redirect" => ("302 Found\r\nLocation: http://169.254.169.254/redirected".to_owned(), Vec::new()),
        _ => match std::fs::read(&file) {
            Ok(content) => ("200 OK".to_owned(), content),
            Err(_) => ("404 Not Found".to_owned(), Vec::new()),
        },
    };
    let kind = match path {
        _ if path.starts_with("/simple") => "text/html",
        _ if path.ends_with("eyot-tiny") => "application/json",
        _ => "application/octet-stream",
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    [head.into_bytes(), body].concat()
}

fn serve_names(socket: &UdpSocket, shared: &Path) {
    let mut bytes = [0; 4096];
    let rebinds = AtomicUsize::new(0);
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        let Ok(query) = Message::from_vec(&bytes[..length]) else { continue };
        let Some(question) = query.queries.first().cloned() else { continue };
        let name = question.name().to_ascii().to_ascii_lowercase();
        note(shared, QUERIES, &format!("{name} {}", question.query_type()));
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.add_query(question.clone());
        answer.metadata.recursion_available = true;
        match records(name.trim_end_matches('.'), question.query_type(), &rebinds) {
            Some(found) => {
                for data in found {
                    let ttl = if name.starts_with("rebind") { 0 } else { 60 };
                    answer.add_answer(Record::from_rdata(question.name().clone(), ttl, data));
                }
            }
            None => answer.metadata.response_code = ResponseCode::NXDomain,
        }
        let bytes = answer.to_vec().expect("an answer can be written");
        socket.send_to(&bytes, from).expect("an answer can be sent");
    }
}

/// Returns the records of a name; `None` if the name does not exist.
fn records(name: &str, kind: RecordType, rebinds: &AtomicUsize) -> Option<Vec<RData>> {
    let addresses: &[&str] = match name {
        "pub.test" => &[PUBLIC, PUBLIC_V6],
        "index.test" | "cname.pub.test" | "*.pub.test" => &[PUBLIC],
        "other.test" => &[PUBLIC_TOO],
        "six.test" => &[PUBLIC_V6],
        "loop.test" => &["127.0.0.1", "::1"],
        "ten.test" | "cname-to.test" => &[NAME_SERVER],
        "own.test" => &[OWN_ADDRESS],
        "zero.test" => &["0.0.0.0"],
        "mapped.test" => &["::ffff:127.0.0.1"],
        "meta.test" => &["169.254.169.254"],
        "unique.test" => &["fd00:200::2"],
        "mixed.test" => &[NAME_SERVER, PUBLIC],
        "rebind.test" if kind != RecordType::A => &[],
        "rebind.test" if rebinds.fetch_add(1, Ordering::SeqCst) == 0 => &[PUBLIC],
        "rebind.test" => &["127.0.0.1"],
        _ if name.ends_with(".pub.test") => &[PUBLIC],
        _ => return None,
    };
    let of_kind = |address: &&&str| address.contains(':') == (kind == RecordType::AAAA);
    let asked = [RecordType::A, RecordType::AAAA].contains(&kind);
    let parsed = addresses.iter().filter(of_kind).filter(|_| asked);
    let mut found: Vec<RData> =
        parsed.map(|address| RData::from(std::net::IpAddr::from_str(address).expect("an address"))).collect();
    if name.starts_with("cname") && asked {
        // A chain in one answer, as resolvers give it.
        let target = if name == "cname-to.test" { "ten.test." } else { "pub.test." };
        found.insert(0, RData::CNAME(CNAME(Name::from_ascii(target).expect("a name"))));
    }
    Some(found)
}
