//! `pgrep`: finds running tasks of the sandbox by name or command line.

use async_trait::async_trait;
use regex::RegexBuilder;

use super::options::{OptionWord, unknown};
use super::run::{Ending, ProgramRun, ShellProgram};
use crate::memory::tasks::program_name;

/// The status of a run that finds nothing.
const NOTHING: i32 = 1;
/// The status of a run whose command line is wrong.
const WRONG: i32 = 2;
/// The most characters of a name, as in Linux.
const NAME_LENGTH: usize = 15;

pub(super) struct Pgrep;

#[derive(Debug)]
struct TaskSearch {
    pattern: String,
    delimiter: String,
    is_whole_line: bool,
    is_exact: bool,
    ignores_case: bool,
    is_inverted: bool,
    counts: bool,
    shows_line: bool,
    shows_name: bool,
    only: Option<Only>,
}

/// The choice of a single task among those that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    Newest,
    Oldest,
}

const LONG: [(&str, char); 12] = [
    ("count", 'c'),
    ("delimiter", 'd'),
    ("euid", 'u'),
    ("exact", 'x'),
    ("full", 'f'),
    ("ignore-case", 'i'),
    ("inverse", 'v'),
    ("list-full", 'a'),
    ("list-name", 'l'),
    ("newest", 'n'),
    ("oldest", 'o'),
    ("uid", 'U'),
];

impl Default for TaskSearch {
    fn default() -> Self {
        Self {
            pattern: String::new(),
            delimiter: "\n".to_owned(),
            is_whole_line: false,
            is_exact: false,
            ignores_case: false,
            is_inverted: false,
            counts: false,
            shows_line: false,
            shows_name: false,
            only: None,
        }
    }
}

impl TaskSearch {
    /// Reads a command line. `None`: it asks for the processes of another user, which do not exist.
    fn read(run: &ProgramRun<'_>) -> Result<Option<Self>, Ending> {
        let mut search = Self::default();
        let (mut patterns, mut is_other_user, mut has_user) = (Vec::new(), false, false);
        let mut words = run.words();
        while let Some(word) = words.next()? {
            let letter = match &word {
                OptionWord::Short(letter) => *letter,
                OptionWord::Long(name) => {
                    let known = LONG.iter().find(|(long, _)| long == name);
                    known.ok_or_else(|| unknown(&word))?.1
                }
                OptionWord::Operand(operand) => {
                    patterns.push(operand.clone());
                    continue;
                }
            };
            match letter {
                'a' => search.shows_line = true,
                'c' => search.counts = true,
                'd' => search.delimiter = words.value()?,
                'f' => search.is_whole_line = true,
                'i' => search.ignores_case = true,
                'l' => search.shows_name = true,
                'n' => search.only = Some(Only::Newest),
                'o' => search.only = Some(Only::Oldest),
                'u' | 'U' => {
                    has_user = true;
                    let users = words.value()?;
                    is_other_user = !users.split(',').any(|user| matches!(user, "user" | "1000"));
                }
                'v' => search.is_inverted = true,
                'x' => search.is_exact = true,
                _ => return Err(unknown(&word)),
            }
        }
        match patterns.as_slice() {
            [] if has_user => {}
            [] => return Err(Ending::usage("no matching criteria specified")),
            [one] => search.pattern.clone_from(one),
            _ => return Err(Ending::usage("only one pattern can be provided")),
        }
        Ok((!is_other_user).then_some(search))
    }

    /// Returns the matching tasks, in the order of their numbers.
    fn pick(&self, tasks: Vec<(u32, Vec<String>)>) -> Result<Vec<(u32, Vec<String>)>, regex::Error> {
        let pattern = if self.is_exact { format!("^(?:{})$", self.pattern) } else { self.pattern.clone() };
        let pattern = RegexBuilder::new(&pattern).case_insensitive(self.ignores_case).build()?;
        let is_found = |(_, argv): &(u32, Vec<String>)| {
            let text = if self.is_whole_line { argv.join(" ") } else { name(argv) };
            pattern.is_match(&text) != self.is_inverted
        };
        let mut found: Vec<_> = tasks.into_iter().filter(is_found).collect();
        match self.only {
            Some(Only::Newest) => drop(found.drain(..found.len().saturating_sub(1))),
            Some(Only::Oldest) => found.truncate(1),
            None => {}
        }
        Ok(found)
    }

    /// Returns the output for the tasks that were found.
    fn shown(&self, found: &[(u32, Vec<String>)]) -> String {
        if self.counts {
            return format!("{}\n", found.len());
        }
        let line = |(pid, argv): &(u32, Vec<String>)| match () {
            () if self.shows_line => format!("{pid} {}", argv.join(" ")),
            () if self.shows_name => format!("{pid} {}", name(argv)),
            () => pid.to_string(),
        };
        let lines: Vec<String> = found.iter().map(line).collect();
        if lines.is_empty() { String::new() } else { format!("{}\n", lines.join(&self.delimiter)) }
    }
}

/// Returns the name that Linux would have for a process.
fn name(argv: &[String]) -> String {
    argv.first().map_or("", |program| program_name(program)).chars().take(NAME_LENGTH).collect()
}

#[async_trait]
impl ShellProgram for Pgrep {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let Some(search) = TaskSearch::read(run)? else { return Ok(NOTHING) };
        let shells = run.children.shells();
        let mut tasks = shells.tasks.command_lines();
        // A real shell becomes the last program that it runs, and a search leaves itself out.
        tasks.retain(|(pid, _)| *pid != shells.command);
        let found = match search.pick(tasks) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "a pattern of pgrep can't be read");
                run.complain("invalid regular expression").await?;
                return Ok(WRONG);
            }
        };
        run.print(search.shown(&found)).await?;
        Ok(if found.is_empty() { NOTHING } else { 0 })
    }

    fn usage_status(&self) -> i32 {
        WRONG
    }

    fn usage(&self) -> &'static str {
        "[OPTION]... PATTERN"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(pattern: &str) -> TaskSearch {
        TaskSearch { pattern: pattern.to_owned(), ..TaskSearch::default() }
    }

    fn tasks() -> Vec<(u32, Vec<String>)> {
        let lines = [(2, "bash -c sleep_60"), (3, "/usr/bin/sleep 60"), (5, "sleep 61")];
        lines.map(|(pid, line)| (pid, line.split(' ').map(str::to_owned).collect())).to_vec()
    }

    fn shown(search: &TaskSearch) -> String {
        search.shown(&search.pick(tasks()).unwrap())
    }

    #[test]
    fn a_name_is_looked_for_unless_the_whole_line_is() {
        assert_eq!(shown(&search("sle")), "3\n5\n");
        assert_eq!(shown(&TaskSearch { is_whole_line: true, ..search("sleep") }), "2\n3\n5\n");
        assert_eq!(shown(&TaskSearch { is_whole_line: true, is_exact: true, ..search("sleep 61") }), "5\n");
        assert_eq!(shown(&TaskSearch { is_exact: true, counts: true, ..search("sle") }), "0\n");
        assert_eq!(shown(&TaskSearch { is_inverted: true, ..search("sle") }), "2\n");
    }

    #[test]
    fn lines_names_and_the_newest_are_shown_as_asked() {
        assert_eq!(shown(&TaskSearch { shows_name: true, ..search("sleep") }), "3 sleep\n5 sleep\n");
        let newest = TaskSearch { shows_line: true, only: Some(Only::Newest), ..search("sleep") };
        assert_eq!(shown(&newest), "5 sleep 61\n");
        assert_eq!(shown(&TaskSearch { delimiter: ",".to_owned(), ..search("sleep") }), "3,5\n");
        assert!(search("(").pick(tasks()).is_err());
    }
}
