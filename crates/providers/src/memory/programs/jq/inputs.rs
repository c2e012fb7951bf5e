//! The inputs of a run: values, lines or whole texts of the files and of the standard input, read
//! as they are asked for.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};

use super::meter::{self, Abort};
use super::options::Options;
use super::read::JqReader;
use super::stream;
use super::value::JqValue;
use crate::memory::programs::run::Ending;
use crate::memory::programs::worker::{Worker, WorkerInput};

/// The output that is held back until there is more.
const HELD_BYTES: usize = 32 << 10;

/// The standard output and error of a run. What is printed is held back a while.
pub(super) struct Printer<'a> {
    worker: &'a Worker,
    held: RefCell<Vec<u8>>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(worker: &'a Worker) -> Self {
        Self { worker, held: RefCell::new(Vec::new()) }
    }

    pub(super) fn print(&self, text: &[u8]) -> Result<(), Ending> {
        let mut held = self.held.borrow_mut();
        held.extend_from_slice(text);
        if held.len() < HELD_BYTES {
            return Ok(());
        }
        drop(held);
        self.flush()
    }

    pub(super) fn flush(&self) -> Result<(), Ending> {
        let held = std::mem::take(&mut *self.held.borrow_mut());
        if held.is_empty() { self.worker.breathe() } else { self.worker.print(held) }
    }

    pub(super) fn print_error(&self, text: &str) -> Result<(), Ending> {
        self.flush()?;
        self.worker.print_error(text)
    }

    /// Writes to the standard error from within a filter.
    pub(super) fn tell(&self, text: &str) {
        if self.print_error(text).is_err() {
            meter::abort(Abort::Ended);
        }
    }
}

/// The standard input. Before it is waited for, everything is printed.
struct StandardInput<'a> {
    printer: &'a Printer<'a>,
    inner: WorkerInput<'a>,
}

impl Read for StandardInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.printer.flush().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.inner.read(buffer)
    }
}

/// The inputs as filters see them.
pub(super) trait RunInputs {
    /// Reads the next input.
    fn next(&self) -> Result<Option<JqValue>, String>;
    /// The name of the file that is read.
    fn file(&self) -> JqValue;
    /// The number of lines that were read of it.
    fn line(&self) -> JqValue;
}

impl RunInputs for RefCell<Inputs<'_>> {
    fn next(&self) -> Result<Option<JqValue>, String> {
        self.borrow_mut().next()
    }

    fn file(&self) -> JqValue {
        self.borrow().file.as_deref().map_or(JqValue::Null, JqValue::text)
    }

    fn line(&self) -> JqValue {
        JqValue::from(usize::try_from(self.borrow().lines).unwrap_or(usize::MAX))
    }
}

/// The input, and the place in it.
pub(super) struct Inputs<'a> {
    worker: &'a Worker,
    printer: &'a Printer<'a>,
    options: &'a Options,
    files: VecDeque<Option<String>>,
    open: Option<Box<dyn BufRead + 'a>>,
    reader: JqReader,
    ready: VecDeque<JqValue>,
    /// The error that follows the values that are ready.
    wrong: Option<String>,
    has_ended: bool,
    /// The file that is read; the standard input has no name.
    pub file: Option<String>,
    /// The lines so far.
    pub lines: u64,
    /// A file could not be read.
    pub has_failed: bool,
    /// Something was read.
    pub has_begun: bool,
}

impl<'a> Inputs<'a> {
    pub(super) fn new(worker: &'a Worker, printer: &'a Printer<'a>, options: &'a Options) -> Self {
        let files = if options.files.is_empty() {
            VecDeque::from([None])
        } else {
            options.files.iter().cloned().map(Some).collect()
        };
        Self {
            worker,
            printer,
            options,
            files,
            open: None,
            reader: JqReader::new(),
            ready: VecDeque::new(),
            wrong: None,
            has_ended: false,
            file: None,
            lines: 0,
            has_failed: false,
            has_begun: false,
        }
    }

    /// The place of the reading, for errors.
    pub(super) fn location(&self) -> String {
        match &self.file {
            _ if !self.has_begun => "<unknown>".to_owned(),
            Some(file) => format!("{file}:{}", self.lines),
            None => format!("<stdin>:{}", self.lines),
        }
    }

    /// The next input.
    ///
    /// # Errors
    /// The text is no JSON. Nothing follows.
    pub(super) fn next(&mut self) -> Result<Option<JqValue>, String> {
        if self.options.slurps {
            return self.slurp();
        }
        self.one()
    }

    fn slurp(&mut self) -> Result<Option<JqValue>, String> {
        if self.has_ended {
            return Ok(None);
        }
        if self.options.raw_input {
            let mut text = Vec::new();
            while let Some(line) = self.line() {
                meter::check(text.len() + line.len());
                text.extend(line);
            }
            self.has_ended = true;
            return Ok(Some(JqValue::text(String::from_utf8_lossy(&text))));
        }
        let mut all = Vec::new();
        while let Some(value) = self.one()? {
            meter::check(all.len() * size_of::<JqValue>() * 2);
            all.push(value);
        }
        self.has_ended = true;
        Ok(Some(JqValue::array(all)))
    }

    fn one(&mut self) -> Result<Option<JqValue>, String> {
        loop {
            if let Some(value) = self.ready.pop_front() {
                return Ok(Some(value));
            }
            if let Some(wrong) = self.wrong.take() {
                self.has_ended = true;
                return Err(wrong);
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.line() {
                Some(line) if self.options.raw_input => {
                    let line = line.strip_suffix(b"\n").unwrap_or(&line);
                    return Ok(Some(JqValue::text(String::from_utf8_lossy(line))));
                }
                Some(line) => self.scan(&line),
                None => {
                    self.has_ended = true;
                    if !self.options.raw_input {
                        let last = self.reader.end()?;
                        last.into_iter().for_each(|value| self.push(value));
                    }
                }
            }
        }
    }

    fn scan(&mut self, line: &[u8]) {
        let line = if self.lines <= 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        for byte in line {
            match self.reader.take(*byte) {
                Ok(value) => value.into_iter().for_each(|value| self.push(value)),
                Err(wrong) => {
                    self.wrong = Some(wrong);
                    return;
                }
            }
        }
    }

    fn push(&mut self, value: JqValue) {
        if self.options.streams {
            stream::events(&value, &mut |event| self.ready.push_back(event));
        } else {
            self.ready.push_back(value);
        }
    }

    /// The next line of the files, with its end.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(open) = &mut self.open {
                let line = whole_line(open.as_mut());
                if !line.is_empty() {
                    self.has_begun = true;
                    self.lines += u64::from(line.ends_with(b"\n"));
                    return Some(line);
                }
                self.open = None;
            }
            self.open_next()?;
        }
    }

    fn open_next(&mut self) -> Option<()> {
        let file = self.files.pop_front()?;
        let Some(name) = &file else {
            let inner = WorkerInput::new(self.worker);
            self.open = Some(Box::new(BufReader::new(StandardInput { printer: self.printer, inner })));
            return Some(());
        };
        match self.worker.read(name) {
            Ok(Ok(content)) => {
                self.open = Some(Box::new(BufReader::new(content.reader())));
                (self.lines, self.file) = (0, file);
            }
            Ok(Err(reason)) => {
                self.has_failed = true;
                self.printer.tell(&format!("jq: error: Could not open file {name}: {reason}\n"));
            }
            Err(_) => meter::abort(Abort::Ended),
        }
        Some(())
    }
}

fn whole_line(open: &mut dyn BufRead) -> Vec<u8> {
    let mut line = Vec::new();
    loop {
        meter::tick();
        // An error is the end.
        let Ok(bytes) = open.fill_buf() else { return line };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let len = end.map_or(bytes.len(), |end| end + 1);
        meter::check(line.len() + len);
        line.extend_from_slice(&bytes[..len]);
        open.consume(len);
        if end.is_some() || len == 0 {
            return line;
        }
    }
}
