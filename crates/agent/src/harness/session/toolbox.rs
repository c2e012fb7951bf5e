//! The tools of one prompt.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use eyot_tools::{ToolDef, ToolOutput, Toolset};
use serde_json::{Value, json};

use super::operation::Operation;
use super::task::task_tool;
use crate::model::{Model, ToolDeclaration};
use crate::result_tools::ResultTools;
use crate::skill::KnownSkill;

/// The names of the default tools of an agent with a sandbox. A custom tool must not have one of them.
pub const BUILTIN_TOOL_NAMES: [&str; 7] = ["read", "write", "edit", "bash", "grep", "glob", "task"];

const ACTIVATE_SKILL: &str = "activate_skill";
const READ_SKILL_RESOURCE: &str = "read_skill_resource";

/// The names of the tools that the runtime adds itself.
const RESERVED_NAMES: [&str; 5] =
    ["task", ACTIVATE_SKILL, READ_SKILL_RESOURCE, crate::result_tools::FINISH, crate::result_tools::GIVE_UP];

/// Returns the tools of the toolset `coding`: `read`, `write`, `edit`, `bash`, `grep` and `glob`.
pub fn create_tools() -> Result<Vec<ToolDef>> {
    Ok(eyot_tools::toolset("coding")?.tools().to_vec())
}

/// The tools of one prompt.
#[derive(Clone)]
pub(super) struct Toolbox {
    pub(super) tools: Toolset,
}

impl Toolbox {
    pub(super) fn new(
        operation: &Operation,
        of_call: Vec<ToolDef>,
        results: Option<&ResultTools>,
        skill: Option<&KnownSkill>,
        model: &Arc<dyn Model>,
    ) -> Result<Self> {
        let session = &operation.session;
        let built_in = session.harness.toolset.clone();
        let mut tools = Toolset::new("session", built_in.iter().flat_map(|tools| tools.tools()).cloned())?;
        refuse_reserved(&tools)?;
        tools = tools.with(task_tool(operation, of_call.clone(), model)?)?;
        for tool in skill_tools(operation, skill)? {
            tools = tools.with(tool)?;
        }
        let reserved: Vec<String> = tools.names().into_iter().map(str::to_owned).collect();
        for tool in session.config.tools.iter().cloned().chain(of_call) {
            check_name(&tool, &reserved, &tools)?;
            tools = tools.with(tool)?;
        }
        for tool in results.map(ResultTools::tools).transpose()?.into_iter().flatten() {
            tools = tools.with(tool)?;
        }
        Ok(Self { tools })
    }

    /// Returns the tools as the model sees them.
    pub(super) fn declarations(&self) -> Vec<ToolDeclaration> {
        let declare = |tool: &ToolDef| ToolDeclaration {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            parameters: tool.input_schema().clone(),
        };
        self.tools.tools().iter().map(declare).collect()
    }
}

/// Refuses a toolset that has a tool with a reserved name.
fn refuse_reserved(tools: &Toolset) -> Result<()> {
    match RESERVED_NAMES.iter().find(|name| tools.get(name).is_some()) {
        None => Ok(()),
        Some(name) => {
            let message = format!("use the tools of the sandbox: the agent adds its own tool `{name}`");
            Err(Error::new(ErrorKind::AlreadyExists, message).with_hint("leave that tool out"))
        }
    }
}

fn check_name(tool: &ToolDef, reserved: &[String], tools: &Toolset) -> Result<()> {
    let name = tool.name();
    let message = if reserved.iter().any(|taken| taken == name) || RESERVED_NAMES.contains(&name) {
        format!(
            "Custom tool \"{name}\" conflicts with a built-in tool. Built-in tools: {}",
            reserved.join(", ")
        )
    } else if tools.get(name).is_some() {
        format!("Duplicate custom tool name \"{name}\". Tool names must be unique.")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// Creates the tools that load skills and read the files of packaged skills.
fn skill_tools(operation: &Operation, active: Option<&KnownSkill>) -> Result<Vec<ToolDef>> {
    let mut skills = operation.session.config.context.skills.clone();
    let mut tools = Vec::new();
    if !skills.is_empty() {
        tools.push(activate_skill(operation, skills.clone())?);
    }
    skills.extend(active.cloned());
    if skills.iter().any(|skill| matches!(skill, KnownSkill::Packaged(_))) {
        tools.push(read_skill_resource(skills)?);
    }
    Ok(tools)
}

fn activate_skill(operation: &Operation, skills: Vec<KnownSkill>) -> Result<ToolDef> {
    let description = "Load the full instructions for one available skill before performing work that matches its \
                       description. Supporting resources remain lazy until explicitly read.";
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Name of the skill to activate"}},
        "required": ["name"],
    });
    let source = operation.session.source.clone();
    let skills = Arc::new(skills);
    ToolDef::new(ACTIVATE_SKILL, description, schema, move |_, arguments: Value| {
        let (source, skills) = (source.clone(), Arc::clone(&skills));
        async move {
            let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
            let Some(skill) = skills.iter().find(|skill| skill.name() == name) else {
                let known: Vec<&str> = skills.iter().map(KnownSkill::name).collect();
                let miss =
                    format!("Skill \"{name}\" is not available. Available skills: {}.", known.join(", "));
                return Ok(ToolOutput::text(miss));
            };
            let sandbox = source.sandbox().await?;
            Ok(ToolOutput::text(skill.instructions(sandbox.as_ref()).await?))
        }
    })
}

fn read_skill_resource(skills: Vec<KnownSkill>) -> Result<ToolDef> {
    let description = "Read a packaged skill supporting file by its advertised path.";
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path to the file to read"},
            "offset": {"type": "number", "description": "Line number to start from (1-indexed)"},
            "limit": {"type": "number", "description": "Maximum number of lines to read"},
        },
        "required": ["path"],
    });
    ToolDef::new(READ_SKILL_RESOURCE, description, schema, move |_, arguments: Value| {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let content = skills.iter().find_map(|skill| match skill {
            KnownSkill::Packaged(skill) => skill.read(path),
            KnownSkill::Workspace { .. } => None,
        });
        let number = |name: &str| arguments.get(name).and_then(Value::as_f64);
        let shown = match content {
            Some(content) => eyot_tools::show_lines(content.as_bytes(), number("offset"), number("limit")),
            None => Err(Error::new(ErrorKind::NotFound, format!("Packaged skill file not found: {path}"))),
        };
        std::future::ready(shown.map(ToolOutput::text))
    })
}
