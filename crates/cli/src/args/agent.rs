//! The arguments of `eyot agent`.

use clap::{Args, Subcommand};
use eyot::SandboxName;

use super::spec::SpecArgs;
use super::tools::parse_name;
use crate::durations;

const EXAMPLES: &str = "\
Examples:
  eyot agent --model ollama/qwen3 'set up a Node project and run its tests'
  eyot agent -M anthropic/claude-haiku-4-5 -v .:/src:ro 'mend the tests'
  eyot agent --agent reviewer 'review it'       the agent of agents/reviewer.md
  eyot agent --continue agent-01k8 'and now the other test'
  eyot agent ls                                 the runs that are kept
  eyot --json agent --model ollama/qwen3 'count the files' | jq -r .type

The agent works in a sandbox of its own, in the pool of its ID, which stays: `eyot ls` shows it, and \
`eyot rm ID/default` removes it. Its work is shown on stderr, and what it says on stdout. Ctrl-C stops it; \
--continue goes on with its conversation, and with a run whose process was killed.

agents/NAME.md is an agent: its text is the instructions, and above it, between two lines `---`, it may say \
model, tools, provider, image and mcp, which flags replace.

Models are PROVIDER/MODEL. anthropic: ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL. openai: OPENAI_API_KEY, \
OPENAI_BASE_URL. ollama: OLLAMA_HOST, no key. A key is in no sandbox, event or log.";

/// `eyot agent`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    /// A command about agents instead of work for one.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// The work of the agent.
    #[command(flatten)]
    pub work: AgentWorkArgs,
}

/// A command about agents.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// List the runs of agents, the newest first
    #[command(after_help = LS_EXAMPLES)]
    Ls(AgentLsArgs),
}

const LS_EXAMPLES: &str = "\
Examples:
  eyot agent ls
  eyot --json agent ls --limit 1000 | jq -r '.[].runId'";

/// `eyot agent ls`
#[derive(Debug, Args)]
pub struct AgentLsArgs {
    /// List at most this many runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: u64,
}

/// The work of an agent.
#[derive(Debug, Args)]
pub struct AgentWorkArgs {
    /// The task, in words
    #[arg(value_name = "TASK")]
    pub task: Option<String>,
    /// The agent of this file below `agents`, without its `.md` [default with --continue: the one of before]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The model, as PROVIDER/MODEL [default with --continue: the one of before]
    #[arg(long, short = 'M', value_name = "MODEL")]
    pub model: Option<String>,
    /// Go on with the conversation of this ID, or with its run if that was killed
    #[arg(long = "continue", value_name = "ID", value_parser = parse_name)]
    pub go_on: Option<SandboxName>,
    /// Offer the tools of this toolset [default: coding]
    #[arg(long, value_name = "NAME")]
    pub tools: Option<String>,
    /// Offer the tools of the MCP server at this URL, which has no secret; may be repeated
    #[arg(long, value_name = "URL", value_parser = parse_mcp_url)]
    pub mcp: Vec<String>,
    /// More instructions for the agent
    #[arg(long, value_name = "TEXT")]
    pub instructions: Option<String>,
    /// End the work after this many turns of the model
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u64>,
    /// End the work after this many tokens, read and written
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// End the work when its tokens have cost this much, in dollars, where the prices are known
    #[arg(long, value_name = "DOLLARS")]
    pub max_cost: Option<f64>,
    /// End the work after this long
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_timeout_ms)]
    pub max_time: Option<u64>,
    /// The spec of its sandbox.
    #[command(flatten)]
    pub spec: SpecArgs,
}

/// Parses the URL of an MCP server. It is kept with the run, and every user of the machine sees it, so it has no place for a
/// secret.
fn parse_mcp_url(text: &str) -> Result<String, String> {
    let Some((_, rest)) = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    else {
        return Err("it begins with http:// or https://".to_owned());
    };
    if rest.contains(['?', '@']) {
        return Err("it may hold a secret, and is kept: write the server into a file agents/NAME.md, below `mcp`, and use \
                    --agent NAME"
            .to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_an_mcp_server_has_no_secret() {
        assert_eq!(parse_mcp_url("http://localhost:1/mcp").as_deref(), Ok("http://localhost:1/mcp"));
        for refused in ["https://a.example/mcp?token=x", "https://me:x@a.example/mcp"] {
            assert!(parse_mcp_url(refused).unwrap_err().contains("agents/NAME.md"), "{refused}");
        }
        assert!(parse_mcp_url("localhost:1/mcp").is_err());
    }
}
