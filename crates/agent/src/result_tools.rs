//! Structured results: the model returns one with the tool `finish`, or says with `give_up` that it can't.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result};
use eyot_tools::{ToolDef, ToolOutput};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::message::ToolCall;

/// The names of the two tools.
pub(crate) const FINISH: &str = "finish";
pub(crate) const GIVE_UP: &str = "give_up";

const FINISH_DESCRIPTION: &str = "Call this tool when the task is complete. Provide your final answer as the arguments. The \
    arguments are validated against the required schema; if validation fails you will receive an error message and may try \
    again. The first successful `finish` call wins — once the task is finished, do not call `finish` again.";
const GIVE_UP_DESCRIPTION: &str = "Call this tool only if you have determined that you cannot complete the task or cannot \
    produce a result that conforms to the required schema. Provide a clear `reason`. This ends the task with a failure.";

/// The text after a prompt that asks for a result.
pub(crate) const FOOTER: &str = "\n\
    When the task is complete, call the `finish` tool with your final answer as its arguments. The arguments are validated \
    against the required schema; if validation fails you will receive an error and may try again.\n\
    If you determine that you cannot complete the task or cannot produce a result that conforms to the required schema, \
    call the `give_up` tool with a clear `reason`.\n\
    Do not respond with the answer in plain text — only a successful `finish` (or `give_up`) call counts.";

/// The reminder for a model that ended its turn without a result.
pub(crate) const FOLLOW_UP: &str = "You ended your turn without calling `finish` or `give_up`. Either call `finish` with \
    your final answer, or call `give_up` with a reason if you cannot determine the answer.";

/// The outcome of a prompt that asks for a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum ResultOutcome {
    #[default]
    Pending,
    Result(Value),
    GaveUp(String),
}

/// The two tools of one prompt, and their outcome. Clones share it.
#[derive(Clone)]
pub(crate) struct ResultTools {
    schema: Arc<ResultSchema>,
    outcome: Arc<Mutex<ResultOutcome>>,
}

/// The schema of a result. Other results than objects are wrapped, because the arguments of a tool must be an object.
struct ResultSchema {
    parameters: Value,
    validator: Validator,
    is_wrapped: bool,
}

impl ResultTools {
    /// Creates the tools for a result with this JSON Schema. `invalid`: the schema is not valid.
    pub(crate) fn new(schema: &Value) -> Result<Self> {
        let validator = jsonschema::validator_for(schema).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                format!("use the schema of a result: it is not a valid JSON Schema: {error}"),
            )
        })?;
        let mut inner = schema.clone();
        if let Some(fields) = inner.as_object_mut() {
            fields.remove("$schema");
        }
        let is_wrapped = schema.get("type").and_then(Value::as_str) != Some("object");
        let parameters = if is_wrapped { wrapped(inner) } else { inner };
        let schema = Arc::new(ResultSchema { parameters, validator, is_wrapped });
        Ok(Self { schema, outcome: Arc::default() })
    }

    /// Returns the outcome so far.
    pub(crate) fn outcome(&self) -> ResultOutcome {
        self.lock().clone()
    }

    /// Restores the outcome from the calls that an earlier process accepted.
    pub(crate) fn restore(&self, taken: &[ToolCall]) {
        for call in taken {
            match call.name.as_str() {
                FINISH => drop(self.finish(call.arguments.clone())),
                GIVE_UP => drop(self.give_up(&call.arguments)),
                _ => {}
            }
        }
    }

    /// Returns the two tools.
    pub(crate) fn tools(&self) -> Result<[ToolDef; 2]> {
        let (finish, give_up) = (self.clone(), self.clone());
        let reason = json!({
            "type": "object",
            "properties": {"reason": {
                "type": "string",
                "minLength": 1,
                "description": "A clear explanation of why the task cannot be completed.",
            }},
            "required": ["reason"],
            "additionalProperties": false,
        });
        Ok([
            ToolDef::new(FINISH, FINISH_DESCRIPTION, self.schema.parameters.clone(), move |_, arguments| {
                std::future::ready(Ok(finish.finish(arguments)))
            })?,
            ToolDef::new(GIVE_UP, GIVE_UP_DESCRIPTION, reason, move |_, arguments| {
                std::future::ready(Ok(give_up.give_up(&arguments)))
            })?,
        ])
    }

    fn finish(&self, arguments: Value) -> ToolOutput {
        let mut outcome = self.lock();
        if let Some(refusal) = already_over(&outcome) {
            return refusal;
        }
        let value = match arguments {
            Value::Object(mut fields) if self.schema.is_wrapped => {
                fields.remove("result").unwrap_or_default()
            }
            arguments => arguments,
        };
        let issues: Vec<String> =
            self.schema.validator.iter_errors(&value).map(|error| issue(&error)).collect();
        if !issues.is_empty() {
            return ToolOutput::error(format!(
                "Result does not match the required schema: {}. Please call `{FINISH}` again with a corrected payload.",
                issues.join("; ")
            ));
        }
        *outcome = ResultOutcome::Result(value);
        ToolOutput::text("Result accepted. The task is complete.")
    }

    fn give_up(&self, arguments: &Value) -> ToolOutput {
        let mut outcome = self.lock();
        if let Some(refusal) = already_over(&outcome) {
            return refusal;
        }
        let reason = arguments.get("reason").and_then(Value::as_str).unwrap_or_default();
        if reason.trim().is_empty() {
            return ToolOutput::error(format!("`{GIVE_UP}` requires a non-empty `reason` string."));
        }
        *outcome = ResultOutcome::GaveUp(reason.to_owned());
        ToolOutput::text("Acknowledged.")
    }

    fn lock(&self) -> MutexGuard<'_, ResultOutcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The schema of an object with the result as its field. References such as `#/$defs/Item` begin at the root, so definitions
/// stay there.
fn wrapped(mut inner: Value) -> Value {
    let mut definitions = Map::new();
    if let Some(fields) = inner.as_object_mut() {
        for name in ["$defs", "definitions"] {
            definitions.extend(fields.remove_entry(name));
        }
    }
    let mut wrapper = json!({
        "type": "object",
        "properties": {"result": inner},
        "required": ["result"],
        "additionalProperties": false,
    });
    if let Some(fields) = wrapper.as_object_mut() {
        fields.extend(definitions);
    }
    wrapper
}

fn already_over(outcome: &ResultOutcome) -> Option<ToolOutput> {
    let why = match outcome {
        ResultOutcome::Pending => return None,
        ResultOutcome::Result(_) => "A result was already submitted; the task is complete.",
        ResultOutcome::GaveUp(_) => "The task was already given up; it cannot be resumed.",
    };
    Some(ToolOutput::text(format!("{why} Do not call this tool again.")))
}

fn issue(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = place.trim_start_matches('/').replace('/', ".");
    if place.is_empty() { error.to_string() } else { format!("{error} (at {place})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_fits_is_taken_once() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tools = ResultTools::new(&schema).unwrap();
        let refused = tools.finish(json!({"n": "x"}));
        assert!(refused.is_error && refused.as_text().contains("(at n)"), "{}", refused.as_text());
        assert_eq!(tools.outcome(), ResultOutcome::Pending);
        assert!(!tools.finish(json!({"n": 3})).is_error);
        assert_eq!(tools.outcome(), ResultOutcome::Result(json!({"n": 3})));
        assert!(tools.finish(json!({"n": 4})).as_text().contains("already submitted"));
        assert_eq!(tools.outcome(), ResultOutcome::Result(json!({"n": 3})));
    }

    #[test]
    fn a_result_that_is_no_object_comes_in_a_wrapper() {
        let tools = ResultTools::new(
            &json!({"type": "string", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
        )
        .unwrap();
        let [finish, _] = tools.tools().unwrap();
        assert_eq!(finish.input_schema()["properties"]["result"], json!({"type": "string"}));
        tools.finish(json!({"result": "yes"}));
        assert_eq!(tools.outcome(), ResultOutcome::Result(json!("yes")));
    }

    #[test]
    fn the_definitions_of_a_wrapped_schema_stay_at_the_root() {
        let item = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        for (name, reference) in [("$defs", "#/$defs/Item"), ("definitions", "#/definitions/Item")] {
            let schema = json!({"type": "array", "items": {"$ref": reference}, name: {"Item": item}});
            let tools = ResultTools::new(&schema).unwrap();
            let [finish, _] = tools.tools().unwrap();
            let shown = finish.input_schema();
            assert_eq!(shown.pointer(&reference[1..]), Some(&item));
            assert_eq!(shown["properties"]["result"], json!({"type": "array", "items": {"$ref": reference}}));
            assert!(tools.finish(json!({"result": [{"n": "x"}]})).is_error);
            assert!(!tools.finish(json!({"result": [{"n": 1}]})).is_error);
        }
    }

    #[test]
    fn giving_up_needs_a_reason() {
        let tools = ResultTools::new(&json!({})).unwrap();
        assert!(tools.give_up(&json!({"reason": " "})).is_error);
        tools.give_up(&json!({"reason": "no"}));
        assert_eq!(tools.outcome(), ResultOutcome::GaveUp("no".into()));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let error = ResultTools::new(&json!({"type": "nothing"})).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
