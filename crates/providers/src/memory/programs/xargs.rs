//! `xargs`.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::children::{ChildEnd, ChildInput};
use super::leading::about;
use super::quoting::shell_word;
use super::run::{Ending, ProgramRun, ShellProgram};
use super::xargs_input::{InputError, InputWord, Splitter};
use super::xargs_options::XargsRequest;

/// The children that run at once, however many were wanted.
const MAX_AT_ONCE: usize = 16;

/// Runs a command with the words of its input.
pub(super) struct Xargs;

#[async_trait]
impl ShellProgram for Xargs {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        if let Some(text) = about(run, "COMMAND [INITIAL-ARGS]...") {
            run.print(text).await?;
            return Ok(0);
        }
        let (request, warnings) = XargsRequest::read(run.args)?;
        for warning in warnings {
            run.complain(format!("warning: {warning}")).await?;
        }
        if request.asks {
            return Err(Ending::refused("failed to open /dev/tty for reading: No such device or address"));
        }
        let mut batches = Batches::new(run, &request);
        let read = batches.read_all().await;
        // What was started runs to its end, whatever the input was.
        let ended = batches.wait_for_all().await;
        read?;
        ended?;
        Ok(batches.status)
    }
}

/// The command lines of one run, as they fill and run.
struct Batches<'a, 'r> {
    run: &'a ProgramRun<'r>,
    request: &'a XargsRequest,
    args: Vec<String>,
    lines: usize,
    bytes: usize,
    has_run: bool,
    is_checked: bool,
    running: FuturesUnordered<futures_util::future::BoxFuture<'a, (usize, Result<ChildEnd, Ending>)>>,
    free_slots: BTreeSet<usize>,
    status: i32,
}

impl<'a, 'r> Batches<'a, 'r> {
    fn new(run: &'a ProgramRun<'r>, request: &'a XargsRequest) -> Self {
        let at_once = if request.at_once == 0 { MAX_AT_ONCE } else { request.at_once.min(MAX_AT_ONCE) };
        Self {
            run,
            request,
            args: Vec::new(),
            lines: 0,
            bytes: request.command_bytes(),
            has_run: false,
            is_checked: false,
            running: FuturesUnordered::new(),
            free_slots: (0..at_once).collect(),
            status: 0,
        }
    }

    async fn read_all(&mut self) -> Result<(), Ending> {
        let mut splitter = Splitter::new(self.request.splitting.clone(), self.request.end_word.clone());
        let mut is_warned = false;
        let mut file = read_file(self.run, self.request).await?;
        loop {
            let bytes = match &mut file {
                Some(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
                None => self.run.read_input().await?,
            };
            let Some(bytes) = bytes else { break };
            for byte in bytes {
                let word = splitter.take(byte).map_err(refused)?;
                if splitter.has_zero && !is_warned {
                    is_warned = true;
                    self.run.complain(ZERO_BYTE).await?;
                }
                if let Some(word) = word {
                    self.add(word).await?;
                } else if splitter.pending_bytes() > self.request.max_bytes {
                    return Err(Ending::refused("argument line too long"));
                }
            }
            if splitter.has_ended {
                break;
            }
            self.run.breathe().await;
        }
        for word in splitter.finish().map_err(refused)? {
            self.add(word).await?;
        }
        let runs_empty = !self.has_run && !self.request.skips_empty && self.request.replaced.is_none();
        if !self.args.is_empty() || runs_empty { self.start().await } else { Ok(()) }
    }

    /// Adds a word to the command line, which runs once it is full.
    async fn add(&mut self, word: InputWord) -> Result<(), Ending> {
        let text = String::from_utf8_lossy(&word.text).into_owned();
        if self.request.replaced.is_some() {
            self.args.push(text);
            return self.start().await;
        }
        let needed = text.len() + 1;
        if self.bytes + needed > self.request.max_bytes {
            if self.args.is_empty() {
                return Err(Ending::refused("argument line too long"));
            }
            if self.request.must_fit {
                return Err(Ending::refused("argument list too long"));
            }
            self.start().await?;
            if self.bytes + needed > self.request.max_bytes {
                return Err(Ending::refused("argument line too long"));
            }
        }
        self.bytes += needed;
        self.args.push(text);
        self.lines += usize::from(word.ends_line);
        let is_full = self.request.max_args.is_some_and(|most| self.args.len() >= most)
            || self.request.max_lines.is_some_and(|most| self.lines >= most);
        if is_full { self.start().await } else { Ok(()) }
    }

    /// The words of the next command.
    fn argv(&mut self) -> Result<Vec<String>, Ending> {
        let args = std::mem::take(&mut self.args);
        let Some(pattern) = &self.request.replaced else {
            return Ok(self.request.command.iter().cloned().chain(args).collect());
        };
        let text = args.first().map_or("", String::as_str);
        let (program, rest) = self.request.command.split_first().map_or(("", &[][..]), |(p, r)| (p, r));
        let mut argv = vec![program.to_owned()];
        let mut bytes = program.len();
        for word in rest {
            let word = word.replace(pattern.as_str(), text);
            bytes += word.len() + 1;
            if bytes > self.request.max_bytes {
                return Err(Ending::refused("argument list too long"));
            }
            argv.push(word);
        }
        Ok(argv)
    }

    async fn start(&mut self) -> Result<(), Ending> {
        let argv = self.argv()?;
        (self.lines, self.bytes, self.has_run) = (0, self.request.command_bytes(), true);
        while self.free_slots.is_empty() {
            self.wait_for_one().await?;
        }
        let slot = self.free_slots.pop_first().unwrap_or(0);
        let (run, request) = (self.run, self.request);
        if request.is_shown {
            let shown: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
            run.write_error(format!("{}\n", shown.join(" "))).await?;
        }
        if !self.is_checked {
            let program = argv.first().map_or("", String::as_str);
            let path = run.env.get("PATH").map(String::as_str);
            if let Err(error) = run.check_command(program, run.cwd, path).await {
                return Err(Ending::with_status(format!("{program}: {}", error.reason()), error.status()));
            }
            self.is_checked = true;
        }
        let mut child = run.child(argv, ChildInput::Empty);
        if let Some(name) = &request.slot_variable {
            child.env.insert(name.clone(), slot.to_string());
        }
        self.running.push(Box::pin(async move { (slot, run.run_child(child).await) }));
        if self.free_slots.is_empty() { self.wait_for_one().await } else { Ok(()) }
    }

    async fn wait_for_one(&mut self) -> Result<(), Ending> {
        let Some((slot, ended)) = self.running.next().await else { return Ok(()) };
        self.free_slots.insert(slot);
        match ended? {
            ChildEnd::Exited(0) => Ok(()),
            ChildEnd::Exited(255) => {
                let program = self.request.command.first().map_or("", String::as_str);
                Err(Ending::with_status(format!("{program}: exited with status 255; aborting"), 124))
            }
            _ => {
                self.status = 123;
                Ok(())
            }
        }
    }

    async fn wait_for_all(&mut self) -> Result<(), Ending> {
        while !self.running.is_empty() {
            self.wait_for_one().await?;
        }
        Ok(())
    }
}

async fn read_file(run: &ProgramRun<'_>, request: &XargsRequest) -> Result<Option<Vec<u8>>, Ending> {
    let Some(name) = &request.file else { return Ok(None) };
    match run.read(name).await? {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(reason) => Err(Ending::refused(format!("Cannot open input file ‘{name}’: {reason}"))),
    }
}

const ZERO_BYTE: &str = "WARNING: a NUL character occurred in the input.  It cannot be passed through in the \
                         argument list.  Did you mean to use the --null option?";

fn refused(error: InputError) -> Ending {
    let InputError::OpenQuote(kind) = error;
    let advice = "by default quotes are special to xargs unless you use the -0 option";
    Ending::refused(format!("unmatched {kind} quote; {advice}"))
}
