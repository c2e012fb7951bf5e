//! `diff`: two texts or two trees are compared, as GNU's does it. `-D` and colors are refused.

mod changes;
mod columns;
mod edits;
mod excludes;
mod formats;
mod hunks;
mod lines;
mod options;
mod output;
mod pattern;
mod sides;
mod stamp;
mod text;
mod trees;

use async_trait::async_trait;

use super::run::{Ending, ProgramRun, ShellProgram};
use options::Options;
use sides::{DiffSide, SideKind};

pub(super) struct Diff;

#[async_trait]
impl ShellProgram for Diff {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = options::parse(run).await?;
        let job = DiffJob { run, options: &options, is_in_trees: false };
        let mut status = 0;
        for (old, new) in pairs(&options) {
            status = status.max(job.compare_operands(old, new).await?);
        }
        Ok(status)
    }

    fn usage_status(&self) -> i32 {
        2
    }
}

/// The pairs of names that are compared.
fn pairs(options: &Options) -> Vec<(&str, &str)> {
    let operands = options.operands.iter().map(String::as_str);
    match (&options.from_file, &options.to_file) {
        (Some(from), _) => operands.map(|to| (from.as_str(), to)).collect(),
        (_, Some(to)) => operands.map(|from| (from, to.as_str())).collect(),
        _ => options.operands.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect(),
    }
}

/// One run, with its options. What compares returns a status: 0 for the same, 1 for a difference,
/// 2 for trouble.
struct DiffJob<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a Options,
    /// Directories are compared, and what is shown says which files it is about.
    is_in_trees: bool,
}

impl DiffJob<'_, '_> {
    /// Compares what the command line names. A file beside a directory is compared with its
    /// namesake in it.
    async fn compare_operands(&self, old: &str, new: &str) -> Result<i32, Ending> {
        let (mut old, mut new) = (self.side(old), self.side(new));
        if old.is_directory() && new.name == "-" || new.is_directory() && old.name == "-" {
            return self.trouble("cannot compare '-' to a directory").await;
        }
        let is_file = |side: &DiffSide| !side.is_directory() && !side.is_missing();
        if old.is_directory() && is_file(&new) {
            old = self.side(&sides::joined(&old.name, sides::base(&new.name)));
        } else if new.is_directory() && is_file(&old) {
            new = self.side(&sides::joined(&new.name, sides::base(&old.name)));
        }
        if old.is_directory() && new.is_directory() {
            // A directory is like itself, and that is not reported.
            if old.name == new.name {
                return Ok(0);
            }
            return self.in_trees().compare_trees(&old, &new).await;
        }
        if self.options.is_recursive
            && self.pretend(&mut old, &mut new)
            && (old.is_directory() || new.is_directory())
        {
            return self.in_trees().compare_trees(&old, &new).await;
        }
        self.compare_nodes(old, new).await
    }

    fn in_trees(&self) -> Self {
        Self { run: self.run, options: self.options, is_in_trees: true }
    }

    /// Takes a missing side as empty, if the options say so and the other is there.
    fn pretend(&self, old: &mut DiffSide, new: &mut DiffSide) -> bool {
        let pretends = self.options.missing_is_empty;
        match (old.is_missing(), new.is_missing()) {
            (true, false) if pretends[0] => old.kind = SideKind::Empty,
            (false, true) if pretends[1] => new.kind = SideKind::Empty,
            _ => return false,
        }
        true
    }

    /// Compares two things that are not both directories.
    async fn compare_nodes(&self, mut old: DiffSide, mut new: DiffSide) -> Result<i32, Ending> {
        self.pretend(&mut old, &mut new);
        let mut status = 0;
        for side in [&old, &new] {
            if let SideKind::Missing(reason) = side.kind {
                status = self.trouble(format!("{}: {reason}", side.name)).await?;
            }
        }
        if status != 0 {
            return Ok(status);
        }
        if let (SideKind::Link(left), SideKind::Link(right)) = (&old.kind, &new.kind) {
            if left == right {
                return Ok(0);
            }
            self.run.print(format!("Symbolic links {} and {} differ\n", old.name, new.name)).await?;
            return Ok(1);
        }
        let is_special = |side: &DiffSide| match side.kind {
            SideKind::Fifo | SideKind::Device => self.is_in_trees,
            _ => !side.is_readable(),
        };
        if (is_special(&old) || is_special(&new)) && old.kind.word() != new.kind.word() {
            let (left, right) = (&old, &new);
            let text = format!(
                "File {} is a {} while file {} is a {}\n",
                left.name,
                left.kind.word(),
                right.name,
                right.kind.word()
            );
            self.run.print(text).await?;
            return Ok(1);
        }
        self.compare_files(&old, &new).await
    }

    /// Prints an error, and returns the status of trouble.
    async fn trouble(&self, reason: impl AsRef<str>) -> Result<i32, Ending> {
        self.run.complain(reason).await?;
        Ok(2)
    }
}
