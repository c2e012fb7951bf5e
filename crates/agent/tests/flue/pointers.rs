//! JSON pointers in which `*` is any one name or number.

use serde_json::{Value, json};

/// Masks what a pointer points at; `*` is any one name or number that is there. Returns what was there.
pub fn mask(value: &mut Value, at: &str) -> Vec<Value> {
    let mut found = Vec::new();
    visit(value, at, &mut |place| found.push(std::mem::replace(place, json!("(differs)"))));
    found
}

/// Removes the item or field that a pointer points at. Returns what was there.
pub fn remove(value: &mut Value, at: &str) -> Option<Value> {
    let (parent, name) = at.rsplit_once('/')?;
    match value.pointer_mut(parent)? {
        Value::Array(items) => {
            name.parse().ok().filter(|number| *number < items.len()).map(|number: usize| items.remove(number))
        }
        Value::Object(fields) => fields.remove(name),
        _ => None,
    }
}

/// Calls a function with each value that a pointer points at.
pub fn visit(value: &mut Value, at: &str, found: &mut impl FnMut(&mut Value)) {
    let Some(rest) = at.strip_prefix('/') else { return found(value) };
    let (name, below) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    match value {
        Value::Object(fields) if name == "*" => {
            fields.values_mut().for_each(|field| visit(field, below, found))
        }
        Value::Array(items) if name == "*" => items.iter_mut().for_each(|item| visit(item, below, found)),
        Value::Object(fields) => {
            fields.get_mut(name).into_iter().for_each(|field| visit(field, below, found))
        }
        Value::Array(items) => {
            let item = name.parse::<usize>().ok().and_then(|number| items.get_mut(number));
            item.into_iter().for_each(|item| visit(item, below, found));
        }
        _ => {}
    }
}
