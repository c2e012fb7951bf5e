//! Values as events, as `--stream` gives them: each leaf with its path, and the end of each thing.

use super::value::{JqText, JqValue};

/// Calls for every event of a value.
pub(super) fn events(value: &JqValue, emit: &mut dyn FnMut(JqValue)) {
    below(value, &mut Vec::new(), emit);
}

fn below(value: &JqValue, path: &mut Vec<JqValue>, emit: &mut dyn FnMut(JqValue)) {
    let children: Vec<(JqValue, &JqValue)> = match value {
        JqValue::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (JqValue::from(at), item)).collect()
        }
        JqValue::Object(map) => {
            map.iter().map(|(key, value)| (JqValue::JqText(JqText::clone(key)), value)).collect()
        }
        _ => Vec::new(),
    };
    let at = |path: &[JqValue]| JqValue::array(path.to_vec());
    if children.is_empty() {
        return emit(JqValue::array(vec![at(path), value.clone()]));
    }
    let mut last = JqValue::Null;
    for (key, child) in children {
        last = key.clone();
        path.push(key);
        below(child, path, emit);
        path.pop();
    }
    path.push(last);
    emit(JqValue::array(vec![at(path)]));
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
        events(&JqValue::Null, &mut |event| all.push(event.to_string()));
        assert_eq!(all, ["[[],null]"]);
    }
}
