//! Work that never waits, such as packing or a filter of `jq`. It has a thread of its own, so that
//! the interpreter's stays free to notice a deadline. The work asks for everything that the
//! interpreter holds, and ends at its next look once nobody wants it any more.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use eyot::WatchEventKind;
use tokio::sync::mpsc;

use super::children::{ChildEnd, ChildInput};
use super::read_bytes::ReadError;
use super::run::{Ending, ProgramRun};
use super::streams::ProgramOutput;
use crate::memory::content::FileContent;
use crate::memory::files::{HeldFiles, MemoryFiles};
use crate::memory::node::{FileAccess, FileNode, NodeContent, is_a_directory};
use crate::memory::place::Place;
use crate::memory::walk::{Last, find_from};

/// The pieces of output that wait for the interpreter.
const MAX_WAITING: usize = 4;
/// Memory for calls within calls. The system gives it as it is used.
pub(super) const STACK_BYTES: usize = 256 << 20;

/// The content of a file, or the reason why there is none.
pub(super) type ReadFile = Result<FileContent, ReadError>;

enum WorkerRequest {
    Print(Vec<u8>),
    PrintError(Vec<u8>),
    Input(SyncSender<Option<Vec<u8>>>),
    File(String, SyncSender<ReadFile>),
    /// A command to run. With `is_kept`, its output is returned instead of printed.
    Command {
        command: String,
        input: ChildInput,
        is_kept: bool,
        answer: SyncSender<(Vec<u8>, i32)>,
    },
}

/// The part of a command that its work sees.
pub(super) struct Worker {
    pub files: MemoryFiles,
    pub cwd: PathBuf,
    /// The shell's mask.
    pub mask: u32,
    stop: Arc<AtomicBool>,
    requests: mpsc::Sender<WorkerRequest>,
}

/// Does the work beside the interpreter, and returns its status.
pub(super) async fn work(
    run: &ProgramRun<'_>,
    task: impl FnOnce(&Worker) -> Result<i32, Ending> + Send + 'static,
) -> Result<i32, Ending> {
    let (requests, asked) = mpsc::channel(MAX_WAITING);
    let stop = Arc::new(AtomicBool::new(false));
    let worker = Worker {
        files: run.files().clone(),
        cwd: run.cwd.to_path_buf(),
        mask: run.mask(),
        stop: stop.clone(),
        requests,
    };
    let thread = std::thread::Builder::new().name("eyot-memory".to_owned()).stack_size(STACK_BYTES);
    let thread = thread
        .spawn(move || task(&worker))
        .map_err(|error| Ending::refused(format!("cannot start a thread: {error}")))?;
    let mut working = WorkThread { thread: Some(thread), asked: Some(asked), stop };
    if let Some(asked) = &mut working.asked {
        serve(run, asked).await?;
    }
    working.wait()
}

async fn serve(run: &ProgramRun<'_>, asked: &mut mpsc::Receiver<WorkerRequest>) -> Result<(), Ending> {
    while let Some(request) = asked.recv().await {
        match request {
            WorkerRequest::Print(bytes) => run.print(bytes).await?,
            WorkerRequest::PrintError(bytes) => run.write_error(bytes).await?,
            // Work that does not want its answer any more has ended.
            WorkerRequest::Input(answer) => answer.send(run.read_input().await?).unwrap_or_default(),
            WorkerRequest::File(name, answer) => {
                answer.send(run.read(&name).await?.map(|bytes| bytes.to_vec().into())).unwrap_or_default();
            }
            WorkerRequest::Command { command, input, is_kept, answer } => {
                let child = run.child(["sh", "-c", &command].map(str::to_owned).to_vec(), input);
                let kept = ProgramOutput::kept();
                let stdout = if is_kept { &kept } else { &run.stdout };
                let status = match run.run_child_into(child, [stdout, &run.stderr]).await? {
                    ChildEnd::Exited(status) => status,
                    ChildEnd::TimedOut => 1,
                };
                answer.send((kept.take(), status)).unwrap_or_default();
            }
        }
    }
    Ok(())
}

/// The thread that works. It is told to end, and waited for, when this is dropped.
struct WorkThread {
    thread: Option<JoinHandle<Result<i32, Ending>>>,
    asked: Option<mpsc::Receiver<WorkerRequest>>,
    stop: Arc<AtomicBool>,
}

impl WorkThread {
    fn wait(&mut self) -> Result<i32, Ending> {
        // No request waits for an answer any more.
        drop(self.asked.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            _ => Err(Ending::refused("internal error")),
        }
    }
}

impl Drop for WorkThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if self.thread.is_some() && self.wait().is_err() {
            tracing::debug!("work in memory was ended early");
        }
    }
}

impl Worker {
    /// The flag that is set once nobody wants the work any more.
    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Ends the work here if nobody wants it any more.
    pub(super) fn breathe(&self) -> Result<(), Ending> {
        if self.stop.load(Ordering::Relaxed) { Err(unwanted()) } else { Ok(()) }
    }

    fn ask(&self, request: WorkerRequest) -> Result<(), Ending> {
        self.breathe()?;
        self.requests.blocking_send(request).map_err(|_| unwanted())
    }

    /// Writes to the standard output.
    pub(super) fn print(&self, bytes: impl Into<Vec<u8>>) -> Result<(), Ending> {
        self.ask(WorkerRequest::Print(bytes.into()))
    }

    /// Writes to the standard error, as it is.
    pub(super) fn print_error(&self, bytes: impl Into<Vec<u8>>) -> Result<(), Ending> {
        self.ask(WorkerRequest::PrintError(bytes.into()))
    }

    /// Reads the next bytes of the standard input; `None` is its end.
    pub(super) fn read_input(&self) -> Result<Option<Vec<u8>>, Ending> {
        let (answer, answered) = sync_channel(1);
        self.ask(WorkerRequest::Input(answer))?;
        answered.recv().map_err(|_| unwanted())
    }

    fn command(&self, command: String, input: ChildInput, is_kept: bool) -> Result<(Vec<u8>, i32), Ending> {
        let (answer, answered) = sync_channel(1);
        self.ask(WorkerRequest::Command { command, input, is_kept, answer })?;
        answered.recv().map_err(|_| unwanted())
    }

    /// Runs a command in a shell, and returns its status.
    pub(super) fn run_command(&self, command: String, input: ChildInput) -> Result<i32, Ending> {
        self.command(command, input, false).map(|(_, status)| status)
    }

    /// Runs a command in a shell, and returns its output and its status.
    pub(super) fn command_output(&self, command: String) -> Result<(Vec<u8>, i32), Ending> {
        self.command(command, ChildInput::Empty, true)
    }

    /// Finds what a name leads to, from a directory.
    pub(super) fn find_in(
        &self,
        held: &HeldFiles<'_>,
        directory: &std::path::Path,
        name: &[u8],
        last: Last,
    ) -> eyot::Result<Place> {
        find_from(&held.tree, held.root, directory, name, last)
    }

    /// Returns what a file holds now.
    pub(super) fn read(&self, name: &str) -> Result<ReadFile, Ending> {
        {
            let held = self.files.lock();
            let place = self.find_in(&held, &self.cwd, name.as_bytes(), Last::Follow);
            if let Ok(id) = place.and_then(|place| place.found()) {
                match held.tree.node(id).content {
                    NodeContent::File(_) => return Ok(held.content_of(id).map_err(|error| (&error).into())),
                    NodeContent::Directory(_) => return Ok(Err((&is_a_directory()).into())),
                    _ => {}
                }
            }
        }
        let (answer, answered) = sync_channel(1);
        self.ask(WorkerRequest::File(name.to_owned(), answer))?;
        answered.recv().map_err(|_| unwanted())
    }

    /// Opens a file for output. With `is_emptied`, its content is removed.
    pub(super) fn open_output(&self, name: &[u8], is_emptied: bool) -> eyot::Result<()> {
        let mut held = self.files.lock();
        let place = self.find_in(&held, &self.cwd, name, Last::Follow)?;
        let Some(id) = place.node else {
            return held.add(&place, FileNode::file(Vec::new(), 0o666 & !self.mask)).map(drop);
        };
        let node = held.tree.node(id);
        match node.content {
            NodeContent::File(_) if is_emptied => held.overwrite(&place, id, FileContent::default()),
            NodeContent::Directory(_) => Err(is_a_directory()),
            _ => node.check(FileAccess::Write),
        }
    }

    /// Adds bytes to an open file. If the file was removed, the bytes are lost.
    pub(super) fn append_output(&self, name: &[u8], bytes: &[u8]) -> eyot::Result<()> {
        let mut held = self.files.lock();
        let place = self.find_in(&held, &self.cwd, name, Last::Follow)?;
        let Some(id) = place.node else { return Ok(()) };
        match held.tree.node(id).content {
            NodeContent::File(_) | NodeContent::Fifo(_) => held.tree.append(id, bytes)?,
            _ => return held.overwrite(&place, id, FileContent::from(bytes.to_vec())),
        }
        held.tell(&WatchEventKind::Modified, &place, false);
        Ok(())
    }

    /// Writes a file in place of what has its name, with a mode and a time.
    pub(super) fn write(&self, name: &str, node: FileNode) -> eyot::Result<()> {
        let mut held = self.files.lock();
        let place = self.find_in(&held, &self.cwd, name.as_bytes(), Last::Follow)?;
        match (place.node, node.content) {
            (None, content) => held.add(&place, FileNode { content, ..node }).map(drop),
            (Some(id), NodeContent::File(content)) => held.overwrite(&place, id, content),
            (Some(_), _) => Err(crate::memory::node::already_exists()),
        }
    }
}

/// The end of work that nobody wants. Nobody reads it either.
fn unwanted() -> Ending {
    Ending::refused("ended")
}

/// The standard output or error of the work, as a library writes to it.
pub(super) struct WorkerOutput<'a>(pub &'a Worker);

impl Write for WorkerOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.print(bytes).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The standard input of the work, as a library reads it.
pub(super) struct WorkerInput<'a> {
    worker: &'a Worker,
    left: io::Cursor<Vec<u8>>,
}

impl<'a> WorkerInput<'a> {
    pub(super) fn new(worker: &'a Worker) -> Self {
        Self { worker, left: io::Cursor::default() }
    }
}

impl Read for WorkerInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.left.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            match self.worker.read_input().map_err(|_| io::ErrorKind::BrokenPipe)? {
                Some(bytes) => self.left = io::Cursor::new(bytes),
                None => return Ok(0),
            }
        }
    }
}

/// A reader that ends with its work.
pub(super) struct WorkReader<'a, R> {
    pub worker: &'a Worker,
    pub inner: R,
}

impl<R: Read> Read for WorkReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.worker.breathe().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.inner.read(buffer)
    }
}
