//! The arguments: one structure for each command, with its help. Parsing refuses everything that is
//! wrong without looking at the machine. Nothing here acts.

mod agent;
mod backup;
mod bench;
mod branches;
mod docker;
mod environment;
mod events;
mod exec;
mod files;
mod host;
mod image;
mod init;
mod mcp;
mod net;
mod place;
mod pool;
mod processes;
mod sandboxes;
mod server;
mod shell_support;
mod side;
mod signal_words;
mod spec;
mod tools;
mod top;
mod update;
mod values;
mod workspace;

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};
use eyot_providers::row::ProviderRow;

use crate::build_info::VERSION_IN_WORDS;

pub use agent::{AgentArgs, AgentCommand, AgentLsArgs, AgentWorkArgs};
pub use backup::{BackupArgs, RestoreArgs};
pub use bench::{BenchArgs, BenchImage};
pub use branches::{ApplyArgs, CommitArgs, DiffArgs, ForkArgs, RollbackArgs, SnapshotArgs, SnapshotCommand};
pub use docker::with_our_word;
pub use events::EventsArgs;
pub use exec::{ExecArgs, RunArgs, ShArgs, TerminalArgs};
pub use files::{CpArgs, GlobArgs, GrepArgs, ReadArgs, WatchArgs, WriteArgs};
pub use host::{DoctorArgs, ProvidersArgs, VerifyArgs};
pub use image::{BuildBaseArgs, ImageArgs, ImageCommand, ImportArgs, ImportSource, PullArgs};
pub use init::{InitArgs, InitFlueArgs, InitFramework};
pub use mcp::{McpAccessArgs, McpArgs};
pub use net::NetArgs;
pub use place::{PlaceArg, SandboxHolder};
pub use pool::{MembersArgs, PoolArgs, PoolCommand, PoolCreateArgs};
pub use processes::{KillArgs, LogsArgs, PsArgs, StartArgs, WaitArgs};
pub use sandboxes::{AdoptArgs, CreateArgs, DialArgs, InspectArgs, LsArgs, RmArgs, SleepArgs, WakeArgs};
pub use server::{KeysArgs, KeysCommand, PreviewArgs, ServeArgs};
pub use shell_support::{CompletionsArgs, HelpArgs, ManArgs, VersionArgs};
pub use side::Side;
pub use signal_words::with_signal_option;
pub use spec::{SpecArgs, idle_action_without_timeout};
pub use tools::{BrowseArgs, CallArgs, ToolsArgs, TransferArgs, WorkspaceOptionsArg};
pub use top::{TopArgs, TopSort};
pub use update::{ChangeArgs, UpdateArgs};
pub use values::{MOST_SLOTS, NetworkArg, parse_pull};
pub use workspace::{WorkspaceArgs, WorkspaceCommand};

const EXAMPLES: &str = "\
Examples:
  eyot run -- python3 -c 'print(6 * 7)'     one command in a throw-away sandbox
  eyot create builder                       a sandbox that stays
  eyot exec builder -- sh -c 'make 2>&1'    a command in it
  eyot sh builder                           a shell in it
  eyot cp ./src builder:/workspace/         files into it
  eyot rm builder                           and gone

Configuration, highest precedence first: flags, EYOT_* variables, \
~/.config/eyot/config.toml, /etc/eyot/config.toml, or --config FILE instead of both (docs/configuration.md has the keys).";

/// Computers for AI agents: private Linux sandboxes in a few milliseconds.
#[derive(Debug, Parser)]
#[command(name = "eyot", version = VERSION_IN_WORDS.as_str(), after_help = EXAMPLES, max_term_width = 100, help_template = help_template())]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Folder that holds the sandboxes [env: EYOT_STATE]
    #[arg(long, global = true, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Configuration file, instead of the user's and the machine's [env: EYOT_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    // The help comes from the table of providers.
    #[arg(long, global = true, value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = values::provider_parser(), help = values::provider_help())]
    pub provider: Option<&'static ProviderRow>,
    /// An option of the provider; may be repeated. `eyot providers` lists them
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = values::parse_provider_option)]
    pub provider_option: Vec<(String, String)>,
    /// Use the sandboxes of an Eyot server: http://HOST:PORT, https://… (EYOT_CA_CERT: trusted instead of the system) or unix:/PATH; its key is in EYOT_API_KEY [env: EYOT_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Print results as JSON, and errors as one more line on stderr; help, man pages, completions and prompts stay text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no notes and no progress on stderr
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Show the causes of an error; twice: diagnostics too
    #[arg(long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Returns the form of the program's own help. The parser itself would put all commands below one heading.
fn help_template() -> String {
    let (commands, options) = (CliCommand::list(), heading("Options"));
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}{options}\n{{options}}{{after-help}}"
    )
}

/// Renders a heading of the help as the parser does. Who prints it to no terminal leaves the escapes out.
fn heading(text: &str) -> String {
    let style = clap::builder::Styles::styled();
    let style = style.get_header();
    format!("{style}{text}:{style:#}")
}

/// Renders a command as a line of the help.
fn listed(name: &str, aliases: &[&str], about: &str) -> String {
    let style = clap::builder::Styles::styled();
    let style = style.get_literal();
    let aliases: String = aliases.iter().map(|alias| format!(" [alias: {alias}]")).collect();
    format!("  {style}{name:<12}{style:#} {about}{aliases}\n")
}

/// Declares the table of commands, by what they are about. It is written out rather than derived, so that only the flags of
/// the command that was called are built: building all of them would take as long as the start of a
/// sandbox may.
macro_rules! commands {
    ($($group:literal {
        $($variant:ident($args:ty), $name:literal $(| $alias:literal)?, $about:literal;)*
    })*) => {
        /// A command with its arguments.
        #[derive(Debug)]
        pub enum CliCommand {
            $($(#[doc = $about] $variant($args),)*)*
        }

        impl CliCommand {
            /// Returns the names of the commands.
            pub fn names() -> Vec<&'static str> {
                vec![$($($name $(, $alias)?),*),*]
            }

            /// Returns the list of commands for the help, by what they are about.
            fn list() -> String {
                let mut list = String::new();
                $(
                    list.push_str(&format!("{}\n", heading($group)));
                    $(list.push_str(&listed($name, &[$($alias)?], $about));)*
                    list.push('\n');
                )*
                list
            }
        }

        impl Subcommand for CliCommand {
            fn augment_subcommands(program: Command) -> Command {
                program$($(.subcommand(
                    Command::new($name).about($about)$(.visible_alias($alias))?
                        .defer(|command| <$args>::augment_args(command).about($about)),
                ))*)*
            }

            fn augment_subcommands_for_update(program: Command) -> Command {
                Self::augment_subcommands(program)
            }

            fn has_subcommand(name: &str) -> bool {
                matches!(name, $($($name $(| $alias)?)|*)|*)
            }
        }

        impl FromArgMatches for CliCommand {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                match matches.subcommand() {
                    $($(Some(($name, matches)) => <$args>::from_arg_matches(matches).map(Self::$variant),)*)*
                    _ => Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

commands! {
    "Sandboxes" {
        Run(RunArgs), "run", "Run one command in a throw-away sandbox";
        Create(CreateArgs), "create", "Create a sandbox that stays";
        Exec(ExecArgs), "exec", "Run a command in a sandbox";
        Sh(ShArgs), "sh" | "shell", "Open a shell in a sandbox";
        Ls(LsArgs), "ls" | "list", "List the sandboxes";
        Inspect(InspectArgs), "inspect", "Show a sandbox: its spec, its usage and its isolation";
        Top(TopArgs), "top", "Show the usage of sandboxes, refreshed";
        Events(EventsArgs), "events", "Show what happened to the sandboxes, and why";
        Update(UpdateArgs), "update", "Change the deadlines and labels of a sandbox";
        Sleep(SleepArgs), "sleep" | "stop", "Stop the processes of sandboxes and keep their files";
        Wake(WakeArgs), "wake", "Make sleeping sandboxes usable again";
        Rm(RmArgs), "rm", "Destroy sandboxes";
    }
    "Processes" {
        Start(StartArgs), "start", "Start a process in a sandbox and leave it running";
        Ps(PsArgs), "ps", "List the started processes of a sandbox";
        Logs(LogsArgs), "logs", "Print the output of a started process";
        Wait(WaitArgs), "wait", "Wait for a started process to end";
        Kill(KillArgs), "kill", "Send a signal to a started process";
    }
    "Files" {
        Cp(CpArgs), "cp", "Copy files and trees into, out of and between sandboxes";
        Read(ReadArgs), "read", "Print a file of a sandbox";
        Write(WriteArgs), "write", "Write a file in a sandbox";
        Glob(GlobArgs), "glob", "Find files by pattern";
        Grep(GrepArgs), "grep", "Find lines by pattern";
        Watch(WatchArgs), "watch", "Print changes of files as they happen";
        Transfer(TransferArgs), "transfer", "Copy a file or a tree from one sandbox to another";
    }
    "Branches" {
        Snapshot(SnapshotArgs), "snapshot", "Keep the files of a sandbox as they are; list and remove what is kept";
        Fork(ForkArgs), "fork", "Make sandboxes from a snapshot or from another sandbox";
        Commit(CommitArgs), "commit", "Make an image of a snapshot or of a sandbox as it is now";
        Rollback(RollbackArgs), "rollback", "Give a sandbox the files of a snapshot again";
        Diff(DiffArgs), "diff", "List the files that differ between snapshots and sandboxes";
        Apply(ApplyArgs), "apply", "Write what a sandbox has changed in a copy of a folder back into the folder";
    }
    "Network" {
        Net(NetArgs), "net", "Show and change where a sandbox may connect to";
        Browse(BrowseArgs), "browse", "Open a port of a sandbox on this host's loopback";
        Preview(PreviewArgs), "preview", "Show a port of a server's sandbox to a browser";
        Dial(DialArgs), "dial", "Connect stdin and stdout to a TCP port in a sandbox";
    }
    "Agents and tools" {
        Agent(AgentArgs), "agent", "Give an agent a task and show its work";
        Mcp(McpArgs), "mcp", "Give MCP clients the tools; each session has its own sandboxes";
        Tools(ToolsArgs), "tools", "Print the tools that a model is shown";
        Call(CallArgs), "call", "Call a tool, as a model does";
        Pool(PoolArgs), "pool", "Manage pools, the sandboxes of agent sessions: list, create, sleep, remove";
        Init(InitArgs), "init", "Connect a project of an agent framework to Eyot";
    }
    "Images and workspaces" {
        Image(ImageArgs), "image", "Manage the images of sandboxes: pull, import, list, remove";
        Workspace(WorkspaceArgs), "workspace", "Manage the persistent workspaces of this host: list, remove";
    }
    "Servers" {
        Serve(ServeArgs), "serve", "Serve the sandboxes of this host over HTTP";
        Keys(KeysArgs), "keys", "Manage the keys of this host's server: create, list, revoke";
        Backup(BackupArgs), "backup", "Write the state folder into one file: sandboxes, pools, keys, images, events";
        Restore(RestoreArgs), "restore", "Create a state folder from a backup";
    }
    "This host" {
        Doctor(DoctorArgs), "doctor", "Show what this host can do, what it can't, and how to fix it";
        Verify(VerifyArgs), "verify", "Test on this host that sandboxes keep their promises";
        Providers(ProvidersArgs), "providers", "List the providers of sandboxes, and what each can do here";
        Bench(BenchArgs), "bench", "Measure what sandboxes cost on this machine";
        Adopt(AdoptArgs), "adopt", "Take over a container that this state folder did not create (Docker)";
    }
    "This program" {
        Help(HelpArgs), "help", "Print the help of a command";
        Version(VersionArgs), "version", "Print the version";
        Completions(CompletionsArgs), "completions", "Print a completion script for a shell";
        Man(ManArgs), "man", "Print the man page";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_global_flag_counts_before_and_after_the_commands_name() {
        for arguments in [["eyot", "--json", "ls"], ["eyot", "ls", "--json"]] {
            assert!(Cli::try_parse_from(arguments).unwrap().global.json, "{arguments:?}");
        }
    }

    #[test]
    fn everything_after_the_commands_first_word_belongs_to_the_command() {
        let cli = Cli::try_parse_from(["eyot", "run", "--net", "none", "ls", "-la", "--json"]).unwrap();
        assert!(!cli.global.json);
        let CliCommand::Run(run) = cli.command else { panic!("run") };
        assert_eq!(run.command, ["ls", "-la", "--json"]);
    }

    #[test]
    fn a_line_with_spaces_is_one_word_and_not_a_shell_line() {
        let cli = Cli::try_parse_from(["eyot", "run", "echo hi"]).unwrap();
        let CliCommand::Run(run) = cli.command else { panic!("run") };
        assert_eq!(run.command, ["echo hi"]);
    }

    #[test]
    fn an_unknown_flag_before_the_command_is_refused() {
        assert!(Cli::try_parse_from(["eyot", "run", "--imagine", "x", "--", "true"]).is_err());
        assert!(Cli::try_parse_from(["eyot", "exec", "--nope", "box", "--", "true"]).is_err());
    }

    #[test]
    fn it_is_two_flags_for_exec() {
        let cli = Cli::try_parse_from(["eyot", "exec", "-it", "box", "--", "vi", "-R"]).unwrap();
        let CliCommand::Exec(exec) = cli.command else { panic!("exec") };
        assert!(exec.terminal.interactive && exec.terminal.tty);
        assert_eq!(
            (exec.name.as_str(), exec.command.as_slice()),
            ("box", &["vi".to_owned(), "-R".to_owned()][..])
        );
    }
}
