//! Streams of messages from envd: Connect's envelopes with JSON, and the events of a process in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use eyot::{Error, ErrorKind, Result};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;
use serde::Deserialize;

/// The flag of the envelope that ends a stream.
const END_STREAM: u8 = 0b10;
/// The flags and the length before each message.
const HEADER_BYTES: usize = 5;
/// The largest message that is read, in bytes. Output comes in pieces of 32 KiB.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// An event of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProcessEvent {
    /// It has this number.
    Start(u32),
    /// Bytes on standard output, or on the terminal.
    Stdout(Bytes),
    /// Bytes on standard error.
    Stderr(Bytes),
    /// It has ended.
    End(ProcessEnd),
    /// A sign of life, or something that this version does not know.
    Other,
}

/// The end of a process, as envd tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessEnd {
    #[serde(default)]
    pub exit_code: i32,
    #[serde(default)]
    pub exited: bool,
    #[serde(default)]
    pub status: String,
}

/// The reason why a stream gave no event.
#[derive(Debug)]
pub(super) enum StreamFailure {
    /// envd ended it with this code.
    Refused { code: String },
    /// It broke off.
    Broken(Error),
}

/// The events of one process.
pub(super) struct ProcessEvents {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    read: BytesMut,
}

#[derive(Deserialize)]
struct StreamMessage {
    event: Option<ToldEvent>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToldEvent {
    start: Option<Start>,
    data: Option<Data>,
    end: Option<ProcessEnd>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    pid: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    stdout: Option<String>,
    stderr: Option<String>,
    pty: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EndOfStream {
    error: Option<StreamError>,
}

#[derive(Deserialize)]
struct StreamError {
    #[serde(default)]
    code: String,
}

impl ProcessEvents {
    pub fn new(response: Response) -> Self {
        Self { bytes: response.bytes_stream().boxed(), read: BytesMut::new() }
    }

    /// Waits for the next event. It may be dropped while it waits: no bytes are lost.
    pub async fn next(&mut self) -> Result<ProcessEvent, StreamFailure> {
        loop {
            if let Some((flags, message)) = self.take()? {
                return if flags & END_STREAM != 0 { Err(ended(&message)) } else { event(&message) };
            }
            match self.bytes.next().await {
                Some(Ok(bytes)) => self.read.extend_from_slice(&bytes),
                Some(Err(error)) => {
                    return Err(StreamFailure::Broken(broken().with_source(error.without_url())));
                }
                None => return Err(StreamFailure::Broken(broken())),
            }
        }
    }

    /// Takes a whole message out of what was read.
    fn take(&mut self) -> Result<Option<(u8, Bytes)>, StreamFailure> {
        let Some(header) = self.read.get(..HEADER_BYTES) else { return Ok(None) };
        let flags = header[0];
        let length = header[1..].iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        if length > MAX_MESSAGE_BYTES {
            return Err(StreamFailure::Broken(unreadable()));
        }
        if self.read.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.read.advance(HEADER_BYTES);
        Ok(Some((flags, self.read.split_to(length).freeze())))
    }
}

/// Puts a message into an envelope.
pub(super) fn envelope(message: &[u8]) -> Bytes {
    // A request is far shorter than an envelope may be.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat().into()
}

fn broken() -> Error {
    Error::new(ErrorKind::Unavailable, "the connection to the sandbox was lost while the call was in flight")
}

fn unreadable() -> Error {
    Error::new(ErrorKind::Unavailable, "the sandbox's answer can't be read")
}

fn ended(message: &[u8]) -> StreamFailure {
    let end: EndOfStream = serde_json::from_slice(message).unwrap_or_default();
    match end.error {
        Some(StreamError { code }) => StreamFailure::Refused { code },
        None => StreamFailure::Broken(broken()),
    }
}

fn event(message: &[u8]) -> Result<ProcessEvent, StreamFailure> {
    let wrong = |error: serde_json::Error| StreamFailure::Broken(unreadable().with_source(error));
    let StreamMessage { event } = serde_json::from_slice(message).map_err(wrong)?;
    let bytes = |text: String| {
        let decoded = STANDARD.decode(text).map(Bytes::from);
        decoded.map_err(|error| StreamFailure::Broken(unreadable().with_source(error)))
    };
    Ok(match event.unwrap_or_default() {
        ToldEvent { start: Some(start), .. } => ProcessEvent::Start(start.pid),
        ToldEvent { end: Some(end), .. } => ProcessEvent::End(end),
        ToldEvent { data: Some(Data { stdout: Some(text), .. } | Data { pty: Some(text), .. }), .. } => {
            ProcessEvent::Stdout(bytes(text)?)
        }
        ToldEvent { data: Some(Data { stderr: Some(text), .. }), .. } => ProcessEvent::Stderr(bytes(text)?),
        ToldEvent { .. } => ProcessEvent::Other,
    })
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn events(pieces: Vec<Bytes>) -> ProcessEvents {
        ProcessEvents { bytes: stream::iter(pieces.into_iter().map(Ok)).boxed(), read: BytesMut::new() }
    }

    #[tokio::test]
    async fn events_are_read_however_their_bytes_are_cut() {
        let messages = [
            r#"{"event":{"start":{"pid":7}}}"#,
            r#"{"event":{"data":{"stdout":"aGk="}}}"#,
            r#"{"event":{"keepalive":{}}}"#,
            r#"{"event":{"end":{"exitCode":3,"exited":true,"status":"exit status 3","new":1}}}"#,
        ];
        let bytes: Vec<u8> = messages.iter().flat_map(|message| envelope(message.as_bytes())).collect();
        let mut events = events(bytes.iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect());
        assert_eq!(events.next().await.unwrap(), ProcessEvent::Start(7));
        assert_eq!(events.next().await.unwrap(), ProcessEvent::Stdout(Bytes::from("hi")));
        assert_eq!(events.next().await.unwrap(), ProcessEvent::Other);
        let end = ProcessEnd { exit_code: 3, exited: true, status: "exit status 3".to_owned() };
        assert_eq!(events.next().await.unwrap(), ProcessEvent::End(end));
        assert!(matches!(events.next().await, Err(StreamFailure::Broken(_))));
    }

    #[tokio::test]
    async fn a_message_past_the_limit_is_not_awaited() {
        let header =
            |length: usize| Bytes::from([&[0][..], &u32::try_from(length).unwrap().to_be_bytes()].concat());
        let mut past = events(vec![header(MAX_MESSAGE_BYTES + 1)]);
        let Err(StreamFailure::Broken(error)) = past.next().await else { panic!("it was read") };
        assert_eq!(error.reason(), unreadable().reason());
        let mut at_limit = events(vec![header(MAX_MESSAGE_BYTES)]);
        let Err(StreamFailure::Broken(error)) = at_limit.next().await else { panic!("it was read") };
        assert_eq!(error.reason(), broken().reason());
    }

    #[tokio::test]
    async fn the_end_of_a_stream_has_envds_code() {
        let mut end = envelope(br#"{"error":{"code":"not_found","message":"no process"}}"#).to_vec();
        end[0] = END_STREAM;
        let Err(StreamFailure::Refused { code }) = events(vec![end.into()]).next().await else {
            panic!("no end")
        };
        assert_eq!(code, "not_found");
    }
}
