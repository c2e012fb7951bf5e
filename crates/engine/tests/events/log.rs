//! A log of a test's own, and what may be done to its files behind its back.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use eyot_engine::events::{BrokenChain, Event, EventKind, EventLog, EventLogOptions, NewEvent, VerifiedLog};
use tempfile::TempDir;

pub struct Scene {
    folder: TempDir,
    pub log: Arc<EventLog>,
}

impl Scene {
    /// A log with segments of about `lines` lines, of which `max_segments` are kept.
    pub fn new(lines: u64, max_segments: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A line of `slept` is somewhat shorter than that, and eleven are longer than ten times that.
        let options = EventLogOptions { max_segment_bytes: lines * 240, max_segments };
        let log = EventLog::open(folder.path(), options).unwrap();
        Self { folder, log }
    }

    /// A log with one segment and `count` events.
    pub fn with(count: u64) -> Self {
        let scene = Self::new(1000, 16);
        scene.slept(count);
        scene
    }

    /// A second handle, as another process has it.
    pub fn again(&self) -> Arc<EventLog> {
        EventLog::open(self.folder.path(), EventLogOptions::default()).unwrap()
    }

    pub fn slept(&self, count: u64) {
        for _ in 0..count {
            self.slept_because("it was idle");
        }
    }

    pub fn slept_because(&self, reason: &str) {
        self.log.append(NewEvent::new(EventKind::Slept, reason)).unwrap();
    }

    pub fn all(&self) -> Vec<Event> {
        self.log.read(1, usize::MAX).unwrap()
    }

    pub fn numbers(&self) -> Vec<u64> {
        self.all().iter().map(|event| event.seq).collect()
    }

    #[track_caller]
    pub fn holds(&self) -> VerifiedLog {
        self.log.verify().unwrap()
    }

    #[track_caller]
    pub fn broken(&self) -> BrokenChain {
        let error = self.log.verify().unwrap_err();
        let source =
            std::error::Error::source(&error).and_then(|source| source.downcast_ref::<BrokenChain>());
        source.unwrap_or_else(|| panic!("{error}")).clone()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file of the segment that begins with this event.
    pub fn segment(&self, first: u64) -> PathBuf {
        self.file(&format!("{first:020}.jsonl"))
    }

    /// The first numbers of the segments that are there.
    pub fn segments(&self) -> Vec<u64> {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let digits =
            names.filter_map(|name| name.to_str().unwrap().strip_suffix(".jsonl").map(str::to_owned));
        let mut numbers: Vec<u64> = digits.map(|digits| digits.parse().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    }

    pub fn lines(&self, first: u64) -> Vec<String> {
        fs::read_to_string(self.segment(first)).unwrap().lines().map(str::to_owned).collect()
    }

    pub fn set_lines(&self, first: u64, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.segment(first), text).unwrap();
    }

    /// Changes the lines of a segment as an editor would.
    pub fn edit(&self, first: u64, edit: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.lines(first);
        edit(&mut lines);
        self.set_lines(first, &lines);
    }

    /// Adds bytes to a segment without telling anybody.
    pub fn scribble(&self, first: u64, bytes: &str) {
        let mut content = fs::read(self.segment(first)).unwrap();
        content.extend_from_slice(bytes.as_bytes());
        fs::write(self.segment(first), content).unwrap();
    }
}
