//! JSON Schemas (draft 2020-12) from Rust types, without what only costs a model attention: titles, `$schema`, `$ref`s,
//! formats of integers, and the `null` that an optional field could be.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value};

/// The schema of what is read as this type.
pub(super) fn of<T: JsonSchema>() -> Value {
    tidied::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what this type is written as.
pub(super) fn of_answer<T: JsonSchema>() -> Value {
    let mut schema = tidied::<T>(SchemaSettings::draft2020_12().for_serialize());
    unbound(&mut schema);
    schema
}

fn tidied<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(tidy).transform(&mut schema);
    // A tool's description says what it does; the struct's own comment is for readers of the code.
    schema.remove("description");
    if schema.get("type").and_then(Value::as_str) == Some("object") && schema.get("properties").is_none() {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    schema.to_value()
}

fn tidy(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("title");
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    drop_null(object);
    bound_by_format(object);
}

/// An optional field may be left out, or be `null`: that goes without saying.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        only.into_iter().for_each(|(key, value)| {
            object.entry(key).or_insert(value);
        });
    }
}

/// The format of a small integer says how large it may be; models don't know it, and clients don't
/// check it.
fn bound_by_format(object: &mut Map<String, Value>) {
    let bounds: Option<(i64, i64)> = match object.get("format").and_then(Value::as_str) {
        Some("uint32") => Some((0, i64::from(u32::MAX))),
        Some("int32") => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        Some("uint8" | "uint16" | "uint64" | "uint" | "int8" | "int16" | "int64" | "int") => None,
        Some("float" | "double") => None,
        _ => return,
    };
    object.remove("format");
    if let Some((minimum, maximum)) = bounds {
        object.entry("minimum").or_insert(minimum.into());
        object.entry("maximum").or_insert(maximum.into());
    }
}

/// Turns every integer into a plain `number`.
pub(super) fn plain_numbers(schema: &mut Value) {
    each_integer(schema, &|integer| {
        integer.insert("type".to_owned(), "number".into());
        integer.remove("minimum");
        integer.remove("maximum");
    });
}

/// Drops how large an integer may be: what is answered needs no limit.
fn unbound(schema: &mut Value) {
    each_integer(schema, &|integer| {
        integer.remove("minimum");
        integer.remove("maximum");
    });
}

fn each_integer(schema: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    match schema {
        Value::Object(object) => {
            if object.get("type").is_some_and(|name| name == "integer") {
                change(object);
            }
            object.values_mut().for_each(|inner| each_integer(inner, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_integer(item, change)),
        _ => {}
    }
}
