//! The command line of `ls`.

use super::colors::Colors;
use super::names::{LAYOUTS, LONG_NAMES, MARKS, Occasion, SHORT_NAMES, SORTS, TIMES, WHEN, time_style};
pub(super) use super::names::{ListLayout, NameMarks, Sort};
use super::sizes::Units;
use crate::memory::programs::choices::choose;
use crate::memory::programs::name_style::{NameStyle, STYLES};
use crate::memory::programs::options::{OptionWord, Words, complete, unknown};
use crate::memory::programs::quoting::{curly, quoted};
use crate::memory::programs::run::{Ending, ProgramRun};

/// The longest line. A longer one would only take time.
const MAX_WIDTH: usize = 4096;

/// The names with a dot in front that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DotNames {
    No,
    AlmostAll,
    All,
}

/// The links that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LsFollow {
    Never,
    /// The links on the command line that lead to directories.
    Directories,
    CommandLine,
    Always,
}

#[derive(Debug)]
pub(super) struct Options {
    pub layout: ListLayout,
    pub sort: Sort,
    pub is_reversed: bool,
    pub directories_first: bool,
    pub hidden: DotNames,
    pub ignored: Vec<String>,
    pub hidden_patterns: Vec<String>,
    pub is_recursive: bool,
    pub directories_themselves: bool,
    pub follow: LsFollow,
    pub marks: NameMarks,
    pub style: NameStyle,
    pub marks_odd: bool,
    pub has_owner: bool,
    pub has_group: bool,
    pub has_author: bool,
    pub is_numeric: bool,
    pub has_inode: bool,
    pub has_blocks: bool,
    pub sizes: Units,
    pub blocks: Units,
    pub time_style: [String; 2],
    pub colors: Option<Colors>,
    pub width: usize,
    pub tab: usize,
    pub line_end: u8,
    pub files: Vec<String>,
}

/// The options as given, before they are combined.
#[derive(Debug, Default)]
struct GivenOptions {
    sort: Option<Sort>,
    has_time: bool,
    follow: Option<LsFollow>,
    time_style: Option<String>,
}

impl Options {
    /// Tells whether more than the name of each entry is asked for.
    pub(super) fn needs_facts(&self) -> bool {
        self.layout == ListLayout::Long
            || self.has_blocks
            || self.has_inode
            || matches!(self.sort, Sort::Time | Sort::Size)
            || matches!(self.marks, NameMarks::FileType | NameMarks::Classify)
            || self.colors.is_some()
    }

    /// Tells whether it is asked for what links lead to.
    pub(super) fn needs_targets(&self) -> bool {
        self.directories_first
            || matches!(self.marks, NameMarks::FileType | NameMarks::Classify)
            || self.colors.as_ref().is_some_and(Colors::need_targets)
    }

    fn new(run: &ProgramRun<'_>, layout: ListLayout, style: NameStyle) -> Self {
        let number = |name: &str| run.env.get(name).and_then(|value| value.parse().ok());
        let styled = run.env.get("QUOTING_STYLE");
        let styled = styled.and_then(|name| STYLES.iter().find(|(style, _)| style == name));
        Self {
            layout,
            sort: Sort::Name,
            is_reversed: false,
            directories_first: false,
            hidden: DotNames::No,
            ignored: Vec::new(),
            hidden_patterns: Vec::new(),
            is_recursive: false,
            directories_themselves: false,
            follow: LsFollow::Never,
            marks: NameMarks::None,
            style: if style == NameStyle::Literal {
                styled.map_or(style, |(_, style)| *style)
            } else {
                style
            },
            marks_odd: false,
            has_owner: true,
            has_group: true,
            has_author: false,
            is_numeric: false,
            has_inode: false,
            has_blocks: false,
            sizes: Units::Blocks { bytes: 1, letter: "" },
            blocks: Units::Blocks { bytes: 1024, letter: "" },
            time_style: Default::default(),
            colors: None,
            width: number("COLUMNS").unwrap_or(80).min(MAX_WIDTH),
            tab: number("TABSIZE").unwrap_or(8),
            line_end: b'\n',
            files: Vec::new(),
        }
    }

    /// Reads the command line.
    pub(super) fn read(run: &ProgramRun<'_>, layout: ListLayout, style: NameStyle) -> Result<Self, Ending> {
        let mut options = Self::new(run, layout, style);
        let mut said =
            GivenOptions { time_style: run.env.get("TIME_STYLE").cloned(), ..GivenOptions::default() };
        let mut words = run.words();
        while let Some(word) = words.next()? {
            let name = match &word {
                OptionWord::Operand(file) => {
                    options.files.push(file.clone());
                    continue;
                }
                OptionWord::Short(letter) => {
                    let found = SHORT_NAMES.iter().find(|(short, _)| short == letter);
                    found.map(|(_, name)| *name).ok_or_else(|| unknown(&word))?
                }
                OptionWord::Long(name) if name == "zero" => "zero",
                OptionWord::Long(name) => complete(name, LONG_NAMES)?,
            };
            let is_known = options.set_layout(name, &mut said)
                || options.set_flag(name, &mut said)
                || options.set_order(name, &mut said)
                || options.set_value(name, &mut words, &mut said, run)?;
            if !is_known {
                return Err(unknown(&word));
            }
        }
        options.finish(said)?;
        Ok(options)
    }

    fn set_layout(&mut self, name: &str, said: &mut GivenOptions) -> bool {
        match name {
            "lines" if self.layout == ListLayout::Long => {}
            "lines" => self.layout = ListLayout::Lines,
            "columns" => self.layout = ListLayout::Columns,
            "across" => self.layout = ListLayout::Across,
            "commas" => self.layout = ListLayout::Commas,
            "long" => self.layout = ListLayout::Long,
            "no-owner" => (self.layout, self.has_owner) = (ListLayout::Long, false),
            "long-no-group" => (self.layout, self.has_group) = (ListLayout::Long, false),
            "numeric-uid-gid" => (self.layout, self.is_numeric) = (ListLayout::Long, true),
            "full-time" => {
                self.layout = ListLayout::Long;
                said.time_style = Some("full-iso".to_owned());
            }
            "zero" => {
                self.line_end = 0;
                self.style = NameStyle::Literal;
                self.colors = None;
                if self.layout != ListLayout::Long {
                    self.layout = ListLayout::Lines;
                }
            }
            _ => return false,
        }
        true
    }

    fn set_flag(&mut self, name: &str, said: &mut GivenOptions) -> bool {
        match name {
            "all" => self.hidden = DotNames::All,
            "almost-all" => self.hidden = DotNames::AlmostAll,
            "escape" => self.style = NameStyle::Escape,
            "ignore-backups" => self.ignored.extend(["*~".to_owned(), ".*~".to_owned()]),
            "directory" => self.directories_themselves = true,
            "dereference" => said.follow = Some(LsFollow::Always),
            "dereference-command-line" => said.follow = Some(LsFollow::CommandLine),
            "dereference-command-line-symlink-to-dir" => said.follow = Some(LsFollow::Directories),
            "no-group" => self.has_group = false,
            "author" => self.has_author = true,
            "human-readable" => (self.sizes, self.blocks) = (Units::Human(1024), Units::Human(1024)),
            "si" => (self.sizes, self.blocks) = (Units::Human(1000), Units::Human(1000)),
            "kibibytes" => self.blocks = Units::Blocks { bytes: 1024, letter: "" },
            "inode" => self.has_inode = true,
            "size" => self.has_blocks = true,
            "literal" => self.style = NameStyle::Literal,
            "quote-name" => self.style = NameStyle::C,
            "slash" => self.marks = NameMarks::Slash,
            "file-type" => self.marks = NameMarks::FileType,
            "hide-control-chars" => self.marks_odd = true,
            "show-control-chars" => self.marks_odd = false,
            "reverse" => self.is_reversed = true,
            "recursive" => self.is_recursive = true,
            "group-directories-first" => self.directories_first = true,
            _ => return false,
        }
        true
    }

    fn set_order(&mut self, name: &str, said: &mut GivenOptions) -> bool {
        let sort = match name {
            "ctime" | "atime" => {
                said.has_time = true;
                return true;
            }
            "fast" => {
                self.hidden = DotNames::All;
                Sort::None
            }
            "unsorted" => Sort::None,
            "by-size" => Sort::Size,
            "by-time" => Sort::Time,
            "by-version" => Sort::Version,
            "by-extension" => Sort::Extension,
            _ => return false,
        };
        said.sort = Some(sort);
        true
    }

    fn set_value(
        &mut self,
        name: &str,
        words: &mut Words,
        said: &mut GivenOptions,
        run: &ProgramRun<'_>,
    ) -> Result<bool, Ending> {
        match name {
            "classify" if is_always(words, "--classify")? => self.marks = NameMarks::Classify,
            "color" if is_always(words, "--color")? => self.colors = Some(Colors::of(run.env)),
            "color" => self.colors = None,
            "hyperlink" if is_always(words, "--hyperlink")? => return Ok(false),
            "classify" | "hyperlink" => {}
            "ignore" => self.ignored.push(words.value()?),
            "hide" => self.hidden_patterns.push(words.value()?),
            "sort" => said.sort = Some(choose(&SORTS, &words.value()?, "--sort")?),
            "format" => self.layout = choose(&LAYOUTS, &words.value()?, "--format")?,
            "indicator-style" => self.marks = choose(&MARKS, &words.value()?, "--indicator-style")?,
            "quoting-style" => self.style = choose(&STYLES, &words.value()?, "--quoting-style")?,
            "time" => said.has_time = choose(&TIMES, &words.value()?, "--time").map(|_| true)?,
            "time-style" => said.time_style = Some(words.value()?),
            "width" => {
                let width = words.value()?;
                let wrong = || Ending::with_status(format!("invalid line width: {}", curly(&width)), 2);
                self.width = width.parse::<usize>().map_err(|_| wrong())?.min(MAX_WIDTH);
            }
            "tabsize" => {
                let tab = words.value()?;
                let wrong = || Ending::with_status(format!("invalid tab size: {}", curly(&tab)), 2);
                self.tab = tab.parse().map_err(|_| wrong())?;
            }
            "block-size" => {
                let size = words.value()?;
                let wrong =
                    || Ending::with_status(format!("invalid --block-size argument {}", quoted(&size)), 2);
                let units = Units::read(&size).ok_or_else(wrong)?;
                (self.sizes, self.blocks) = (units, units);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(&mut self, said: GivenOptions) -> Result<(), Ending> {
        let is_long = self.layout == ListLayout::Long;
        self.sort = said.sort.unwrap_or(if said.has_time && !is_long { Sort::Time } else { Sort::Name });
        let keeps = self.directories_themselves || self.marks == NameMarks::Classify || is_long;
        self.follow = said.follow.unwrap_or(if keeps { LsFollow::Never } else { LsFollow::Directories });
        if self.directories_themselves {
            self.is_recursive = false;
        }
        if self.width == 0 {
            self.width = MAX_WIDTH;
        }
        if is_long {
            self.time_style = time_style(said.time_style.as_deref().unwrap_or("locale"))?;
        }
        if self.files.is_empty() {
            self.files.push(".".to_owned());
        }
        Ok(())
    }
}

/// Reads the attached value of an option that says when something is done.
fn is_always(words: &mut Words, option: &str) -> Result<bool, Ending> {
    match words.attached()? {
        Some(when) => Ok(choose(&WHEN, &when, option)? == Occasion::Always),
        None => Ok(true),
    }
}
