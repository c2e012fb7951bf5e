//! The figures of `docs/performance.md`: each table follows a line `Measured with …` that names a command, and the command
//! exists: its subcommand, its options, its test.

use std::fs;

use crate::process::root;

const PAGE: &str = "docs/performance.md";
const MARK: &str = "Measured with ";

/// The sources that say which commands there are.
struct Commands {
    /// The arguments of `eyot`, all files as one text.
    arguments: String,
    /// The table of `eyot`'s commands.
    table: String,
    /// The tasks of `cargo xtask`.
    tasks: String,
    /// The names of test targets, and what is in their files.
    tests: Vec<(String, String)>,
    /// The scripts of the TypeScript package.
    scripts: String,
}

/// Says which tables name no command, and which commands do not exist.
pub fn check() -> Result<Vec<String>, String> {
    Ok(wrong(&text(PAGE)?, &commands()?))
}

fn text(path: &str) -> Result<String, String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("read {path}: {error}"))
}

fn commands() -> Result<Commands, String> {
    let mut tests = Vec::new();
    let mut arguments = String::new();
    for source in crate::source::all()? {
        if source.path.starts_with("crates/cli/src/args/") {
            arguments += &source.text;
        } else if let Some((_, test)) = source.path.split_once("/tests/") {
            let name = test.split(['/', '.']).next().unwrap_or_default().to_owned();
            tests.push((name, source.text));
        }
    }
    let (table, tasks) = (text("crates/cli/src/args/mod.rs")?, text("xtask/src/main.rs")?);
    Ok(Commands { arguments, table, tasks, tests, scripts: text("sdks/typescript/package.json")? })
}

fn wrong(page: &str, commands: &Commands) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut named: Option<bool> = None;
    let mut before = "";
    for line in page.lines() {
        if line.starts_with('#') {
            named = None;
        }
        if let Some(rest) = line.strip_prefix(MARK) {
            named = Some(true);
            let unknown = rest
                .split('`')
                .nth(1)
                .map_or(Some("names no command".to_owned()), |command| commands.unknown(command));
            wrong.extend(unknown.map(|why| format!("{PAGE}: `{line}`: {why}")));
        }
        if line.starts_with('|') && !before.starts_with('|') && named.take().is_none() {
            wrong.push(format!("{PAGE}: a table follows no line `{MARK}…`: {line}"));
        }
        before = line;
    }
    wrong
}

impl Commands {
    /// Says what of a command does not exist.
    fn unknown(&self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["perf" | "strace", ..] => None,
            ["npm", "run", script, ..] => self.no_script(script),
            ["cargo", "xtask", task, ..] => (!self.tasks.contains(&format!("\"{task}\" => ")))
                .then(|| format!("there is no task `{task}`")),
            ["cargo", "test", rest @ ..] => self.no_test(rest),
            ["eyot", rest @ ..] => self.no_command(rest),
            _ => Some("is no command that this check knows".to_owned()),
        }
    }

    fn no_script(&self, script: &str) -> Option<String> {
        (!self.scripts.contains(&format!("\"{script}\":"))).then(|| format!("there is no script `{script}`"))
    }

    fn no_test(&self, words: &[&str]) -> Option<String> {
        let target = words.iter().skip_while(|word| **word != "--test").nth(1)?;
        let files: Vec<&String> =
            self.tests.iter().filter(|(name, _)| name == target).map(|(_, text)| text).collect();
        if files.is_empty() {
            return Some(format!("there is no test target `{target}`"));
        }
        let filter = words.iter().skip_while(|word| *word != target).nth(1).filter(|word| **word != "--")?;
        let is_there = files.iter().any(|text| text.contains(*filter));
        (!is_there).then(|| format!("no test of `{target}` is called `{filter}`"))
    }

    fn no_command(&self, words: &[&str]) -> Option<String> {
        let is_command = |word: &str| self.table.contains(&format!("), \"{word}\""));
        if !words.iter().any(|word| is_command(word)) {
            return Some("names no command of eyot".to_owned());
        }
        let options =
            words.iter().take_while(|word| **word != "--").filter_map(|word| word.strip_prefix("--"));
        let unknown = options.filter(|option| {
            let field = option.split('=').next().unwrap_or_default().replace('-', "_");
            !self.arguments.contains(&format!("pub {field}: "))
        });
        let unknown: Vec<&str> = unknown.collect();
        (!unknown.is_empty()).then(|| format!("eyot has no option --{}", unknown.join(", --")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(page: &str) -> Vec<String> {
        let text = |text: &str| text.to_owned();
        let commands = Commands {
            arguments: text("pub rounds: u32, pub disk_mib: u64,"),
            table: text("Bench(BenchArgs), \"bench\", \"…\";"),
            tasks: text("\"soak\" => soak::run(),"),
            tests: vec![(text("load"), text("fn a_minute() {}"))],
            scripts: text("\"bench:anvia\": \"…\""),
        };
        wrong(page, &commands)
    }

    #[test]
    fn a_table_after_a_command_that_exists_is_fine() {
        for command in [
            "eyot bench --rounds 3 --disk-mib=8",
            "cargo xtask soak load",
            "cargo test --release -p a --test load a_minute -- --ignored",
            "npm run bench:anvia -- native",
        ] {
            assert_eq!(said(&format!("Measured with `{command}`.\n\n| a | b |\n")), [""; 0], "{command}");
        }
    }

    #[test]
    fn a_table_without_a_command_or_with_one_that_does_not_exist_is_told() {
        assert_eq!(said("## A\n\n| a | b |\n").len(), 1);
        assert_eq!(said("Measured with `eyot bench`.\n## A\n\n| a | b |\n").len(), 1, "of another section");
        assert_eq!(
            said("Measured with `eyot bench`.\n\n| a |\n\n| b |\n").len(),
            1,
            "each table has its own"
        );
        for command in
            ["eyot bunch", "eyot bench --laps 3", "cargo xtask sock", "cargo test --test lead", "make"]
        {
            assert_eq!(said(&format!("Measured with `{command}`.\n\n| a |\n")).len(), 1, "{command}");
        }
    }
}
