//! The options of `diff`.

use super::changes::IgnoreRules;
use super::excludes::Excludes;
use super::formats::Formats;
use super::text::{Sameness, Whitespace};
use crate::memory::programs::basic_regex;
use crate::memory::programs::options::{OptionWord, Words, complete, unknown};
use crate::memory::programs::quoting::shell_word;
use crate::memory::programs::run::{Ending, ProgramRun};
use regex::bytes::Regex;

/// The way in which differences are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffStyle {
    Normal,
    Context,
    Unified,
    Ed,
    Rcs,
    SideBySide,
    Formats,
}

#[derive(Debug)]
pub(super) struct Options {
    pub style: DiffStyle,
    pub context: usize,
    pub is_brief: bool,
    pub reports_identical: bool,
    pub is_recursive: bool,
    pub is_text: bool,
    pub is_minimal: bool,
    pub strips_carriage_returns: bool,
    pub keeps_links: bool,
    /// A missing file counts as empty: the new one, and the old one.
    pub missing_is_empty: [bool; 2],
    pub sameness: Sameness,
    pub ignored: IgnoreRules,
    pub excludes: Excludes,
    pub starting_file: Option<String>,
    pub ignores_case_of_names: bool,
    pub labels: Vec<String>,
    pub function: Option<Regex>,
    pub expands_tabs: bool,
    pub has_initial_tab: bool,
    pub blank_stays_empty: bool,
    pub tab_size: usize,
    pub width: usize,
    pub is_left_column: bool,
    pub hides_common: bool,
    pub formats: Formats,
    pub from_file: Option<String>,
    pub to_file: Option<String>,
    pub operands: Vec<String>,
    /// The options as they were given, quoted, each with a space before it.
    pub given: String,
}

/// The long names, with those that are refused when they are used.
const LONG: &[&str] = &[
    "brief",
    "changed-group-format",
    "color",
    "context",
    "ed",
    "exclude",
    "exclude-from",
    "expand-tabs",
    "from-file",
    "horizon-lines",
    "ignore-all-space",
    "ignore-blank-lines",
    "ignore-case",
    "ignore-file-name-case",
    "ignore-matching-lines",
    "ignore-space-change",
    "ignore-tab-expansion",
    "ignore-trailing-space",
    "initial-tab",
    "label",
    "left-column",
    "line-format",
    "minimal",
    "new-file",
    "new-group-format",
    "new-line-format",
    "no-dereference",
    "no-ignore-file-name-case",
    "normal",
    "old-group-format",
    "old-line-format",
    "rcs",
    "recursive",
    "report-identical-files",
    "show-c-function",
    "show-function-line",
    "side-by-side",
    "speed-large-files",
    "starting-file",
    "strip-trailing-cr",
    "suppress-blank-empty",
    "suppress-common-lines",
    "tabsize",
    "text",
    "to-file",
    "unchanged-group-format",
    "unchanged-line-format",
    "unidirectional-new-file",
    "unified",
    "width",
];

/// The short options with a value, and the long ones whose value may stand apart.
const SHORT_WITH_VALUE: &str = "CFILSUWxX";
const LONG_WITH_VALUE: &[&str] = &[
    "changed-group-format",
    "exclude",
    "exclude-from",
    "from-file",
    "horizon-lines",
    "ignore-matching-lines",
    "label",
    "line-format",
    "new-group-format",
    "new-line-format",
    "old-group-format",
    "old-line-format",
    "show-function-line",
    "starting-file",
    "tabsize",
    "to-file",
    "unchanged-group-format",
    "unchanged-line-format",
    "width",
];

/// The long name of a short option.
fn long_name(letter: char) -> Option<&'static str> {
    Some(match letter {
        'a' => "text",
        'b' => "ignore-space-change",
        'B' => "ignore-blank-lines",
        'd' => "minimal",
        'e' => "ed",
        'E' => "ignore-tab-expansion",
        'F' => "show-function-line",
        'H' => "speed-large-files",
        'i' => "ignore-case",
        'I' => "ignore-matching-lines",
        'L' => "label",
        'n' => "rcs",
        'N' => "new-file",
        'p' => "show-c-function",
        'P' => "unidirectional-new-file",
        'q' => "brief",
        'r' => "recursive",
        's' => "report-identical-files",
        'S' => "starting-file",
        't' => "expand-tabs",
        'T' => "initial-tab",
        'w' => "ignore-all-space",
        'W' => "width",
        'x' => "exclude",
        'X' => "exclude-from",
        'y' => "side-by-side",
        'Z' => "ignore-trailing-space",
        _ => return None,
    })
}

/// A refusal with the hint as `diff` prints it.
fn usage(reason: impl std::fmt::Display) -> Ending {
    Ending::with_status(format!("{reason}\ndiff: Try 'diff --help' for more information."), 2)
}

/// Gives a refusal of the command line the hint of `diff`.
fn as_usage(ending: Ending) -> Ending {
    match ending {
        Ending::Refused { reason, has_hint: true, .. } => usage(reason),
        other => other,
    }
}

/// The options while they are read.
struct DiffOptionReader<'a, 'r> {
    run: &'a ProgramRun<'r>,
    words: Words,
    options: Options,
    style: Option<DiffStyle>,
    context: Option<usize>,
    /// The number of an option such as `-5`.
    digits: Option<usize>,
}

pub(super) async fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let options = Options { given: given_options(run.args), ..Options::default() };
    let mut reading =
        DiffOptionReader { run, words: run.words(), options, style: None, context: None, digits: None };
    while let Some(word) = reading.words.next().map_err(as_usage)? {
        reading.take(word).await.map_err(as_usage)?;
    }
    reading.finish()
}

impl Default for Options {
    fn default() -> Self {
        Self {
            style: DiffStyle::Normal,
            context: 3,
            is_brief: false,
            reports_identical: false,
            is_recursive: false,
            is_text: false,
            is_minimal: false,
            strips_carriage_returns: false,
            keeps_links: false,
            missing_is_empty: [false; 2],
            sameness: Sameness { tab_size: 8, ..Sameness::default() },
            ignored: IgnoreRules::default(),
            excludes: Excludes::default(),
            starting_file: None,
            ignores_case_of_names: false,
            labels: Vec::new(),
            function: None,
            expands_tabs: false,
            has_initial_tab: false,
            blank_stays_empty: false,
            tab_size: 8,
            width: 130,
            is_left_column: false,
            hides_common: false,
            formats: Formats::default(),
            from_file: None,
            to_file: None,
            operands: Vec::new(),
            given: String::new(),
        }
    }
}

impl Options {
    /// Tells whether files are the same only if all their bytes are.
    pub(super) fn is_exact(&self) -> bool {
        self.sameness.is_exact() && !self.ignored.blank_lines && self.ignored.patterns.is_empty()
    }
}

impl DiffOptionReader<'_, '_> {
    async fn take(&mut self, word: OptionWord) -> Result<(), Ending> {
        match word {
            OptionWord::Operand(operand) => self.options.operands.push(operand),
            OptionWord::Short('c') => self.set_style(DiffStyle::Context, None)?,
            OptionWord::Short('u') => self.set_style(DiffStyle::Unified, None)?,
            OptionWord::Short(letter @ ('C' | 'U')) => {
                let lines = self.words.value()?;
                let style = if letter == 'C' { DiffStyle::Context } else { DiffStyle::Unified };
                self.set_style(style, Some(&lines))?;
            }
            OptionWord::Short(digit @ '0'..='9') => {
                let digit = digit.to_digit(10).unwrap_or(0) as usize;
                self.digits = Some(self.digits.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            }
            OptionWord::Short(letter) => match long_name(letter) {
                Some(name) => self.set(name).await?,
                None => return Err(unknown(&word)),
            },
            OptionWord::Long(name) => {
                let name = complete(&name, LONG)?;
                self.set(name).await?;
            }
        }
        Ok(())
    }

    fn set_style(&mut self, style: DiffStyle, context: Option<&str>) -> Result<(), Ending> {
        if self.style.is_some_and(|before| before != style) {
            return Err(Ending::usage("conflicting output style options"));
        }
        self.style = Some(style);
        if let Some(context) = context {
            let lines = number(context)
                .ok_or_else(|| Ending::usage(format!("invalid context length '{context}'")))?;
            self.context = Some(self.context.unwrap_or(0).max(lines));
        }
        Ok(())
    }

    async fn set(&mut self, name: &'static str) -> Result<(), Ending> {
        match name {
            "normal" => self.set_style(DiffStyle::Normal, None),
            "ed" => self.set_style(DiffStyle::Ed, None),
            "rcs" => self.set_style(DiffStyle::Rcs, None),
            "side-by-side" => self.set_style(DiffStyle::SideBySide, None),
            "context" | "unified" => {
                let context = self.words.attached()?;
                let style = if name == "context" { DiffStyle::Context } else { DiffStyle::Unified };
                self.set_style(style, context.as_deref())
            }
            "color" => self.take_color(),
            _ if LONG_WITH_VALUE.contains(&name) => {
                let value = self.words.value()?;
                self.set_value(name, value).await
            }
            _ => {
                self.set_flag(name);
                Ok(())
            }
        }
    }

    fn take_color(&mut self) -> Result<(), Ending> {
        match self.words.attached()?.as_deref() {
            None | Some("never" | "auto") => Ok(()),
            Some("always") => Err(Ending::with_status("colors are not supported in memory", 2)),
            Some(other) => Err(Ending::usage(format!("invalid color '{other}'"))),
        }
    }

    fn set_flag(&mut self, name: &str) {
        let options = &mut self.options;
        let whitespace = &mut options.sameness.whitespace;
        match name {
            "brief" => options.is_brief = true,
            "expand-tabs" => options.expands_tabs = true,
            "ignore-all-space" => *whitespace = Whitespace::Never,
            "ignore-space-change" => *whitespace = (*whitespace).max(Whitespace::NotItsAmount),
            "ignore-tab-expansion" => *whitespace = whitespace.with(Whitespace::TabsAreSpaces),
            "ignore-trailing-space" => *whitespace = whitespace.with(Whitespace::NotAtEnd),
            "ignore-blank-lines" => options.ignored.blank_lines = true,
            "ignore-case" => options.sameness.ignores_case = true,
            "ignore-file-name-case" => options.ignores_case_of_names = true,
            "no-ignore-file-name-case" => options.ignores_case_of_names = false,
            "initial-tab" => options.has_initial_tab = true,
            "left-column" => options.is_left_column = true,
            "minimal" => options.is_minimal = true,
            "new-file" => options.missing_is_empty = [true; 2],
            "unidirectional-new-file" => options.missing_is_empty[0] = true,
            "no-dereference" => options.keeps_links = true,
            "recursive" => options.is_recursive = true,
            "report-identical-files" => options.reports_identical = true,
            "show-c-function" => options.function = basic_regex::compile("^[[:alpha:]$_]", false).ok(),
            "strip-trailing-cr" => options.strips_carriage_returns = true,
            "suppress-blank-empty" => options.blank_stays_empty = true,
            "suppress-common-lines" => options.hides_common = true,
            "text" => options.is_text = true,
            // `speed-large-files` changes nothing that shows.
            _ => {}
        }
    }

    async fn set_value(&mut self, name: &str, value: String) -> Result<(), Ending> {
        let options = &mut self.options;
        match name {
            "exclude" => options.excludes.add(&value),
            "exclude-from" => match self.run.read(&value).await? {
                Ok(bytes) => options.excludes.add_lines(&bytes),
                Err(reason) => return Err(Ending::with_status(format!("{value}: {reason}"), 2)),
            },
            "from-file" => options.from_file = Some(value),
            "to-file" => options.to_file = Some(value),
            "ignore-matching-lines" => options.ignored.patterns.push(pattern(&value)?),
            "show-function-line" => options.function = Some(pattern(&value)?),
            "label" if options.labels.len() == 2 => {
                return Err(Ending::with_status("too many file label options", 2));
            }
            "label" => options.labels.push(value),
            "starting-file" => options.starting_file = Some(value),
            "tabsize" => options.tab_size = positive(&value, "tabsize")?,
            "width" => options.width = positive(&value, "width")?,
            "horizon-lines" => {
                number(&value).ok_or_else(|| Ending::usage(format!("invalid horizon length '{value}'")))?;
            }
            // The formats of groups and lines.
            _ => {
                self.set_style(DiffStyle::Formats, None)?;
                self.options.formats.set(name, &value)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Options, Ending> {
        let mut options = self.options;
        let has_context = matches!(self.style, Some(DiffStyle::Context | DiffStyle::Unified));
        if options.function.is_some() && self.style.is_none() {
            options.style = DiffStyle::Context;
        }
        options.style = self.style.unwrap_or(options.style);
        let digits = self.digits.filter(|_| has_context);
        options.context = self.context.or(digits).unwrap_or(options.context);
        options.sameness.tab_size = options.tab_size;
        options.sameness.ignores_newline = options.style == DiffStyle::Ed;
        let is_pair = options.from_file.is_none() && options.to_file.is_none();
        if options.from_file.is_some() && options.to_file.is_some() {
            return Err(Ending::with_status("--from-file and --to-file both specified", 2));
        }
        match options.operands.as_slice() {
            operands if is_pair && operands.len() < 2 => {
                let last = operands.last().map_or("diff", String::as_str);
                Err(usage(format!(
                    "missing operand after '{}'",
                    self.run.args.last().map_or(last, String::as_str)
                )))
            }
            [_, _, extra, ..] if is_pair => Err(usage(format!("extra operand '{extra}'"))),
            _ => Ok(options),
        }
    }
}

impl Whitespace {
    /// Ignores one more kind, unless more is ignored already.
    fn with(self, more: Self) -> Self {
        match (self, more) {
            (Self::Counts, more) => more,
            (Self::TabsAreSpaces, Self::NotAtEnd) | (Self::NotAtEnd, Self::TabsAreSpaces) => {
                Self::TabsAreSpacesAndNotAtEnd
            }
            (before, _) => before,
        }
    }
}

/// Reads a number of lines; one that is too large is as good as the largest.
fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

fn positive(text: &str, what: &str) -> Result<usize, Ending> {
    let wrong = || Ending::usage(format!("invalid {what} '{text}'"));
    number(text).filter(|number| (1..=1 << 20).contains(number)).ok_or_else(wrong)
}

fn pattern(text: &str) -> Result<Regex, Ending> {
    basic_regex::compile(text, false).map_err(|reason| Ending::with_status(format!("{text}: {reason}"), 2))
}

/// Lists the options among the words, quoted for a shell.
fn given_options(args: &[String]) -> String {
    let mut given = String::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            given += " --";
            break;
        }
        if !arg.starts_with('-') || arg == "-" {
            continue;
        }
        given += &format!(" {}", shell_word(arg));
        let takes_next = match arg.strip_prefix("--") {
            Some(long) => complete(long, LONG).is_ok_and(|name| LONG_WITH_VALUE.contains(&name)),
            None => {
                let at = arg.find(|letter| SHORT_WITH_VALUE.contains(letter));
                at.is_some_and(|at| at + 1 == arg.len())
            }
        };
        if takes_next && let Some(value) = args.next() {
            given += &format!(" {}", shell_word(value));
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_repeated_with_their_values() {
        let given = |line: &str| given_options(&line.split('|').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(given("-r|--exclude=only_*|l|r"), " -r '--exclude=only_*'");
        assert_eq!(given("l|-rU|1|r|-x|it's|-N"), " -rU 1 -x \"it's\" -N");
        assert_eq!(given("-ru|--excl|a|b"), " -ru --excl");
        assert_eq!(given("-rx#|-x|#|--|-q"), " -rx# -x '#' --");
    }
}
