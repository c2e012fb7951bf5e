//! Frames from a guest or a client, as any bytes: no panic, and no more memory than a frame and the
//! last piece. The frames are the same however the bytes are cut, and every message is either read
//! or refused.

use eyot_guest::protocol::{
    Control, Decoder, Event, Failure, FileEntry, Frame, GuestConfig, HEADER_BYTES, Header, Hello, Kind,
    MAX_FRAME_BYTES, Message, Reply, Request, Welcome, decode, encode,
};

/// Decodes `data`: its first byte says how the rest is cut.
pub fn run(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else {
        return;
    };
    let whole = frames_of(bytes, usize::MAX);
    let pieces = frames_of(bytes, usize::from(*cut).max(1));
    assert_eq!(whole, pieces, "how the bytes are cut must not matter");
    for frame in &whole {
        reencode(frame);
        try_every_message(&frame.payload);
    }
    try_every_message(bytes);
}

/// The frames up to the first that is none, fed in pieces of `size` bytes.
fn frames_of(bytes: &[u8], size: usize) -> Vec<Frame> {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    let mut fed = 0;
    let mut used = 0;
    for piece in bytes.chunks(size) {
        decoder.push(piece);
        fed += piece.len();
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    used += HEADER_BYTES + frame.payload.len();
                    frames.push(frame);
                }
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
        assert_eq!(decoder.is_midway(), used < fed);
        assert!(fed - used < MAX_FRAME_BYTES, "the decoder holds more than a frame");
    }
    frames
}

fn reencode(frame: &Frame) {
    let bytes = frame.header.to_bytes(frame.payload.len());
    assert_eq!(Header::from_bytes(&bytes), Ok((frame.header, frame.payload.len())));
}

fn try_every_message(bytes: &[u8]) {
    try_message::<Request>(bytes);
    try_message::<Reply>(bytes);
    try_message::<Event>(bytes);
    try_message::<Control>(bytes);
    try_message::<Failure>(bytes);
    try_message::<Hello>(bytes);
    try_message::<Welcome>(bytes);
    try_message::<GuestConfig>(bytes);
    try_message::<Vec<FileEntry>>(bytes);
}

/// A message that is read survives being written and read again.
fn try_message<M: Message + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(message) = decode::<M>(bytes) {
        assert_eq!(decode::<M>(&encode(&message)).as_ref(), Ok(&message));
    }
}

/// Frames as both sides really send them, each led by the byte that says how it is cut.
#[allow(clippy::too_many_lines)] // a list: one entry a kind of frame
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    use eyot_guest::protocol::{CommandSpec, Exec, FileKind, GlobMatches, Location, Status};
    let at = Location { path: "/workspace/a".into(), beneath: Some("/workspace".into()) };
    let command = CommandSpec::Shell("true".into());
    let exec = Exec {
        command,
        cwd: at.clone(),
        env: vec![("A".into(), "b".into())],
        user: None,
        stdin: true,
        terminal: None,
    };
    let glob = Reply::Glob(GlobMatches { paths: vec!["/a".into(), "/b".into()], truncated: true });
    let failure = Failure { kind: "not_found".into(), message: "no such file".into() };
    let entries = vec![FileEntry { name: b"a\xff".to_vec(), kind: FileKind::Symlink, size: 3 }];
    vec![
        ("hello", seed(7, &[(Kind::Hello, 0, encode(&Hello { major: 1, minor: 0, nonce: [1; 16] }))])),
        (
            "welcome",
            seed(
                255,
                &[(
                    Kind::Welcome,
                    0,
                    encode(&Welcome { major: 1, minor: 0, nonce: [2; 16], protections: None }),
                )],
            ),
        ),
        (
            "exec",
            seed(3, &[(Kind::Request, 1, encode(&Request::Exec(exec))), (Kind::Data, 1, b"in".to_vec())]),
        ),
        (
            "read",
            seed(1, &[(Kind::Request, 2, encode(&Request::Read(at, 1, Some(2)))), (Kind::Cancel, 2, vec![])]),
        ),
        (
            "exited",
            seed(
                16,
                &[
                    (Kind::Event, 1, encode(&Event::Started(7))),
                    (Kind::Data, 1, b"out".to_vec()),
                    (Kind::Reply, 1, encode(&Reply::Exited(Status::Signaled(9), None))),
                ],
            ),
        ),
        ("glob", seed(64, &[(Kind::Reply, 3, encode(&glob)), (Kind::Failure, 4, encode(&failure))])),
        (
            "list",
            seed(9, &[(Kind::Data, 5, encode(&entries)), (Kind::Credit, 5, 1u32.to_le_bytes().to_vec())]),
        ),
        ("control", seed(2, &[(Kind::Control, 6, encode(&Control::Signal(15))), (Kind::End, 6, vec![])])),
    ]
}

fn seed(cut: u8, frames: &[(Kind, u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![cut];
    for (kind, call, payload) in frames {
        let header = Header { kind: *kind, channel: 0, more: false, call: *call };
        bytes.extend_from_slice(&header.to_bytes(payload.len()));
        bytes.extend_from_slice(payload);
    }
    bytes
}
