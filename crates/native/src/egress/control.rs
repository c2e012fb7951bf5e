//! The client of a sandbox's egress program. It talks over the socket in the sandbox's directory,
//! so any process of the sandbox's owner can use it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use eyot::{EgressDecision, EgressRules, Error, ErrorKind, Result};
use eyot_egress::control::{ControlRequest, ControlResponse, MAX_LINE_BYTES};
use eyot_guest::client::EgressControl;
use futures_util::stream::{self, BoxStream, StreamExt};
use rustix::fs::FlockOperation;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::condition::Condition;
use crate::ready::ReadyMark;
use crate::record::path_below;

/// The name of the control socket in the sandbox's directory.
pub(crate) const SOCKET: &str = "egress.sock";
/// The file with the rules, if they were changed after the create.
const RULES: &str = "egress.json";
const RULES_IN_THE_MAKING: &str = "egress.json.new";
/// The lock that a change of the rules holds, so that the file always has the rules that are in
/// force.
const LOCK: &str = "egress.lock";

/// A connection point to the egress program of one sandbox.
pub(crate) struct EgressProgramClient {
    directory: PathBuf,
}

/// Reads the rules of a sandbox, if they were changed after its create.
pub(crate) fn changed_rules(directory: &Path) -> io::Result<Option<EgressRules>> {
    match fs::read(directory.join(RULES)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl EgressProgramClient {
    /// Addresses the egress program of the sandbox in this directory.
    pub(crate) fn of(directory: PathBuf) -> Self {
        Self { directory }
    }

    async fn ask(&self, ask: &ControlRequest) -> Result<Answers> {
        let asked = async {
            // A program whose guest was killed just now may still answer.
            if ReadyMark::read(&self.directory)?.is_some_and(|ready| ready.is_asleep(&self.directory)) {
                return Err(io::ErrorKind::NotConnected.into());
            }
            let (_open, path) = path_below(&self.directory, SOCKET)?;
            let mut socket = UnixStream::connect(path).await?;
            let mut line = serde_json::to_vec(ask)?;
            line.push(b'\n');
            socket.write_all(&line).await?;
            Ok(Answers { lines: BufReader::new(socket) })
        };
        asked.await.map_err(|error| self.lost(error))
    }

    fn lost(&self, error: io::Error) -> Error {
        match Condition::of(&self.directory) {
            (Some(record), Condition::Sleeping) => Error::sleeping(record.info.name),
            _ if self.directory.exists() => {
                Error::new(ErrorKind::Unavailable, "its egress program does not answer").with_source(error)
            }
            _ => Error::new(ErrorKind::Destroyed, "the sandbox has been destroyed"),
        }
    }

    async fn status(&self, ask: &ControlRequest) -> Result<EgressRules> {
        match self.ask(ask).await?.next().await.map_err(|error| self.lost(error))? {
            Some(ControlResponse::Status { rules, .. }) => Ok(rules),
            Some(ControlResponse::Refused { reason }) => Err(Error::new(ErrorKind::Invalid, reason)),
            Some(ControlResponse::Decision(_)) | None => Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    async fn lock(&self) -> Result<File> {
        let path = self.directory.join(LOCK);
        let locked = tokio::task::spawn_blocking(move || {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            io::Result::Ok(file)
        });
        let locked = locked.await.map_err(io::Error::other).and_then(|locked| locked);
        locked.map_err(|error| self.lost(error))
    }

    fn keep(&self, rules: &EgressRules) -> io::Result<()> {
        let made = self.directory.join(RULES_IN_THE_MAKING);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&made)?;
        file.write_all(&serde_json::to_vec(rules)?)?;
        fs::rename(made, self.directory.join(RULES))
    }
}

#[async_trait]
impl EgressControl for EgressProgramClient {
    async fn rules(&self) -> Result<EgressRules> {
        self.status(&ControlRequest::Status).await
    }

    async fn set_rules(&self, rules: &EgressRules) -> Result<()> {
        let _alone = self.lock().await?;
        let held = self.status(&ControlRequest::SetRules { rules: rules.clone() }).await?;
        self.keep(&held).map_err(|error| self.lost(error))
    }

    async fn decisions(
        &self,
        last: usize,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>> {
        let answers = self.ask(&ControlRequest::Decisions { last, follow }).await?;
        let next = async |mut answers: Answers| match answers.next().await {
            Ok(Some(ControlResponse::Decision(decision))) => Some((Ok(decision), answers)),
            // The sandbox's end is the stream's.
            Ok(_) => None,
            Err(error) => {
                let message = "its egress program does not answer";
                Some((Err(Error::new(ErrorKind::Unavailable, message).with_source(error)), answers))
            }
        };
        Ok(stream::unfold(answers, next).boxed())
    }
}

/// The answers of the program, one line each.
struct Answers {
    lines: BufReader<UnixStream>,
}

impl Answers {
    /// Reads the next answer; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<ControlResponse>> {
        let mut line = String::new();
        let mut bounded = (&mut self.lines).take(MAX_LINE_BYTES as u64);
        match bounded.read_line(&mut line).await {
            Ok(0) => Ok(None),
            // It ended with its sandbox, in the middle of something.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
            Err(error) => Err(error),
        }
    }
}
