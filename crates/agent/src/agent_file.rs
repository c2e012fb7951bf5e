//! Agents that are files: `agents/NAME.md`, with front matter and instructions.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::Path;

use eyot::{Error, ErrorKind, Result, SandboxName};
use serde::Deserialize;

use crate::front_matter::{self, split};
use crate::mcp::McpServerOptions;

/// The largest size of an agent's file, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// An agent that is defined by a file. The name is the file's, without `.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// The name: lowercase letters, digits and hyphens.
    pub name: String,
    /// The description, for lists of agents.
    pub description: Option<String>,
    /// The model, as PROVIDER/MODEL.
    pub model: Option<String>,
    /// The toolset.
    pub tools: Option<String>,
    /// The provider of the sandbox.
    pub provider: Option<String>,
    /// The image of the sandbox.
    pub image: Option<String>,
    /// The MCP servers whose tools the agent has. The keys are part of the tools' names.
    pub mcp: BTreeMap<String, McpServerOptions>,
    /// Set if callers of a server may start the agent.
    pub webhook: bool,
    /// The instructions: everything after the front matter.
    pub instructions: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AgentFrontMatter {
    description: Option<String>,
    model: Option<String>,
    tools: Option<String>,
    provider: Option<String>,
    image: Option<String>,
    mcp: BTreeMap<String, AgentMcpServer>,
    webhook: bool,
}

/// An MCP server: a url, or options with a url.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AgentMcpServer {
    Url(String),
    Options(McpServerOptions),
}

impl AgentFile {
    /// Reads the agent `name` from a folder. A `not_found` error lists the agents that exist.
    pub fn read(folder: &Path, name: &str) -> Result<Self> {
        let name = SandboxName::parse(name)?.to_string();
        let path = folder.join(format!("{name}.md"));
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
                return Err(invalid(&path, &format!("is larger than {MAX_FILE_BYTES} bytes")));
            }
            Err(error) if error.kind() == IoKind::NotFound => return Err(not_found(folder, &name)),
            _ => {}
        }
        let text = fs::read_to_string(&path).map_err(|error| unread(&path, error))?;
        Self::parse_at(&path, &name, &text)
    }

    /// Returns the names of the agents in a folder, sorted. A missing folder has none.
    pub fn names(folder: &Path) -> Result<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == IoKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unread(folder, error)),
        };
        let is_agent = |name: &String| SandboxName::parse(name).is_ok();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".md").map(str::to_owned))
            .filter(is_agent)
            .collect();
        names.sort();
        Ok(names)
    }

    /// Parses the text of an agent's file. `invalid`: the front matter can't be read, or there are no instructions. The
    /// error says what is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        Self::parse_at(&Path::new(name).with_extension("md"), name, text)
    }

    fn parse_at(place: &Path, name: &str, text: &str) -> Result<Self> {
        let (front, body) = match split(text) {
            Some((yaml, body)) if yaml.trim().is_empty() => (AgentFrontMatter::default(), body),
            Some((yaml, body)) => {
                (front_matter::read(yaml).map_err(|mistake| invalid(place, &mistake))?, body)
            }
            None => (AgentFrontMatter::default(), text),
        };
        let instructions = body.trim();
        if instructions.is_empty() {
            return Err(invalid(place, "has no instructions: write them below the front matter"));
        }
        let mcp = front.mcp.into_iter().map(|(name, server)| (name, server.into_options())).collect();
        Ok(Self {
            name: name.to_owned(),
            description: front.description,
            model: front.model,
            tools: front.tools,
            provider: front.provider,
            image: front.image,
            mcp,
            webhook: front.webhook,
            instructions: instructions.to_owned(),
        })
    }
}

impl AgentMcpServer {
    fn into_options(self) -> McpServerOptions {
        match self {
            Self::Url(url) => McpServerOptions::new(url),
            Self::Options(options) => options,
        }
    }
}

fn not_found(folder: &Path, name: &str) -> Error {
    let error = Error::new(
        ErrorKind::NotFound,
        format!("there is no agent `{name}`: no file {}", folder.join(format!("{name}.md")).display()),
    );
    match AgentFile::names(folder).unwrap_or_default() {
        names if names.is_empty() => error
            .with_hint("make the file: its text is the agent's instructions, such as: You review changes."),
        names => error.with_hint(format!("there are {}", names.join(", "))),
    }
}

fn unread(path: &Path, error: std::io::Error) -> Error {
    let error = Error::file(error);
    Error::new(error.kind(), format!("{} can't be read: {error}", path.display()))
}

fn invalid(place: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("the agent {} {why}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEWER: &str = "---\nmodel: ollama/qwen3\nimage: node:22\nmcp:\n  issues: http://localhost:1/mcp\n  old: {url: \"http://localhost:2/sse\", transport: sse}\nwebhook: true\n---\n\nReview.\n";

    #[test]
    fn an_agent_has_front_matter_and_instructions() {
        let agent = AgentFile::parse("reviewer", REVIEWER).unwrap();
        assert_eq!((agent.model.as_deref(), agent.image.as_deref()), (Some("ollama/qwen3"), Some("node:22")));
        assert_eq!((agent.mcp.len(), agent.webhook, agent.instructions.as_str()), (2, true, "Review."));
        assert_eq!(agent.mcp["issues"], McpServerOptions::new("http://localhost:1/mcp"));
        assert_eq!(AgentFile::parse("plain", "Do it.").unwrap().instructions, "Do it.");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said() {
        let error = |text: &str| AgentFile::parse("a", text).unwrap_err().to_string();
        assert!(error("---\nmodle: m\n---\nDo it.").contains("modle"));
        assert!(error("---\nmodel: m\n---\n").contains("no instructions"));
    }

    #[test]
    fn a_missing_agent_is_answered_with_those_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let error = |name: &str| AgentFile::read(folder.path(), name).unwrap_err();
        assert_eq!(error("a").kind(), ErrorKind::NotFound);
        fs::write(folder.path().join("writer.md"), "Write.").unwrap();
        assert_eq!(error("a").hint(), Some("there are writer"));
        assert_eq!(error("../writer").kind(), ErrorKind::Invalid);
        assert_eq!(AgentFile::read(folder.path(), "writer").unwrap().name, "writer");
        fs::write(folder.path().join("big.md"), " ".repeat(256 * 1024 + 1)).unwrap();
        assert!(error("big").to_string().contains("larger than 262144 bytes"));
    }
}
