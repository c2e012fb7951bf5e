//! A streamed command, as a client has it whose server may die: it goes on behind the last event that came.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use libtest_mimic::Failed;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::servers::Replica;
use crate::tried::{Tried, ensure};

/// A command in a sandbox that writes numbered lines, with pauses.
pub struct StreamedLines {
    path: String,
    /// The lines that it writes in all.
    lines: usize,
    /// None once the connection has ended.
    events: Option<BoxStream<'static, Result<Sse, SseError>>>,
    last_id: Option<String>,
    output: String,
    end: Option<Value>,
}

impl StreamedLines {
    /// Starts the command.
    pub async fn start(replica: &Replica, key: &str, sandbox: &str, lines: usize) -> Result<Self, Failed> {
        let path = format!("sandboxes/{sandbox}/exec/stream");
        let command = format!("for i in $(seq {lines}); do echo $i; sleep 0.02; done; exit 7");
        let request =
            replica.request(key, Method::POST, &path).body(json!({ "command": command }).to_string());
        let mut events = events(request.send().await?)?;
        let started = events.next().await.ok_or("no event comes")??;
        ensure(started.event.as_deref() == Some("started"), format!("{started:?}"))?;
        let started: Value = serde_json::from_str(&started.data.unwrap_or_default())?;
        let exec = started["exec"].as_str().ok_or("the command has no id")?;
        let (output, path) = (String::new(), format!("{path}/{exec}"));
        Ok(Self { path, lines, events: Some(events), last_id: None, output, end: None })
    }

    /// Takes the stream up at a server.
    pub async fn take_up(&mut self, replica: &Replica, key: &str) -> Tried {
        let request = replica.request(key, Method::GET, &self.path);
        let request = self.last_id.iter().fold(request, |request, id| request.header("last-event-id", id));
        self.events = Some(events(request.send().await?)?);
        Ok(())
    }

    /// Reads until so many lines have come, the command has ended, or the connection has.
    pub async fn read(&mut self, lines: usize) -> Tried {
        while self.output.lines().count() < lines
            && self.end.is_none()
            && let Some(events) = &mut self.events
        {
            match events.next().await {
                Some(Ok(event)) => self.add(event)?,
                Some(Err(_)) | None => self.events = None,
            }
        }
        Ok(())
    }

    /// Reads to the end of the command or of the connection.
    pub async fn read_all(&mut self) -> Tried {
        self.read(usize::MAX).await
    }

    fn add(&mut self, event: Sse) -> Tried {
        self.last_id = event.id.or(self.last_id.take());
        // Comments keep the connection alive.
        let Some(data) = event.data else { return Ok(()) };
        let value: Value = serde_json::from_str(&data)?;
        match event.event.as_deref() {
            Some("stdout") => {
                let piece = value["data"].as_str().ok_or("a piece without its data")?;
                self.output.push_str(std::str::from_utf8(&BASE64_STANDARD.decode(piece)?)?);
            }
            Some("end") => self.end = Some(value),
            other => return Err(format!("the event {other:?}: {value}").into()),
        }
        Ok(())
    }

    /// Returns the number of lines that have come.
    pub fn count(&self) -> usize {
        self.output.lines().count()
    }

    /// Tells whether the connection has ended before the command did.
    pub fn is_cut(&self) -> bool {
        self.events.is_none() && self.end.is_none()
    }

    /// Checks that every line came once and in order, and the end with its exit code.
    pub fn check(&self) -> Tried {
        let expected: String = (1..=self.lines).map(|line| format!("{line}\n")).collect();
        ensure(self.output == expected, format!("these came: {:?}", self.output))?;
        ensure(
            self.end.as_ref().is_some_and(|end| end["exit_code"] == 7),
            format!("it ended with {:?}", self.end),
        )
    }
}

fn events(answer: Response) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
    ensure(answer.status() == 200, format!("a stream is refused: {}", answer.status()))?;
    Ok(SseStream::from_bytes_stream(answer.bytes_stream()).boxed())
}
