//! The rules of the APIs about a conversation: each tool call has an answer right after its turn, and each answer has its call.
//! No two items of OpenAI's responses have the same id.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

/// Returns what is wrong with a conversation.
pub(super) fn fault(body: &Value) -> Option<String> {
    let items = ["messages", "input"].iter().find_map(|field| body[*field].as_array())?;
    let mut ids = HashSet::new();
    if let Some(id) = items.iter().filter_map(|item| item["id"].as_str()).find(|id| !ids.insert(*id)) {
        return Some(format!("Duplicate item found with id {id}"));
    }
    let mut open = BTreeSet::new();
    for item in items {
        for id in answers(item) {
            if !open.remove(id) {
                return Some(format!("the answer of `{id}` has no call before it"));
            }
        }
        let calls = calls(item);
        let goes_on = is_answer(item) || item["type"] == "function_call" || item["type"] == "reasoning";
        if let Some(id) = open.first().filter(|_| !goes_on) {
            return Some(format!("the call `{id}` has no answer after it"));
        }
        open.extend(calls);
    }
    open.first().map(|id| format!("the call `{id}` has no answer after it"))
}

/// Returns the ids of the calls in a message or an item.
fn calls(item: &Value) -> Vec<&str> {
    let blocks = content(item).iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]);
    let calls = item["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]);
    let own = (item["type"] == "function_call").then_some(&item["call_id"]);
    blocks.chain(calls).chain(own).filter_map(Value::as_str).collect()
}

/// Returns the ids of the calls that a message or an item answers.
fn answers(item: &Value) -> Vec<&str> {
    let blocks = content(item).iter().filter(|block| block["type"] == "tool_result");
    let blocks = blocks.map(|block| &block["tool_use_id"]);
    let message = (item["role"] == "tool").then_some(&item["tool_call_id"]);
    let own = (item["type"] == "function_call_output").then_some(&item["call_id"]);
    blocks.chain(message).chain(own).filter_map(Value::as_str).collect()
}

fn is_answer(item: &Value) -> bool {
    !answers(item).is_empty()
}

fn content(item: &Value) -> &[Value] {
    item["content"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_and_answers_are_held_against_each_other() {
        let call = json!({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]});
        let answer = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
        let user = json!({"role": "user", "content": "go on"});
        let fault = |messages: &[&Value]| fault(&json!({ "messages": messages }));
        assert_eq!(fault(&[&user, &call, &answer("b"), &answer("a"), &user]), None);
        assert!(fault(&[&call, &answer("a"), &user]).is_some());
        assert!(fault(&[&call, &answer("a")]).is_some());
        assert!(fault(&[&user, &answer("a")]).is_some());
        assert!(fault(&[&call, &user, &answer("a"), &answer("b")]).is_some());
    }

    #[test]
    fn the_other_apis_have_the_same_rule() {
        let call = json!({"type": "function_call", "call_id": "a"});
        let answer = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
        assert_eq!(fault(&json!({"input": [call, answer]})), None);
        assert!(fault(&json!({"input": [call]})).is_some());
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        let answer = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]});
        assert_eq!(fault(&json!({"messages": [call, answer]})), None);
        assert!(fault(&json!({"messages": [answer, call]})).is_some());
        assert_eq!(fault(&json!({"input": "hello"})), None);
    }

    #[test]
    fn two_items_of_one_id_are_refused() {
        let text = |id: &str| json!({"type": "message", "role": "assistant", "id": id});
        assert_eq!(fault(&json!({"input": [text("msg_1"), text("msg_2")]})), None);
        let fault = fault(&json!({"input": [text("msg_1"), text("msg_1")]}));
        assert_eq!(fault.as_deref(), Some("Duplicate item found with id msg_1"));
    }
}
