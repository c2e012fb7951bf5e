//! `ls`, `dir` and `vdir`: what is in directories.

mod colors;
mod columns;
mod entries;
mod label;
mod long;
mod names;
mod options;
mod order;
mod sizes;
mod wildcard;

use async_trait::async_trait;
pub(super) use order::by_version;

use super::name_style::NameStyle;
use super::quoting::quoted;
use super::run::{Ending, ProgramRun, ShellProgram};
use crate::memory::node::NodeId;
use entries::{Entry, Folder, list, operand};
use label::Painter;
use options::{DotNames, ListLayout, Options};

/// One of the three programs, with what it does unless it is told otherwise.
pub(super) struct Ls {
    layout: ListLayout,
    style: NameStyle,
}

pub(super) static LS: Ls = Ls { layout: ListLayout::Lines, style: NameStyle::Literal };
pub(super) static DIR: Ls = Ls { layout: ListLayout::Columns, style: NameStyle::Escape };
pub(super) static VDIR: Ls = Ls { layout: ListLayout::Long, style: NameStyle::Escape };

/// The bytes that are printed at once.
const PRINTED_BYTES: usize = 64 << 10;

#[async_trait]
impl ShellProgram for Ls {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = Options::read(run, self.layout, self.style)?;
        DirectoryListing { run, options, painter: Painter::default(), status: 0, has_printed: false }
            .run()
            .await
    }

    fn usage_status(&self) -> i32 {
        2
    }
}

/// A directory that is still to be listed.
struct PendingDirectory {
    path: Vec<u8>,
    /// The directories above it, where links are followed: it may be one of them.
    above: Vec<NodeId>,
    is_operand: bool,
}

/// One run of `ls`.
struct DirectoryListing<'a> {
    run: &'a ProgramRun<'a>,
    options: Options,
    painter: Painter,
    status: i32,
    /// Set if something was printed before the next directory.
    has_printed: bool,
}

impl DirectoryListing<'_> {
    async fn run(mut self) -> Result<i32, Ending> {
        let (files, directories) = self.operands().await?;
        let has_heads = self.options.is_recursive || self.options.files.len() > 1 || !files.is_empty();
        if !files.is_empty() {
            self.print(&files, &directories).await?;
            self.has_printed = true;
        }
        let pending =
            |entry: Entry| PendingDirectory { path: entry.name, above: Vec::new(), is_operand: true };
        let mut left: Vec<PendingDirectory> = directories.into_iter().rev().map(pending).collect();
        while let Some(next) = left.pop() {
            self.run.breathe().await;
            let more = self.directory(next, has_heads).await?;
            left.extend(more.into_iter().rev());
        }
        Ok(self.status)
    }

    async fn complain(&mut self, reason: String, is_operand: bool) -> Result<(), Ending> {
        self.status = self.status.max(if is_operand { 2 } else { 1 });
        self.run.complain(reason).await
    }

    /// Looks at the operands. Directories come behind the others.
    async fn operands(&mut self) -> Result<(Vec<Entry>, Vec<Entry>), Ending> {
        let mut found = Vec::new();
        for name in self.options.files.clone() {
            self.run.breathe().await;
            match operand(self.run, &self.options, &name).await {
                Ok(entry) => found.push(entry),
                Err(why) => self.complain(format!("cannot access {}: {why}", quoted(&name)), true).await?,
            }
        }
        order::sort(&mut found, &self.options);
        let is_listed = |entry: &Entry| {
            !self.options.directories_themselves
                && entry.facts.as_ref().is_some_and(|facts| facts.is_directory())
        };
        Ok(found.into_iter().partition(|entry| !is_listed(entry)))
    }

    /// Lists a directory, and returns those in it that come next.
    async fn directory(
        &mut self,
        next: PendingDirectory,
        has_head: bool,
    ) -> Result<Vec<PendingDirectory>, Ending> {
        let name = String::from_utf8_lossy(&next.path).into_owned();
        let mut folder = match list(self.run, &self.options, &next.path).await {
            Ok(folder) => folder,
            Err(why) => {
                self.complain(format!("cannot open directory {}: {why}", quoted(&name)), next.is_operand)
                    .await?;
                return Ok(Vec::new());
            }
        };
        if next.above.contains(&folder.id) {
            let reason = format!("{name}: not listing already-listed directory");
            self.complain(reason, true).await?;
            return Ok(Vec::new());
        }
        for (name, why) in std::mem::take(&mut folder.failed) {
            let path = String::from_utf8_lossy(&entries::joined(&next.path, &name)).into_owned();
            self.complain(format!("cannot access {}: {why}", quoted(&path)), false).await?;
        }
        order::sort(&mut folder.entries, &self.options);
        let mut head = Vec::new();
        if has_head {
            if self.has_printed {
                head.push(b'\n');
            }
            head.extend(self.options.style.of(&next.path));
            head.extend_from_slice(b":\n");
        }
        if self.options.layout == ListLayout::Long || self.options.has_blocks {
            let bytes = folder.entries.iter().filter_map(|entry| entry.facts.as_ref());
            let bytes = bytes.map(|facts| facts.disk_bytes).sum();
            head.extend_from_slice(format!("total {}", self.options.blocks.show(bytes)).as_bytes());
            head.push(self.options.line_end);
        }
        self.run.print(head).await?;
        self.has_printed = true;
        let below = self.below(&next, &folder);
        self.print(&folder.entries, &[]).await?;
        Ok(below)
    }

    /// The directories in a directory that are listed too.
    fn below(&self, next: &PendingDirectory, folder: &Folder) -> Vec<PendingDirectory> {
        if !self.options.is_recursive {
            return Vec::new();
        }
        let mut above = Vec::new();
        if self.options.follow == options::LsFollow::Always {
            above = [next.above.as_slice(), &[folder.id]].concat();
        }
        let is_below = |entry: &&Entry| {
            let is_directory = entry.facts.as_ref().is_some_and(|facts| facts.is_directory());
            is_directory && !matches!(entry.name.as_slice(), b"." | b"..")
        };
        let pending = |entry: &Entry| PendingDirectory {
            path: entries::joined(&next.path, &entry.name),
            above: above.clone(),
            is_operand: false,
        };
        folder.entries.iter().filter(is_below).map(pending).collect()
    }

    /// Prints entries in the layout that is asked for. Others that are still to be listed count for
    /// the widths of its columns.
    async fn print(&mut self, entries: &[Entry], others: &[Entry]) -> Result<(), Ending> {
        let labels = self.painter.labels(entries, &self.options);
        match self.options.layout {
            ListLayout::Long => {
                let lines = long::LongLines::new(entries, others, &self.options, self.run.env);
                let mut out = Vec::new();
                for (entry, label) in entries.iter().zip(&labels) {
                    lines.put(entry, label, &mut out);
                    self.flush(&mut out, PRINTED_BYTES).await?;
                }
                self.flush(&mut out, 0).await
            }
            ListLayout::Lines => {
                let mut out = Vec::new();
                for label in &labels {
                    out.extend_from_slice(&label.bytes);
                    out.push(self.options.line_end);
                    self.flush(&mut out, PRINTED_BYTES).await?;
                }
                self.flush(&mut out, 0).await
            }
            ListLayout::Commas => self.run.print(columns::with_commas(&labels, &self.options)).await,
            ListLayout::Columns | ListLayout::Across => {
                let mut fit = columns::ColumnSearch::new(&labels, &self.options);
                while !fit.is_found() {
                    self.run.breathe().await;
                    fit.try_next();
                }
                self.run.print(fit.print()).await
            }
        }
    }

    async fn flush(&self, out: &mut Vec<u8>, most: usize) -> Result<(), Ending> {
        if out.len() > most {
            self.run.breathe().await;
            self.run.print(std::mem::take(out)).await?;
        }
        Ok(())
    }
}

/// Tells whether a name is shown.
fn is_shown(name: &[u8], options: &Options) -> bool {
    let is_ignored = |patterns: &[String]| patterns.iter().any(|pattern| wildcard::matches(pattern, name));
    if is_ignored(&options.ignored) {
        return false;
    }
    options.hidden != DotNames::No || !(name.starts_with(b".") || is_ignored(&options.hidden_patterns))
}
