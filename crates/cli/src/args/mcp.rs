//! The arguments of `eyot mcp`.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use eyot::SandboxName;
use eyot_server::mcp::{AllowedHost, AllowedOrigin};

use super::spec::SpecArgs;
use super::tools::WorkspaceOptionsArg;
use super::values::parse_slots;
use crate::durations;

const EXAMPLES: &str = "\
Examples:
  eyot mcp                                      as clients start it, over stdio
  eyot mcp --toolset coding --pool work         other tools; sandboxes that stay
  eyot mcp --mount ./src:/home/user/src --net egress
  eyot mcp --http                               http://127.0.0.1:7070/mcp

Clients:
  claude mcp add eyot -- eyot mcp               Claude Code
  .cursor/mcp.json
    {\"mcpServers\": {\"eyot\": {\"command\": \"eyot\", \"args\": [\"mcp\"]}}}
  .vscode/mcp.json
    {\"servers\": {\"eyot\": {\"type\": \"stdio\", \"command\": \"eyot\", \"args\": [\"mcp\"]}}}

Each session has its own sandboxes, which are destroyed when it ends: when the client closes stdin, or \
by HTTP when it deletes the session or leaves it unused. With --pool all sessions share those of that \
pool, and they stay. By HTTP it prints a token, once. There is no TLS: beyond this machine, put a proxy with a certificate before it.";

/// `eyot mcp`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct McpArgs {
    /// Offer the tools of this toolset; may be repeated if no two tools have the same name [default: pool]
    #[arg(long, value_name = "NAME")]
    pub toolset: Vec<String>,
    /// The tools and policies of the toolset `workspace`, as JSON; `@FILE` reads them from a file
    #[arg(long, value_name = "JSON")]
    pub workspace_options: Option<WorkspaceOptionsArg>,
    /// Share the sandboxes of this pool between all sessions, and keep them
    #[arg(long, value_name = "NAME", value_parser = parse_pool)]
    pub pool: Option<SandboxName>,
    /// Serve over HTTP at /mcp instead of on stdin and stdout [default address: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:7070")]
    pub http: Option<String>,
    /// As root, keep this many half-made native sandboxes ready for creates like the last one; each takes
    /// as much memory as an idle sandbox [default: 0]
    #[arg(long, value_name = "N", value_parser = parse_slots)]
    pub slots: Option<usize>,
    /// The options of HTTP.
    #[command(flatten)]
    pub access: McpAccessArgs,
    /// The spec of its sandboxes.
    #[command(flatten)]
    pub spec: SessionSpecArgs,
}

/// The spec of a session's sandboxes. Its help says what is different for those.
#[derive(Debug)]
pub struct SessionSpecArgs(pub SpecArgs);

impl Args for SessionSpecArgs {
    fn augment_args(command: Command) -> Command {
        SpecArgs::augment_args(command)
            .mut_arg("name", |argument| argument.hide(true))
            .mut_arg("id", |argument| argument.hide(true))
            .mut_arg("workdir", |argument| {
                argument.help("The directory in which commands start [default: /home/user]")
            })
            .mut_arg("mount", |argument| {
                argument.help(
                    "Mount a folder of the host; read-only unless it ends in :rw. A relative one is \
                     looked for in the folder in which the client starts eyot",
                )
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SessionSpecArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        SpecArgs::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The options of HTTP: who may connect, and how sessions end.
#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP options")]
pub struct McpAccessArgs {
    /// A file with the tokens that clients must send, one a line; each token is a separate client
    /// [env: EYOT_MCP_TOKEN]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// A host name that clients may use for this server, besides localhost: example.com, example.com:8443
    #[arg(long, value_name = "HOST", requires = "http")]
    pub allow_host: Vec<AllowedHost>,
    /// The origin of a web page that may use the server from a browser: `https://example.com`
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<AllowedOrigin>,
    /// End a session that was not used for this long
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_some_ms, default_value = "1h", requires = "http")]
    pub session_timeout: u64,
    /// The most sessions at once
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_sessions, requires = "http")]
    pub max_sessions: usize,
}

fn parse_sessions(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|most| *most > 0).ok_or_else(|| "must be a number from 1".to_owned())
}

fn parse_pool(text: &str) -> Result<SandboxName, String> {
    SandboxName::parse(text).map_err(|error| error.to_string())
}
