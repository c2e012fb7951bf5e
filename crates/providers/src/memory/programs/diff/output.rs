//! Two files are read, compared and shown.

use super::DiffJob;
use super::changes::{DiffChange, DiffComparison, groups};
use super::columns::DiffColumns;
use super::edits;
use super::hunks::HunkWriter;
use super::lines::LineWriter;
use super::options::DiffStyle;
use super::sides::{DiffSide, SideKind};
use super::stamp::stamp;
use super::text::{DiffText, is_binary, tokens, without_carriage_returns};
use crate::memory::programs::read_bytes::{ReadBytes, ReadError};
use crate::memory::programs::run::Ending;

/// The two files of one comparison.
struct FilePair<'a> {
    sides: [&'a DiffSide; 2],
    texts: [&'a DiffText; 2],
    changes: &'a [DiffChange],
}

impl DiffJob<'_, '_> {
    pub(super) async fn compare_files(&self, old: &DiffSide, new: &DiffSide) -> Result<i32, Ending> {
        let is_one = old.name == "-" && new.name == "-";
        let (left, right) =
            (self.read(old).await?, if is_one { Ok(ReadBytes::default()) } else { self.read(new).await? });
        let mut status = 0;
        for (side, read) in [(old, &left), (new, &right)] {
            if let Err(reason) = read {
                status = self.trouble(format!("{}: {reason}", side.name)).await?;
            }
        }
        let (Ok(left), Ok(right)) = (left, right) else { return Ok(status) };
        let is_equal = is_one || left[..] == right[..];
        let options = self.options;
        let shows_equal = match options.style {
            DiffStyle::SideBySide => !options.hides_common,
            style => style == DiffStyle::Formats,
        };
        if is_equal && (options.is_brief || !shows_equal) {
            return self.report_equal([old, new]).await;
        }
        if !options.is_text && (is_binary(&left) || is_binary(&right)) {
            if is_equal {
                return self.report_equal([old, new]).await;
            }
            let kind = if options.is_brief { "Files" } else { "Binary files" };
            return self.report_difference(kind, [old, new]).await;
        }
        let right = if is_one { left.clone() } else { right };
        self.compare_texts([old, new], &DiffText::new(left), &DiffText::new(right)).await
    }

    async fn read(&self, side: &DiffSide) -> Result<Result<ReadBytes, ReadError>, Ending> {
        if side.kind == SideKind::Empty {
            return Ok(Ok(ReadBytes::default()));
        }
        let read = self.run.read(&side.name).await?;
        let strips = self.options.strips_carriage_returns;
        Ok(read.map(|bytes| if strips { without_carriage_returns(&bytes).into() } else { bytes }))
    }

    async fn compare_texts(
        &self,
        sides: [&DiffSide; 2],
        old: &DiffText,
        new: &DiffText,
    ) -> Result<i32, Ending> {
        let options = self.options;
        let texts = [old, new];
        if options.is_brief && options.is_exact() {
            return self.report_difference("Files", sides).await;
        }
        let mut changes = {
            let (tokens, count) = tokens(self.run, texts, options.sameness).await;
            let mut comparison = DiffComparison::new([&tokens[0], &tokens[1]], count, options.is_minimal);
            while comparison.step() {
                self.run.breathe().await;
            }
            comparison.into_changes()
        };
        options.ignored.mark(&mut changes, texts, options.sameness);
        let is_different = changes.iter().any(|change| !change.is_ignored);
        if options.is_brief && is_different {
            return self.report_difference("Files", sides).await;
        }
        let pair = FilePair { sides, texts, changes: &changes };
        let mut status = i32::from(is_different);
        if !options.is_brief {
            self.show(&pair, is_different).await?;
            if options.style == DiffStyle::Ed {
                status = self.complain_of_newlines(&pair, status).await?;
            }
        }
        if status == 0 { self.report_equal(sides).await } else { Ok(status) }
    }

    /// Says which files an `ed` script can't bring back, for they lack the last newline.
    async fn complain_of_newlines(&self, pair: &FilePair<'_>, mut status: i32) -> Result<i32, Ending> {
        for (index, text) in pair.texts.into_iter().enumerate() {
            if text.lacks_newline() {
                let label = self.label(index, pair.sides[index]);
                status = self.trouble(format!("{label}: No newline at end of file\n")).await?;
            }
        }
        Ok(status)
    }

    fn label<'a>(&'a self, index: usize, side: &'a DiffSide) -> &'a str {
        self.options.labels.get(index).unwrap_or(&side.name)
    }

    async fn report_equal(&self, sides: [&DiffSide; 2]) -> Result<i32, Ending> {
        if self.options.reports_identical {
            let (left, right) = (self.label(0, sides[0]), self.label(1, sides[1]));
            self.run.print(format!("Files {left} and {right} are identical\n")).await?;
        }
        Ok(0)
    }

    async fn report_difference(&self, kind: &str, sides: [&DiffSide; 2]) -> Result<i32, Ending> {
        let (left, right) = (self.label(0, sides[0]), self.label(1, sides[1]));
        self.run.print(format!("{kind} {left} and {right} differ\n")).await?;
        Ok(1)
    }

    async fn show(&self, pair: &FilePair<'_>, is_different: bool) -> Result<(), Ending> {
        let options = self.options;
        let shows_equal = match options.style {
            DiffStyle::SideBySide => !options.hides_common || is_different,
            style => style == DiffStyle::Formats || is_different,
        };
        if !shows_equal {
            return Ok(());
        }
        if self.is_in_trees {
            let names = [0, 1].map(|index| quoted_name(self.label(index, pair.sides[index])));
            self.run.print(format!("diff{} {} {}\n", options.given, names[0], names[1])).await?;
        }
        match options.style {
            DiffStyle::Normal | DiffStyle::Ed | DiffStyle::Rcs => self.show_edits(pair).await,
            DiffStyle::Context | DiffStyle::Unified => self.show_hunks(pair).await,
            DiffStyle::SideBySide => self.show_columns(pair).await,
            DiffStyle::Formats => self.show_formats(pair).await,
        }
    }

    fn line_writer(&self, gap: &'static str) -> LineWriter {
        LineWriter {
            gap: if self.options.has_initial_tab { "\t" } else { gap },
            tab_size: self.options.expands_tabs.then_some(self.options.tab_size),
            blank_stays_empty: self.options.blank_stays_empty,
        }
    }

    async fn show_edits(&self, pair: &FilePair<'_>) -> Result<(), Ending> {
        let writer = self.line_writer(" ");
        let counted = pair.changes.iter().filter(|change| !change.is_ignored);
        let counted: Vec<&DiffChange> =
            if self.options.style == DiffStyle::Ed { counted.rev().collect() } else { counted.collect() };
        for change in counted {
            let text = match self.options.style {
                DiffStyle::Ed => edits::ed(pair.texts[1], change),
                DiffStyle::Rcs => edits::rcs(pair.texts[1], change),
                _ => edits::normal(pair.texts, change, &writer),
            };
            self.run.print(text).await?;
        }
        Ok(())
    }

    async fn show_hunks(&self, pair: &FilePair<'_>) -> Result<(), Ending> {
        let options = self.options;
        let is_unified = options.style == DiffStyle::Unified;
        let marks = if is_unified { ["---", "+++"] } else { ["***", "---"] };
        for (index, mark) in marks.into_iter().enumerate() {
            let side = pair.sides[index];
            let head = match options.labels.get(index) {
                Some(label) => format!("{mark} {label}\n"),
                None => format!("{mark} {}\t{}\n", quoted_name(&side.name), stamp(side.modified)),
            };
            self.run.print(head).await?;
        }
        let writer = HunkWriter {
            texts: pair.texts,
            context: options.context,
            lines: self.line_writer(if is_unified { "" } else { " " }),
            function: options.function.as_ref(),
        };
        for group in groups(pair.changes, options.context) {
            if group.iter().all(|change| change.is_ignored) {
                continue;
            }
            self.run.print(if is_unified { writer.unified(group) } else { writer.context(group) }).await?;
        }
        Ok(())
    }

    async fn show_columns(&self, pair: &FilePair<'_>) -> Result<(), Ending> {
        let options = self.options;
        let mut columns = DiffColumns::new(pair.texts, options.width, options.tab_size, options.expands_tabs);
        columns.is_left_column = options.is_left_column;
        columns.hides_common = options.hides_common;
        let (mut old, mut new) = (0, 0);
        for change in pair.changes.iter().filter(|change| !change.is_ignored) {
            self.run.print(columns.common(old..change.old.start, new..change.new.start)).await?;
            self.run.print(columns.change(change)).await?;
            (old, new) = (change.old.end, change.new.end);
        }
        self.run.print(columns.common(old..pair.texts[0].len(), new..pair.texts[1].len())).await
    }

    async fn show_formats(&self, pair: &FilePair<'_>) -> Result<(), Ending> {
        let formats = &self.options.formats;
        let (mut old, mut new) = (0, 0);
        let end = DiffChange {
            old: pair.texts[0].len()..pair.texts[0].len(),
            new: pair.texts[1].len()..pair.texts[1].len(),
            is_ignored: false,
        };
        for change in pair.changes.iter().chain([&end]) {
            if old < change.old.start || new < change.new.start {
                let equal =
                    DiffChange { old: old..change.old.start, new: new..change.new.start, is_ignored: false };
                self.run.print(formats.write(pair.texts, &equal, true)).await?;
            }
            if !(change.old.is_empty() && change.new.is_empty()) {
                self.run.print(formats.write(pair.texts, change, false)).await?;
            }
            (old, new) = (change.old.end, change.new.end);
        }
        Ok(())
    }
}

/// Writes a name in quotes, as C does, if it has other characters than plain ones.
fn quoted_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if name.bytes().all(is_plain) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', byte.into()]),
            0x07 => quoted += "\\a",
            0x08 => quoted += "\\b",
            b'\t' => quoted += "\\t",
            b'\n' => quoted += "\\n",
            0x0b => quoted += "\\v",
            0x0c => quoted += "\\f",
            b'\r' => quoted += "\\r",
            b' ' => quoted.push(' '),
            plain if plain.is_ascii_graphic() => quoted.push(plain.into()),
            other => quoted += &format!("\\{other:03o}"),
        }
    }
    quoted.push('"');
    quoted
}
