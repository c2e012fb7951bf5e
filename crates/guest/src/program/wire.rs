//! Frames as bytes, ready to be sent.

use crate::protocol::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD_BYTES, Message, encode};

/// Appends a message, in as many frames as it needs.
pub fn push_message(out: &mut Vec<u8>, kind: Kind, call: u32, message: &impl Message) {
    let bytes = encode(message);
    let mut rest = bytes.as_slice();
    loop {
        let (piece, after) = rest.split_at(rest.len().min(MAX_PAYLOAD_BYTES));
        rest = after;
        push_frame(out, Header { kind, channel: 0, more: !rest.is_empty(), call }, &[piece]);
        if rest.is_empty() {
            return;
        }
    }
}

/// Appends one frame of data, at most [`MAX_PAYLOAD_BYTES`] long, made of these parts.
pub fn push_data(out: &mut Vec<u8>, call: u32, channel: u8, parts: &[&[u8]]) {
    push_frame(out, Header { kind: Kind::Data, channel, more: false, call }, parts);
}

/// The header of a frame of data with a payload of this many bytes.
pub fn data_header(call: u32, channel: u8, length: usize) -> [u8; HEADER_BYTES] {
    Header { kind: Kind::Data, channel, more: false, call }.to_bytes(length)
}

/// Appends the end of a channel.
pub fn push_end(out: &mut Vec<u8>, call: u32, channel: u8) {
    push_frame(out, Header { kind: Kind::End, channel, more: false, call }, &[]);
}

/// Appends a grant of `bytes` more.
pub fn push_credit(out: &mut Vec<u8>, call: u32, channel: u8, bytes: u32) {
    let header = Header { kind: Kind::Credit, channel, more: false, call };
    push_frame(out, header, &[&bytes.to_le_bytes()]);
}

fn push_frame(out: &mut Vec<u8>, header: Header, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum();
    out.reserve(HEADER_BYTES + length);
    out.extend_from_slice(&header.to_bytes(length));
    for part in parts {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Decoder, GlobMatches, Reply, decode};

    #[test]
    fn a_long_message_travels_in_several_frames_and_arrives_whole() {
        let reply = Reply::Glob(GlobMatches { paths: vec!["/a".repeat(90_000)], truncated: false });
        let (mut bytes, mut decoder, mut message) = (Vec::new(), Decoder::new(), Vec::new());
        push_message(&mut bytes, Kind::Reply, 9, &reply);
        decoder.push(&bytes);
        let mut mores = Vec::new();
        while let Some(frame) = decoder.next_frame().unwrap() {
            mores.push(frame.header.more);
            message.extend(frame.payload);
        }
        assert_eq!(mores, [true, true, false]);
        assert_eq!(decode::<Reply>(&message), Ok(reply));
    }
}
