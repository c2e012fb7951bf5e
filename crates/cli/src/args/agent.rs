//! The arguments of `eyot agent`.

use clap::{Args, Subcommand};
use eyot::SandboxName;

use super::spec::SpecArgs;
use super::tools::parse_name;
use crate::durations;

const EXAMPLES: &str = "\
Examples:
  eyot agent -M ollama/qwen3 --image node:22 --net egress 'try a Node server'
  eyot agent -M anthropic/claude-haiku-4-5 -v .:/src:ro 'review /src'
  eyot agent --agent reviewer 'review it'       the agent in agents/reviewer.md
  eyot agent --continue agent-01k8 'and now the other test'
  eyot agent ls                                 list the runs
  eyot --json agent --model ollama/qwen3 'count the files' | jq -r .type

The agent works in its own sandbox, in the pool of its ID. The sandbox stays afterwards: `eyot ls` shows it, \
and `eyot rm ID/default` removes it. Answers go to stdout, actions to stderr. Ctrl-C stops the agent; \
--continue continues its conversation, or resumes a run whose process was killed.

An agent can be a file, agents/NAME.md. Its text is the instructions. Front matter between two `---` lines can \
set model, tools, provider, image and mcp; flags override it.

Models are PROVIDER/MODEL. anthropic: ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL. openai: OPENAI_API_KEY, \
OPENAI_BASE_URL. ollama: OLLAMA_HOST, no key. Keys never reach a sandbox, an event or a log.";

/// `eyot agent`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    /// A command about agents, instead of a task.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// The task of the agent, and its settings.
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

/// The task of an agent, and its settings.
#[derive(Debug, Args)]
pub struct AgentWorkArgs {
    /// The task
    #[arg(value_name = "TASK", value_parser = parse_task)]
    pub task: Option<String>,
    /// Use the agent in agents/NAME.md [default with --continue: the same agent as before]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The model, as PROVIDER/MODEL [default with --continue: the same model as before]
    #[arg(long, short = 'M', value_name = "MODEL")]
    pub model: Option<String>,
    /// Continue the conversation of this ID, or resume its run if that was killed
    #[arg(long = "continue", value_name = "ID", value_parser = parse_name)]
    pub go_on: Option<SandboxName>,
    /// Offer the tools of this toolset [default: coding]
    #[arg(long, value_name = "NAME")]
    pub tools: Option<String>,
    /// Offer the tools of the MCP server at this URL, which must not contain a secret; may be repeated
    #[arg(long, value_name = "URL", value_parser = parse_mcp_url)]
    pub mcp: Vec<String>,
    /// More instructions for the agent
    #[arg(long, value_name = "TEXT")]
    pub instructions: Option<String>,
    /// Stop after this many turns of the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,
    /// Stop after this many tokens, read and written together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Stop when the tokens have cost this much, in dollars; models without known prices count as free
    #[arg(long, value_name = "DOLLARS", value_parser = parse_cost, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// Stop after this long
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_timeout_ms)]
    pub max_time: Option<u64>,
    /// The spec of its sandbox.
    #[command(flatten)]
    pub spec: SpecArgs,
}

/// Parses the URL of an MCP server. URLs that may contain a secret are refused, because the run stores the URL and every user
/// of the machine can see it.
fn parse_mcp_url(text: &str) -> Result<String, String> {
    let Some((_, rest)) = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    else {
        return Err("it must begin with http:// or https://".to_owned());
    };
    if rest.contains(['?', '@']) {
        return Err("it may contain a secret, and the run would store it: put the server under `mcp` in agents/NAME.md, and \
                    use --agent NAME"
            .to_owned());
    }
    Ok(text.to_owned())
}

/// Parses a price in dollars.
fn parse_cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost > 0.0);
    cost.ok_or_else(|| "must be a price above 0, such as 0.50".to_owned())
}

fn parse_task(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("a task has words".to_owned()) } else { Ok(text.to_owned()) }
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
