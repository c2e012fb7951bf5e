//! Tools of one's own.

use eyot::{Error, ErrorKind};
use eyot_tools::{ToolDef, ToolFormat, ToolOutput, Toolset, handle_tool_call};
use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::{call_of, context};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Celsius,
    Kelvin,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    old_text: String,
    /// How often
    #[serde(default)]
    count: u32,
}

/// Not for models.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    unit: Unit,
    edits: Option<Vec<Edit>>,
}

fn typed() -> Toolset {
    let tool = ToolDef::typed("mine", "Does what I want.", async |_context, args: Args| {
        let unit = match args.unit {
            Unit::Celsius => "celsius",
            Unit::Kelvin => "kelvin",
        };
        let edits = args.edits.unwrap_or_default();
        let shown: Vec<_> = edits.iter().map(|edit| format!("{}x{}", edit.old_text, edit.count)).collect();
        Ok(ToolOutput::text(format!("{unit} {}", shown.join(","))))
    });
    Toolset::new("mine", [tool.unwrap()]).unwrap()
}

async fn answer(tools: &Toolset, input: Value) -> String {
    call_of(tools, "mine", input).await.as_text()
}

#[tokio::test]
async fn a_tool_from_a_struct_has_its_schema_and_is_checked_to_the_bottom() {
    let tools = typed();
    assert_eq!(
        tools.schemas(ToolFormat::Anthropic)[0],
        json!({
            "name": "mine",
            "description": "Does what I want.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "unit": { "type": "string", "enum": ["celsius", "kelvin"] },
                    "edits": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "old_text": { "type": "string" },
                            "count": {
                                "type": "integer", "description": "How often", "default": 0,
                                "minimum": 0, "maximum": 4_294_967_295_u64,
                            },
                        },
                        "required": ["old_text"],
                        "additionalProperties": false,
                    } },
                },
                "required": ["unit"],
                "additionalProperties": false,
            }
        })
    );
    let good = json!({ "unit": "kelvin", "edits": [{ "old_text": "a", "count": 2.0 }, { "old_text": "b" }] });
    assert_eq!(answer(&tools, good).await, "kelvin ax2,bx0");
    assert_eq!(answer(&tools, json!({ "unit": "kelvin", "edits": null })).await, "kelvin ");
    let wrong = json!({ "unit": "rankine", "edits": [{ "old_text": "a", "count": 5_000_000_000_u64 }, { "oldText": 1 }, 7] });
    assert_eq!(
        answer(&tools, wrong).await,
        "`edits[0].count` must be an integer from 0 to 4294967295, got 5000000000\n\
         `edits[1].old_text` is missing; it must be a string\n\
         `edits[1].oldText` is unknown; did you mean `edits[1].old_text`?\n\
         `edits[2]` must be an object, got 7\n\
         `unit` must be one of \"celsius\", \"kelvin\", got \"rankine\""
    );
}

fn with_schema(schema: Value) -> Toolset {
    let tool = ToolDef::new("mine", "", schema, async |_context, input: Value| Ok(ToolOutput::json(&input)));
    Toolset::new("mine", [tool.unwrap()]).unwrap()
}

#[tokio::test]
async fn a_tool_with_a_schema_of_its_own_is_held_to_it() {
    let tools = with_schema(json!({
        "type": "object",
        "properties": {
            "n": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "all" }] },
            "tags": { "type": "array", "maxItems": 2, "items": { "type": "string", "minLength": 1 } },
            "both": { "type": ["string", "null"] },
        },
        "required": ["n"],
        "additionalProperties": { "type": "number" },
    }));
    let good = json!({ "n": "all", "tags": ["a"], "both": null, "other": 1.5 });
    assert_eq!(call_of(&tools, "mine", good.clone()).await.structured, Some(good));
    assert_eq!(answer(&tools, json!({ "n": 2.0 })).await, r#"{"n":2}"#);
    let wrong = json!({ "n": 0, "tags": ["a", ""], "other": "x" });
    assert_eq!(
        answer(&tools, wrong).await,
        "`n` must be a positive integer, or \"all\", got 0\n\
         `other` must be a number, got \"x\"\n\
         `tags[1]` must be a string that is not empty, got \"\""
    );
    assert_eq!(
        answer(&tools, json!({ "n": 1, "tags": ["a", "b", "c"] })).await,
        "`tags` must be an array, each item a string that is not empty with at most 2 items, got an array"
    );
}

#[tokio::test]
async fn of_several_shapes_the_one_that_was_meant_says_what_is_wrong() {
    let point = json!({ "type": "object", "properties": { "x": { "type": "integer" } }, "required": ["x"] });
    let at = json!({ "oneOf": [{ "type": "string" }, point] });
    let tools = with_schema(json!({ "type": "object", "properties": { "at": at }, "required": ["at"] }));
    assert_eq!(answer(&tools, json!({ "at": { "x": 1.0 } })).await, r#"{"at":{"x":1}}"#);
    let said = answer(&tools, json!({ "at": { "x": "1" } })).await;
    assert_eq!(said, "`at.x` must be an integer, got \"1\"");
    assert_eq!(answer(&tools, json!({ "at": 1 })).await, "`at` must be a string, or an object, got 1");
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_answers_with_an_error() {
    let schema = json!({ "type": "object" });
    let failing = ToolDef::new("fails", "", schema.clone(), async |_, _| {
        Err(Error::new(ErrorKind::Conflict, "two of us").with_hint("wait"))
    });
    let panicking = ToolDef::new("panics", "", schema, async |_, input: Value| -> eyot::Result<ToolOutput> {
        panic!("of {input}")
    });
    let tools = Toolset::new("mine", [failing.unwrap(), panicking.unwrap()]).unwrap();
    let output = call_of(&tools, "fails", json!({})).await;
    assert_eq!((output.as_text().as_str(), output.is_error), ("two of us\nhint: wait", true));
    let output = call_of(&tools, "panics", json!({})).await;
    assert_eq!(output.as_text(), "tool `panics` has a defect and did not finish: of {}");
    assert!(output.is_error);
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_given_up() {
    let schema = json!({ "type": "object" });
    let forever = ToolDef::new("forever", "", schema, async |_, _| std::future::pending().await);
    let tools = Toolset::new("mine", [forever.unwrap()]).unwrap();
    let context = context(&Scripted::new(&[]));
    let cancel = context.cancel.clone();
    let called = handle_tool_call(&context, &tools, "forever", json!({}));
    let (output, ()) = tokio::join!(called, async { cancel.cancel() });
    assert_eq!(output.as_text(), "the call of `forever` was cancelled");
}

#[test]
fn a_tool_needs_a_name_that_every_api_takes_and_arguments_that_are_an_object() {
    let make = |name: &str, schema| ToolDef::new(name, "", schema, async |_, _| Ok(ToolOutput::text("")));
    for name in ["", "a b", "ä", &"a".repeat(65)] {
        let refused = make(name, json!({ "type": "object" })).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{name}");
    }
    assert!(make(&"a".repeat(64), json!({ "type": "object" })).is_ok());
    let refused = make("a", json!({ "type": "string" })).unwrap_err();
    assert_eq!(refused.to_string(), "`schema` of tool `a` must have the type `object`");
}
