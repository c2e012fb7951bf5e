//! A named list of tools whose names are distinct.

use eyot::{Error, ErrorKind, Result};

use super::definition::ToolDef;

/// A named list of tools whose names are distinct.
#[derive(Debug, Clone)]
pub struct Toolset {
    name: String,
    tools: Vec<ToolDef>,
}

impl Toolset {
    /// These tools, in this order. `already_exists`: two of them have one name.
    pub fn new(name: &str, tools: impl IntoIterator<Item = ToolDef>) -> Result<Self> {
        tools.into_iter().try_fold(Self { name: name.to_owned(), tools: Vec::new() }, Self::with)
    }

    /// The same with one more tool. `already_exists`: it has a tool of that name.
    pub fn with(mut self, tool: ToolDef) -> Result<Self> {
        if self.get(tool.name()).is_some() {
            let message = format!("add tool `{}` to toolset `{}`: the name is taken", tool.name(), self.name);
            let hint = format!("give it another name than: {}", quoted(&self.names()));
            return Err(Error::new(ErrorKind::AlreadyExists, message).with_hint(hint));
        }
        self.tools.push(tool);
        Ok(self)
    }

    /// The same with the tools of another one. `already_exists`: they share a name.
    pub fn and(self, other: Self) -> Result<Self> {
        other.tools.into_iter().try_fold(self, Self::with)
    }

    /// Only the tools of these names, in the order in which they stand here. `not_found`: there is none of that name.
    pub fn only<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self> {
        if let Some(unknown) = names.iter().find(|name| self.get(name.as_ref()).is_none()) {
            let message = format!("toolset `{}` has no tool `{}`", self.name, unknown.as_ref());
            let hint = format!("it has: {}", quoted(&self.names()));
            return Err(Error::new(ErrorKind::NotFound, message).with_hint(hint));
        }
        self.tools.retain(|tool| names.iter().any(|name| name.as_ref() == tool.name()));
        Ok(self)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tools.
    pub fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&ToolDef> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// The names of its tools.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(ToolDef::name).collect()
    }
}

/// The names, each in backticks, with commas between.
pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
