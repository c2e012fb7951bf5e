//! Every command's help has an example, and completions and man pages come from the same table.

use super::machine::Machine;

const COMMANDS: [&str; 55] = [
    "snapshot",
    "fork",
    "commit",
    "rollback",
    "diff",
    "apply",
    "run",
    "create",
    "ls",
    "exec",
    "sh",
    "start",
    "ps",
    "top",
    "logs",
    "kill",
    "wait",
    "cp",
    "read",
    "write",
    "glob",
    "grep",
    "watch",
    "net",
    "events",
    "inspect",
    "sleep",
    "wake",
    "update",
    "rm",
    "adopt",
    "dial",
    "transfer",
    "browse",
    "preview",
    "tools",
    "call",
    "pool",
    "image",
    "workspace",
    "agent",
    "serve",
    "keys",
    "backup",
    "restore",
    "mcp",
    "init",
    "bench",
    "providers",
    "doctor",
    "verify",
    "completions",
    "man",
    "help",
    "version",
];

/// Returns the names in the lists of commands of `eyot --help`, which are between the usage and the options.
fn all_listed(help: &str) -> Vec<&str> {
    let lists = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let names = lists.take_while(|line| *line != "Options:").filter_map(|line| line.strip_prefix("  "));
    names.filter_map(|line| line.split(' ').next()).collect()
}

/// Returns the names in the list of commands of a command's help.
fn listed(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // A description that goes on is indented further.
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next()).collect()
}

#[test]
fn every_command_is_listed_and_its_help_has_an_example_of_it() {
    let machine = Machine::new();
    let help = machine.run(&["--help"]).success();
    let (mut listed, mut all) = (all_listed(&help), COMMANDS.to_vec());
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
    for command in COMMANDS {
        let help = machine.run(&[command, "--help"]).success();
        let examples =
            help.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{command} has no examples"));
        assert!(examples.contains(&format!("eyot {command}")), "{command}: {examples}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{command} has a line that is too long"
        );
    }
}

#[test]
fn help_and_completions_touch_neither_state_nor_configuration() {
    let machine = Machine::new();
    machine.write("home/.config/eyot/config.toml", "wrong = true\n");
    for shell in ["bash", "zsh", "fish"] {
        let script = machine.run(&["completions", shell]).success();
        assert!(script.contains("inspect") && !script.contains("--simulate"), "{shell}");
    }
    assert!(machine.run(&["man"]).success().contains(".TH EYOT 1"));
    let page = machine.run(&["man", "run"]).success();
    assert!(page.contains("Examples:") && page.is_ascii());
    assert!(!machine.state().exists());
}

#[test]
fn a_man_page_is_written_for_every_command() {
    let machine = Machine::new();
    machine.run(&["man", "--dir", &machine.path_text("man/man1")]).success();
    for command in COMMANDS {
        assert!(machine.path(&format!("man/man1/eyot-{command}.1")).exists(), "{command}");
    }
    for page in ["eyot", "eyot-image-pull", "eyot-pool-rm"] {
        assert!(machine.path(&format!("man/man1/{page}.1")).exists(), "{page}");
    }
    let page = machine.run(&["man", "image", "pull"]).success();
    assert!(page.contains("eyot image pull debian:12"), "{page}");
    let title = page.lines().find(|line| line.starts_with(".TH")).unwrap();
    assert_eq!(
        title.split_whitespace().collect::<Vec<_>>().join(" "),
        format!(".TH EYOT-IMAGE-PULL 1 \"eyot {}\" Eyot", env!("CARGO_PKG_VERSION"))
    );
    machine.run(&["man", "nonsense"]).failure(2);
    assert!(machine.run(&["man", "image", "nonsense"]).failure(2).contains("`image nonsense`"));
}

#[test]
fn the_version_is_said() {
    let version = Machine::new().run(&["--version"]).success();
    let build = version.strip_prefix(concat!("eyot ", env!("CARGO_PKG_VERSION"), " (")).unwrap_or_default();
    assert!(build.ends_with(")\n") && build.len() > 3, "{version}");
}

/// Returns the lines after the examples that end early: the next line's first word would have fitted.
fn stubs(help: &str, width: usize) -> Vec<&str> {
    let lines: Vec<&str> = help.lines().skip_while(|line| *line != "Examples:").collect();
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
    let fits = |line: &str, next: &str| {
        let word = next.split(' ').next().unwrap_or_default();
        line.chars().count() + 1 + word.chars().count() <= width
    };
    let pairs = lines.windows(2).filter(|pair| is_prose(pair[0]) && is_prose(pair[1]));
    pairs.filter(|pair| fits(pair[0], pair[1])).map(|pair| pair[0]).collect()
}

#[test]
fn help_shows_what_is_asked_for_most() {
    let machine = Machine::new();
    let help = |command: &str| {
        let help = machine.run(&["help", command]).success();
        help.lines().filter(|line| line.trim_start().starts_with("eyot ")).collect::<Vec<_>>().join("\n")
    };
    assert!(help("create").contains("--memory") && help("create").contains("--net egress"));
    let mcp = machine.run(&["help", "mcp"]).success();
    let mcp = mcp.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(mcp.contains(r#"{"type": "stdio", "command": "eyot", "args": ["mcp"]}"#), "{mcp}");
}

/// Returns the help of a command for a terminal of this width.
fn help_at(machine: &Machine, command: &[&str], width: usize) -> String {
    let mut program = machine.command(&[command, &["--help"]].concat());
    let output = program.env("COLUMNS", width.to_string()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the lines of the examples, and of other lists behind them.
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Examples:");
    lines.filter(|line| line.starts_with("  ")).collect()
}

#[test]
fn every_command_has_examples_and_help_is_wrapped_between_words_and_never_in_an_example() {
    let machine = Machine::new();
    for command in COMMANDS {
        let parent = help_at(&machine, &[command], 100);
        let commands = std::iter::once(vec![command]);
        for command in commands.chain(listed(&parent).into_iter().map(|name| vec![command, name])) {
            let [wide, usual, narrow] = [100, 80, 60].map(|width| help_at(&machine, &command, width));
            let called = format!("eyot {}", command.join(" "));
            let shown = examples(&wide);
            assert!(shown.iter().any(|line| line.contains(&called)), "no example of {called}: {wide}");
            assert_eq!(examples(&usual), shown, "{called}");
            assert_eq!((stubs(&usual, 80), stubs(&narrow, 60)), (vec![], vec![]), "{called}: {usual}");
        }
    }
}
