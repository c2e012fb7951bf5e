//! Requests of a client to the guest, as any bytes. They are the same however the bytes are cut, no
//! call's number is used twice, and every refusal has a reason.

use std::collections::BTreeSet;

use eyot_guest::program::fuzzing;
use eyot_guest::protocol::{
    GuestConfig, Header, Hello, Identity, Kind, Location, MAJOR, MINOR, Request, decode, encode,
};

const NONCE: [u8; 16] = [1; 16];

/// Reads `data`, whose first byte says how the rest is cut and (its highest bit) whether a valid
/// greeting comes before.
pub fn run(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else {
        return;
    };
    let mut stream = if how & 0x80 == 0 { greeting() } else { Vec::new() };
    stream.extend_from_slice(bytes);
    let whole = fuzzing::requests(&stream, usize::MAX, &config());
    let pieces = fuzzing::requests(&stream, usize::from(how & 0x7f), &config());
    assert_eq!(whole, pieces, "how the bytes are cut must not matter");
    let (requests, ended) = whole;
    if let Err(refusal) = ended {
        assert!(!refusal.message.is_empty() && refusal.kind != "internal", "{refusal:?}");
    }
    let numbers: BTreeSet<u32> = requests.iter().map(|(call, _)| *call).collect();
    assert!(numbers.len() == requests.len() && !numbers.contains(&0), "a number was used twice");
    for (_, request) in requests {
        assert_eq!(decode::<Request>(&encode(&request)).as_ref(), Ok(&request));
    }
}

fn config() -> GuestConfig {
    let user = Identity {
        name: "user".to_owned(),
        uid: 1000,
        gid: 1000,
        home: "/home/user".to_owned(),
        capabilities: 0,
    };
    GuestConfig {
        client_nonce: NONCE,
        guest_nonce: NONCE,
        ttl_ms: None,
        idle_timeout_ms: None,
        user,
        users: Vec::new(),
        env: Vec::new(),
        switch_user: false,
        log_bytes: 1 << 16,
        max_processes: None,
        forbid_setuid: false,
        memory_events_fd: None,
        last_process_id: 0,
        later_users: None,
        late_files: Vec::new(),
    }
}

fn greeting() -> Vec<u8> {
    frame(Kind::Hello, 0, false, &encode(&Hello { major: MAJOR, minor: MINOR, nonce: NONCE }))
}

fn frame(kind: Kind, call: u32, more: bool, payload: &[u8]) -> Vec<u8> {
    let header = Header { kind, channel: 0, more, call };
    [&header.to_bytes(payload.len())[..], payload].concat()
}

/// Returns the fuzzer's starting inputs.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let at = Location { path: "/workspace/a".into(), beneath: Some("/workspace".into()) };
    let stat = encode(&Request::Stat(at.clone()));
    let glob = encode(&Request::Glob(at, "**/*.rs".to_owned(), false, 9));
    let whole = frame(Kind::Request, 1, false, &stat);
    let (one, other) = stat.split_at(5);
    let parts = [
        frame(Kind::Request, 2, true, one),
        frame(Kind::Request, 3, true, &glob[..4]),
        frame(Kind::Request, 2, false, other),
        frame(Kind::Request, 3, false, &glob[4..]),
    ];
    let cancelled = [whole.clone(), frame(Kind::Cancel, 1, false, b""), whole.clone()].concat();
    let seed = |how: u8, stream: Vec<u8>| [vec![how], stream].concat();
    vec![
        ("one", seed(0x7f, whole.clone())),
        ("parts", seed(3, parts.concat())),
        ("twice", seed(20, cancelled)),
        ("greeting", seed(0x81, [greeting(), whole].concat())),
    ]
}
