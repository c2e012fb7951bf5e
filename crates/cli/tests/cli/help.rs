//! Every command's help has an example, and completions and man pages come from the same table.

use super::machine::Machine;

const COMMANDS: [&str; 45] = [
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
    "serve",
    "keys",
    "backup",
    "restore",
    "mcp",
    "init",
    "bench",
    "doctor",
    "verify",
    "completions",
    "man",
    "help",
    "version",
];

/// Returns the names in the list of commands of `eyot --help`.
fn listed(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn every_command_is_listed_and_its_help_has_an_example_of_it() {
    let machine = Machine::new();
    let help = machine.run(&["--help"]).success();
    assert_eq!(listed(&help), COMMANDS);
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
        assert!(machine.run(&["completions", shell]).success().contains("inspect"), "{shell}");
    }
    assert!(machine.run(&["man"]).success().contains(".TH eyot 1"));
    assert!(machine.run(&["man", "run"]).success().contains("Examples:"));
    assert!(!machine.state().exists());
}

#[test]
fn a_man_page_is_written_for_every_command() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("man1")).unwrap();
    machine.run(&["man", "--dir", &machine.path_text("man1")]).success();
    for command in COMMANDS {
        assert!(machine.path(&format!("man1/eyot-{command}.1")).exists(), "{command}");
    }
    machine.run(&["man", "nonsense"]).failure(2);
}

#[test]
fn the_version_is_said() {
    let version = Machine::new().run(&["--version"]).success();
    assert_eq!(version, format!("eyot {}\n", env!("CARGO_PKG_VERSION")));
}
