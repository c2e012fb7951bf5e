//! The arguments of `tools`, `call`, `transfer` and `browse`: the tools of models, from the command
//! line.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use eyot::SandboxName;
use eyot_tools::{ToolFormat, WorkspaceToolsOptions};

use super::place::PlaceArg;
use super::values::parse_port;

const TOOLS_EXAMPLES: &str = "\
Examples:
  eyot tools                                   the toolset pool, for Anthropic
  eyot tools --format openai-responses
  eyot tools --toolset pool --format prompt    compact text, for a system prompt
  eyot tools --format mcp | jq -r '.[].name'
  eyot tools --toolset workspace \\
      --workspace-options '{\"allow\": [\"read_file\", \"list_files\"]}'

An array with every tool, to be handed over as it is. What a model then calls goes to `eyot call`.";

/// `eyot tools`
#[derive(Debug, Args)]
#[command(after_help = TOOLS_EXAMPLES)]
pub struct ToolsArgs {
    /// The toolset
    #[arg(long, value_name = "NAME", default_value = "pool")]
    pub toolset: String,
    /// The format
    #[arg(long, value_enum, default_value_t = FormatArg::Anthropic)]
    pub format: FormatArg,
    /// The tools and policies of the toolset `workspace`, as JSON; `@FILE` reads them from a file
    #[arg(long, value_name = "JSON")]
    pub workspace_options: Option<WorkspaceOptionsArg>,
}

/// The options of the toolset `workspace`, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceOptionsArg(pub Box<WorkspaceToolsOptions>);

impl FromStr for WorkspaceOptionsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let json = match text.strip_prefix('@') {
            Some(file) => {
                std::fs::read_to_string(file).map_err(|error| format!("can't read `{file}`: {error}"))?
            }
            None => text.to_owned(),
        };
        serde_json::from_str(&json).map(Self).map_err(|error| error.to_string())
    }
}

/// A format in which tools are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Anthropic's messages
    Anthropic,
    /// OpenAI's chat completions
    #[value(name = "openai")]
    OpenAi,
    /// OpenAI's responses
    #[value(name = "openai-responses")]
    OpenAiResponses,
    /// The Model Context Protocol
    Mcp,
    /// Compact text
    Prompt,
}

impl FormatArg {
    /// Returns the format of the declarations; `None`: the text.
    pub fn of_declarations(self) -> Option<ToolFormat> {
        match self {
            Self::Anthropic => Some(ToolFormat::Anthropic),
            Self::OpenAi => Some(ToolFormat::OpenAi),
            Self::OpenAiResponses => Some(ToolFormat::OpenAiResponses),
            Self::Mcp => Some(ToolFormat::Mcp),
            Self::Prompt => None,
        }
    }
}

const CALL_EXAMPLES: &str = "\
Examples:
  eyot call pool shell '{\"command\": \"uname -a\"}'
  eyot call pool write_file '{\"path\": \"a.txt\", \"content\": \"hi\"}' --pool agent-7
  eyot call pool sandbox_list
  echo '{\"command\": \"make\"}' | eyot --json call pool shell -

Prints what the model would read, and exits with 1 when the answer is an error; --json prints the \
whole answer: content, structured, is_error. Ctrl-C cancels the call. The URL of `browse` holds for \
as long as the call's process lives: it stays until Ctrl-C.";

/// `eyot call`
#[derive(Debug, Args)]
#[command(after_help = CALL_EXAMPLES)]
pub struct CallArgs {
    /// The toolset's name
    pub toolset: String,
    /// The tools and policies of the toolset `workspace`, as JSON; `@FILE` reads them from a file
    #[arg(long, value_name = "JSON")]
    pub workspace_options: Option<WorkspaceOptionsArg>,
    /// The tool's name
    pub tool: String,
    /// The arguments, a JSON object; `-` is stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    pub input: String,
    /// Use the sandboxes of this pool [default: `default`, or over a server the first one of the key]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub pool: Option<SandboxName>,
}

pub(super) fn parse_name(text: &str) -> Result<SandboxName, String> {
    SandboxName::parse(text).map_err(|error| error.to_string())
}

const TRANSFER_EXAMPLES: &str = "\
Examples:
  eyot transfer builder:dist/app web:/home/user/app
  eyot transfer builder:/workspace/site web:/workspace/site --recursive
  eyot transfer --pool agent-7 builder:dist web:dist -r      the names of a pool
  eyot transfer docker/builder:dist native/team/web:dist -r  between providers
  eyot --server http://HOST:7070 transfer -r native/builder:dist memory/web:dist

NAME and POOL/NAME are the sandboxes of --provider, or of the server where --server names one. \
PROVIDER/NAME and PROVIDER/POOL/NAME are those that the provider has on this host, also with --server; \
`server` in the place of PROVIDER means the server's. Sandboxes in memory end with their process: \
`memory/…` needs a server over memory. Where there is a pool with the name of a provider, say both.

The second path is what the copy is called, not a directory to put it in; parents are made. A tree \
needs a path that is free, or an empty directory. Either all of it arrives or nothing. `eyot cp` \
copies from and to the host as well.";

/// `eyot transfer`
#[derive(Debug, Args)]
#[command(after_help = TRANSFER_EXAMPLES)]
pub struct TransferArgs {
    /// The source
    #[arg(help = "The source, [PROVIDER/][POOL/]NAME:PATH", value_name = "FROM", value_parser = PlaceArg::parse)]
    pub from: PlaceArg,
    /// The path of the copy
    #[arg(help = "The path of the copy, [PROVIDER/][POOL/]NAME:PATH", value_name = "TO", value_parser = PlaceArg::parse)]
    pub to: PlaceArg,
    /// Copy a directory with everything below it
    #[arg(long, short)]
    pub recursive: bool,
    /// Use sandboxes of this pool; the target is created if it does not exist
    #[arg(long, value_name = "POOL", value_parser = parse_name)]
    pub pool: Option<SandboxName>,
}

const BROWSE_EXAMPLES: &str = "\
Examples:
  eyot browse web 8000                         prints an address; Ctrl-C ends it
  eyot browse web 8000 > url &                 goes on in the background
  eyot browse --pool agent-7 web 8000          the name of a pool's sandbox

HTTP and WebSocket, on this host's loopback alone. The address holds a token that lets in one browser, \
once, for a week; --json prints the token that programs send in a header. The sandbox needs no network \
for it, and its server may listen on 127.0.0.1. Other protocols: `eyot dial`.";

/// `eyot browse`
#[derive(Debug, Args)]
#[command(after_help = BROWSE_EXAMPLES)]
pub struct BrowseArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The port on the sandbox's loopback
    #[arg(value_parser = parse_port)]
    pub port: u16,
    /// Use a sandbox of this pool; it is created if necessary
    #[arg(long, value_name = "POOL", value_parser = parse_name)]
    pub pool: Option<SandboxName>,
}
