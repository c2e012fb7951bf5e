//! Values as events, as `--stream` gives them: each leaf with its path, and the end of each thing.

use super::value::{Text, Value};

/// Calls for every event of a value.
pub(super) fn events(value: &Value, emit: &mut dyn FnMut(Value)) {
    below(value, &mut Vec::new(), emit);
}

fn below(value: &Value, path: &mut Vec<Value>, emit: &mut dyn FnMut(Value)) {
    let children: Vec<(Value, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (Value::from(at), item)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (Value::Text(Text::clone(key)), value)).collect(),
        _ => Vec::new(),
    };
    let at = |path: &[Value]| Value::array(path.to_vec());
    if children.is_empty() {
        return emit(Value::array(vec![at(path), value.clone()]));
    }
    let mut last = Value::Null;
    for (key, child) in children {
        last = key.clone();
        path.push(key);
        below(child, path, emit);
        path.pop();
    }
    path.push(last);
    emit(Value::array(vec![at(path)]));
    path.pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_its_leaves_and_ends() {
        let value = super::super::read::one("{\"a\":[1,{}],\"b\":2}").unwrap().unwrap();
        let mut all = Vec::new();
        events(&value, &mut |event| all.push(event.to_string()));
        assert_eq!(all, ["[[\"a\",0],1]", "[[\"a\",1],{}]", "[[\"a\",1]]", "[[\"b\"],2]", "[[\"b\"]]"]);
        let mut all = Vec::new();
        events(&Value::Null, &mut |event| all.push(event.to_string()));
        assert_eq!(all, ["[[],null]"]);
    }
}
