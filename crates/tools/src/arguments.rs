//! Holding a call's arguments against a schema: everything that is wrong is told at once, in sentences that a model can
//! act on; what is meant but written otherwise (3.0 for 3, `null` for nothing) is put right.

mod expectation;
mod problems;

use serde_json::{Map, Value};

use expectation::{display_value, expectation, fits};
use problems::ArgumentProblems;

/// The arguments put right, or everything that is wrong with them, a line each.
pub(super) fn check(schema: &Value, mut input: Value) -> Result<Value, String> {
    if !input.is_object() {
        return Err(format!("the arguments must be an object, got {}", display_value(&input)));
    }
    let mut problems = ArgumentProblems::default();
    value("", schema, &mut input, &mut problems);
    if problems.is_empty() { Ok(input) } else { Err(problems.render()) }
}

fn value(at: &str, schema: &Value, input: &mut Value, problems: &mut ArgumentProblems) {
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return any_of(at, choices, input, problems);
    }
    make_integer(schema, input);
    if !fits(schema, input) {
        return problems
            .add(|| format!("`{at}` must be {}, got {}", expectation(schema), display_value(input)));
    }
    match input {
        Value::Object(fields) => object(at, schema, fields, problems),
        Value::Array(items) => {
            if let Some(of) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    value(&format!("{at}[{index}]"), of, item, problems);
                }
            }
        }
        _ => {}
    }
}

/// The first choice that it fits counts. Where only one choice is of its kind, what is wrong with it by that one is told.
fn any_of(at: &str, choices: &[Value], input: &mut Value, problems: &mut ArgumentProblems) {
    let mut of_its_kind = Vec::new();
    for choice in choices {
        let (mut tried, mut wrong) = (input.clone(), ArgumentProblems::default());
        value(at, choice, &mut tried, &mut wrong);
        if wrong.is_empty() {
            *input = tried;
            return;
        }
        if fits(choice, input) {
            of_its_kind.push(wrong);
        }
    }
    if let [only] = of_its_kind.as_mut_slice() {
        return problems.append(only);
    }
    problems.add(|| {
        let expected: Vec<_> = choices.iter().map(expectation).collect();
        format!("`{at}` must be {}, got {}", expected.join(", or "), display_value(input))
    });
}

/// Turns a number that is written as 3.0 into the 3 that is meant.
fn make_integer(schema: &Value, input: &mut Value) {
    /// Beyond it not every integer is a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if schema.get("type").is_none_or(|name| name != "integer") || input.is_u64() || input.is_i64() {
        return;
    }
    if let Some(number) = input.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT) {
        // It is exact: that was just looked at.
        #[allow(clippy::cast_possible_truncation)]
        let integer = number as i64;
        *input = integer.into();
    }
}

fn object(at: &str, schema: &Value, fields: &mut Map<String, Value>, problems: &mut ArgumentProblems) {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let is_optional = |name: &str| known.contains_key(name) && !required.contains(&name);
    fields.retain(|name, field| !(field.is_null() && is_optional(name) && !takes_null(&known[name])));
    for name in required.iter().filter(|name| !fields.contains_key(**name)) {
        problems.add(|| {
            let expected = known.get(*name).map_or_else(|| "there".to_owned(), expectation);
            format!("`{}` is missing; it must be {expected}", field_path(at, name))
        });
    }
    for (name, field) in fields.iter_mut() {
        match (known.get(name), schema.get("additionalProperties")) {
            (Some(schema), _) => value(&field_path(at, name), schema, field, problems),
            (None, Some(Value::Bool(false))) => problems.add(|| unknown(at, name, known)),
            (None, Some(others)) => value(&field_path(at, name), others, field, problems),
            (None, None) => {}
        }
    }
}

fn takes_null(schema: &Value) -> bool {
    fits(schema, &Value::Null)
}

fn field_path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// The likeness (0 to 1) from which one name is taken for another.
const ALIKE: f64 = 0.75;
/// A longer name, in bytes, is no slip of the pen, and comparing it takes its time.
const MAX_ALIKE_BYTES: usize = 100;

fn unknown(at: &str, name: &str, known: &Map<String, Value>) -> String {
    let name_shown = display_value(&Value::String(field_path(at, name)));
    let name_shown = name_shown.trim_matches('"');
    let likeness = |other: &str| strsim::jaro_winkler(&normalized(name), &normalized(other));
    let short = (name.len() <= MAX_ALIKE_BYTES).then_some(known);
    let others = short.into_iter().flat_map(Map::keys).map(|other| (likeness(other), other));
    match others.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, other)) if likeness >= ALIKE => {
            format!("`{name_shown}` is unknown; did you mean `{}`?", field_path(at, other))
        }
        _ if known.is_empty() => format!("`{name_shown}` is unknown; there are no arguments"),
        _ => {
            let names: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
            format!("`{name_shown}` is unknown; there are: {}", names.join(", "))
        }
    }
}

/// `timeoutMs` and `timeout-ms` are `timeout_ms`.
fn normalized(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
