//! A toolset as compact text, for a system prompt.

use std::fmt::Write as _;

use serde_json::Value;

use super::definition::ToolDef;
use super::set::Toolset;

impl Toolset {
    /// The tools as compact text: a line with name and arguments, what it does, and what is to be known of an argument.
    /// `a, b?, c=1`: `a` is required, `b` may be left out, `c` is 1 without it.
    pub fn prompt(&self) -> String {
        self.tools().iter().map(describe).collect::<Vec<_>>().join("\n")
    }
}

fn describe(tool: &ToolDef) -> String {
    let schema = tool.input_schema();
    let arguments: Vec<_> =
        properties(schema).map(|(name, property)| argument(schema, name, property)).collect();
    let mut text = format!("{}({})", tool.name(), arguments.join(", "));
    if let Some(answer) = tool.output_schema() {
        let names: Vec<_> =
            properties(answer).map(|(name, property)| argument(answer, name, property)).collect();
        text.push_str(&format!(" -> {{{}}}", names.join(", ")));
    }
    text.push_str(&format!("\n  {}\n", tool.description()));
    for (name, property) in properties(schema) {
        if let Some(known) = property.get("description").and_then(Value::as_str) {
            writeln!(text, "  {name}: {}", known.replace('\n', " ")).expect("a string takes every text");
        }
    }
    text
}

/// The required ones first.
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let (required, others): (Vec<_>, Vec<_>) = all.partition(|(name, _)| is_required(schema, name));
    required.into_iter().chain(others)
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

fn argument(schema: &Value, name: &str, property: &Value) -> String {
    let shape = shape(property);
    match property.get("default") {
        Some(default) => format!("{name}: {shape}={default}"),
        None if is_required(schema, name) => format!("{name}: {shape}"),
        None => format!("{name}?: {shape}"),
    }
}

fn shape(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        return choices.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    match property.get("type").and_then(Value::as_str) {
        Some("array") => format!("{}[]", property.get("items").map_or_else(|| "any".to_owned(), shape)),
        Some("object") if properties(property).next().is_some() => {
            let names: Vec<_> =
                properties(property).map(|(name, inner)| argument(property, name, inner)).collect();
            format!("{{{}}}", names.join(", "))
        }
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}
