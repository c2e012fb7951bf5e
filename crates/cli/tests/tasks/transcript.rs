//! An agent's transcript: its actions in a sandbox, and what it sees, as text. Two sandboxes in
//! which the same happened have the same transcript. Only a task itself leaves anything out.

use std::fmt::{Display, Write};

use eyot::{ByteStream, ExecOptions, ExecResult, Log, Sandbox, Stdin};
use futures_util::TryStreamExt;
use libtest_mimic::Failed;

/// The result of a step.
pub type Check<T = ()> = Result<T, Failed>;

/// An agent at work.
pub struct Agent<'a> {
    /// The agent's sandbox.
    pub sandbox: &'a Sandbox,
    told: String,
}

impl<'a> Agent<'a> {
    /// Makes an agent that has done nothing yet.
    pub fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, told: String::new() }
    }

    /// Returns the transcript.
    pub fn told(self) -> String {
        self.told
    }

    /// Runs a shell line, whatever its result.
    pub async fn run(&mut self, line: &str) -> Check {
        self.run_with(line, ExecOptions::default()).await.map(drop)
    }

    /// Runs shell lines one after the other, whatever their results.
    pub async fn run_all(&mut self, lines: &[&str]) -> Check {
        for line in lines {
            self.run(line).await?;
        }
        Ok(())
    }

    /// Runs a shell line with this input.
    pub async fn run_reading(&mut self, line: &str, input: impl Into<eyot::Bytes>) -> Check {
        let options = ExecOptions { stdin: Stdin::Bytes(input.into()), ..ExecOptions::default() };
        self.run_with(line, options).await.map(drop)
    }

    /// Runs a shell line with options, and notes its output, and its outcome unless that is 0.
    pub async fn run_with(&mut self, line: &str, options: ExecOptions) -> Check<ExecResult> {
        let result = self.sandbox.exec(line, options).await?;
        self.note(format_args!("$ {line}"));
        self.lines("", &result.stdout_text());
        self.lines("! ", &result.stderr_text());
        if !result.success() {
            self.note(format_args!("= {:?}", result.outcome));
        }
        Ok(result)
    }

    /// Writes a file.
    pub async fn write(&mut self, path: &str, content: &str) -> Check {
        Ok(self.sandbox.write(path, content.to_owned()).await?)
    }

    /// Notes a line.
    pub fn note(&mut self, what: impl Display) {
        self.lines("", &format!("{what}\n"));
    }

    /// Notes a text without the sandbox's name, which differs everywhere.
    pub fn note_without_name(&mut self, what: &str) {
        self.note(what.replace(self.sandbox.name().as_str(), "NAME"));
    }

    /// Notes a text line by line, so that a last line without an end shows.
    fn lines(&mut self, mark: &str, text: &str) {
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, "\\ no line end"), |line| (line, ""));
            writeln!(self.told, "{mark}{}{end}", line.replace('\r', "\\r")).expect("strings take everything");
        }
    }
}

/// Returns all bytes of a stream.
pub async fn bytes_of(stream: ByteStream) -> Check<Vec<u8>> {
    Ok(stream.map_ok(|piece| piece.to_vec()).try_concat().await?)
}

/// Returns the whole log, as text.
pub async fn text_of(log: Log) -> Check<String> {
    let bytes: Vec<u8> = log.map_ok(|chunk| chunk.data.to_vec()).try_concat().await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
