//! Short names for the ids of a transcript.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Short names for ids, in the order in which they appear.
#[derive(Default)]
pub struct ShortNames {
    known: BTreeMap<String, String>,
}

impl ShortNames {
    /// Gives an id the next name.
    pub fn add(&mut self, id: &Value) {
        self.shortened(id.as_str().unwrap_or_default());
    }

    /// Replaces the ids in all texts of a value, and makes equal numbers equal.
    pub fn shorten(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.shortened(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.shorten(item)),
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(|value| self.shorten(value));
            }
            Value::Number(number) => *value = json!(number.as_f64()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces the ids in a text.
    pub fn shortened(&mut self, text: &str) -> String {
        let mut short = String::new();
        // Errors of Flue begin with its name.
        let mut rest = text.strip_prefix("[flue] ").unwrap_or(text);
        while let Some(first) = rest.chars().next() {
            let (piece, length) = match id_at_start(rest) {
                Some(id) => (self.name(id), id.len()),
                None => (first.to_string(), first.len_utf8()),
            };
            short.push_str(&piece);
            rest = &rest[length..];
        }
        short
    }

    fn name(&mut self, id: &str) -> String {
        let next = format!("(id {})", self.known.len() + 1);
        self.known.entry(id.to_owned()).or_insert(next).clone()
    }
}

/// Returns the id that a text begins with: a UUID, the id of an operation, or one that a stand-in makes.
fn id_at_start(text: &str) -> Option<&str> {
    let fixed = [(36, is_uuid as fn(&str) -> bool), (29, is_operation)].into_iter();
    let fixed = fixed.filter_map(|(length, is)| text.get(..length).filter(|id| is(id))).next();
    fixed.or_else(|| {
        let kind =
            ["fc_standin_", "rs_standin_", "msg_standin_"].into_iter().find(|kind| text.starts_with(kind))?;
        let digits = text[kind.len()..].bytes().take_while(u8::is_ascii_digit).count();
        Some(&text[..kind.len() + digits])
    })
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.bytes()
        .enumerate()
        .all(|(place, byte)| if dashes.contains(&place) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

fn is_operation(text: &str) -> bool {
    text.strip_prefix("op_").is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
