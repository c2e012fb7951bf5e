//! The expectation of a schema on one value, in words, and whether the value meets it. The content
//! of objects and arrays is checked elsewhere.

use serde_json::Value;

/// The longest value that is repeated in an answer, in characters.
const MAX_SHOWN: usize = 60;

/// Renders what was sent, as JSON, cut where it is long.
pub(super) fn display_value(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        value => {
            let text = value.to_string();
            match text.char_indices().nth(MAX_SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

/// Returns whether the value itself is what the schema says.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let by_type = match schema.get("type") {
        Some(Value::String(name)) => is_type(name, value),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(|name| is_type(name, value)),
        _ => true,
    };
    let by_choice =
        schema.get("enum").and_then(Value::as_array).is_none_or(|choices| choices.contains(value));
    let by_constant = schema.get("const").is_none_or(|constant| constant == value);
    by_type && by_choice && by_constant && schema != &Value::Bool(false) && is_within(schema, value)
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => true,
    }
}

fn is_within(schema: &Value, value: &Value) -> bool {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let between = |least: Option<f64>, most: Option<f64>, size: f64| {
        least.is_none_or(|least| size >= least) && most.is_none_or(|most| size <= most)
    };
    // Sizes are far below what a double has exactly.
    #[allow(clippy::cast_precision_loss)]
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            between(limit("minimum"), limit("maximum"), number)
                && limit("exclusiveMinimum").is_none_or(|least| number > least)
                && limit("exclusiveMaximum").is_none_or(|most| number < most)
        }
        Value::String(text) => between(limit("minLength"), limit("maxLength"), text.chars().count() as f64),
        Value::Array(items) => between(limit("minItems"), limit("maxItems"), items.len() as f64),
        _ => true,
    }
}

/// Describes a value of the schema, such as "a non-negative integer".
pub(super) fn expectation(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", choices.join(", "));
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return choices.iter().map(expectation).collect::<Vec<_>>().join(", or ");
    }
    match schema.get("type") {
        Some(Value::String(name)) => of_type(name, schema),
        Some(Value::Array(names)) => {
            let names: Vec<_> =
                names.iter().filter_map(Value::as_str).map(|name| of_type(name, schema)).collect();
            names.join(" or ")
        }
        _ => "there".to_owned(),
    }
}

fn of_type(name: &str, schema: &Value) -> String {
    let has = |key: &str| schema.get(key);
    match name {
        "integer" => number("integer", "an integer", schema),
        "number" => number("number", "a number", schema),
        "string" if has("minLength").is_some_and(|least| least == 1) && has("maxLength").is_none() => {
            "a string that is not empty".to_owned()
        }
        "string" => sized("a string", "characters", has("minLength"), has("maxLength")),
        "array" => {
            let what = match has("items").map(expectation) {
                Some(items) if items != "there" => format!("an array, each item {items}"),
                _ => "an array".to_owned(),
            };
            sized(&what, "items", has("minItems"), has("maxItems"))
        }
        "object" => "an object".to_owned(),
        "boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}

fn number(noun: &str, plain: &str, schema: &Value) -> String {
    // An integer above 0 is one of at least 1.
    let above = schema.get("exclusiveMinimum").and_then(Value::as_i64).filter(|_| noun == "integer");
    let least = schema.get("minimum").cloned().or_else(|| above.map(|above| above.saturating_add(1).into()));
    match (least, schema.get("maximum")) {
        (Some(least), None) if least.as_f64() == Some(0.0) => format!("a non-negative {noun}"),
        (Some(least), None) if least.as_f64() == Some(1.0) && noun == "integer" => {
            "a positive integer".to_owned()
        }
        (Some(least), None) => format!("{plain} of at least {least}"),
        (None, Some(most)) => format!("{plain} of at most {most}"),
        (Some(least), Some(most)) => format!("{plain} from {least} to {most}"),
        (None, None) => match (schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")) {
            (Some(least), _) => format!("{plain} above {least}"),
            (None, Some(most)) => format!("{plain} below {most}"),
            (None, None) => plain.to_owned(),
        },
    }
}

fn sized(what: &str, unit: &str, least: Option<&Value>, most: Option<&Value>) -> String {
    match (least, most) {
        (None, None) => what.to_owned(),
        (Some(least), None) => format!("{what} with at least {least} {unit}"),
        (None, Some(most)) => format!("{what} with at most {most} {unit}"),
        (Some(least), Some(most)) => format!("{what} with {least} to {most} {unit}"),
    }
}
